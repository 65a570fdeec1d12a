/**
 * Configured sources as the other parts see them: for receiving, and for knowing which of them a
 * stored event belongs to. Receiver, worker and every later door use this one rule.
 */
import type { VersionedSource } from '../inbox/api-versions.ts'
import type { SourceLookup } from '../inbox/read-claimed.ts'
import type { InboxSource } from '../inbox/source.ts'
import type { Environment } from '../workflow/event.ts'
import type { ConfiguredSource } from './options.ts'

/** The sources as the receiver takes them. */
export function inboxSources(
  sources: ReadonlyMap<string, ConfiguredSource>,
): ReadonlyMap<string, InboxSource> {
  return new Map(
    [...sources].map(([name, { source, account, environment }]) => [
      name,
      {
        provider: source.provider,
        account,
        environment,
        verify: (delivery, nowMs) => source.verify(delivery, nowMs),
        name: (delivery) => source.name(delivery),
      },
    ]),
  )
}

/** Those of the sources whose events name the version that shaped them. */
export function versionedSources(
  sources: ReadonlyMap<string, ConfiguredSource>,
): ReadonlyMap<string, VersionedSource> {
  return new Map(
    [...sources].flatMap(([name, { source, account, environment }]) => {
      const { otherVersion } = source
      if (otherVersion === undefined) return []
      const text = `${source.provider}:${account}:${environment}`
      return [[name, { text, otherVersion }] as const]
    }),
  )
}

/**
 * Finds the configured source of a stored event: the one whose account it is, else one of the same
 * provider and environment that admits the account (Connect), else the only one of that provider,
 * which does not allow it.
 */
export function sourceLookup(sources: ReadonlyMap<string, ConfiguredSource>): SourceLookup {
  const all = [...sources.values()]
  return {
    identify({ provider, account, environment }) {
      const candidates = all.filter((each) => each.source.provider === provider)
      const own = candidates.find((each) => each.account === account)
      const admitting = candidates.find((each) => each.source.allowsAccount(account))
      const found = own ?? admitting ?? candidates[0]
      return {
        identity: Object.freeze({
          name: found?.name ?? null,
          provider,
          account,
          environment: environment as Environment,
        }),
        accountAllowed: own !== undefined || admitting !== undefined,
        requestKey: found?.source.requestKey,
      }
    },
  }
}
