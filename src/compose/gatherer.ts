/** Wires the gatherer to its siblings: findings of the ledger, the sources' APIs, and the inbox's reading. */
import { HookledgerError } from '../core/errors.ts'
import type { Limits } from '../core/limits.ts'
import type { Signals } from '../core/signals.ts'
import type { LookedAt } from '../inbox/answers.ts'
import {
  lookedForTypes,
  type FetchFindings,
  type GatherContext,
  type GatherSettings,
} from '../inbox/gather/gather-context.ts'
import type { EventReading } from '../inbox/read-claimed.ts'
import { closedPart, findingId, findingsPart, type FindingPolicy } from '../ledger/findings.ts'
import type { Database } from '../postgres/executor.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import { finding } from '../workflow/finding-kinds.ts'
import type { Registry } from '../workflow/registry.ts'
import type { ConfiguredSource } from './options.ts'

/** What the gatherer of one configuration is made of. */
export interface GathererParts {
  readonly db: Database
  readonly installationId: string
  readonly registry: Registry
  readonly sources: ReadonlyMap<string, ConfiguredSource>
  readonly reading: EventReading
  readonly settings: GatherSettings
  readonly policy: FindingPolicy
  readonly limits: Limits
  readonly signals: Signals
}

/** The source that findings about requests name. */
const source = 'gather'

/** Findings about requests: their id is computed from what is looked at, so that one thing is one finding. */
function fetchFindings({ db, installationId, policy }: GathererParts): FetchFindings {
  return {
    parts(opened, answered) {
      const found = opened.map((each) => ({
        draft: finding('fetch_overdue', about(each.about), {
          order: each.about.orderId,
          about: `${each.about.kind} ${each.about.objectId}`,
          account: each.source.account,
          attempts: each.attempts,
          waiting_since: each.waitingSince,
          error: each.error,
        }),
        source,
        orderId: each.about.orderId,
        eventKey: null,
      }))
      return [
        findingsPart(db.schema, installationId, policy, found),
        endedFindings(db, installationId, answered, 'the provider has answered'),
      ].filter((part): part is WritePart => part !== null)
    },
  }
}

function about({ orderId, sourceId, kind, objectId }: LookedAt): string {
  return `fetch:${sourceId}:${kind}:${objectId}:${orderId}`
}

function endedFindings(
  db: Database,
  installationId: string,
  looked: readonly LookedAt[],
  because: string,
): WritePart | null {
  const ids = looked.map((each) => findingId(installationId, 'fetch_overdue', source, about(each)))
  return closedPart(db.schema, ids, because)
}

/** Closes findings about requests of workflows that look at nothing any more. */
export function unaskedFindings(
  db: Database,
  installationId: string,
): (looked: readonly LookedAt[]) => readonly WritePart[] {
  return (looked) => {
    const part = endedFindings(db, installationId, looked, 'nobody asks for it any more')
    return part === null ? [] : [part]
  }
}

/** What a gatherer of this process works with. */
export function gatherContextOf(parts: GathererParts): GatherContext {
  const { db, registry, sources, reading, settings, limits, signals } = parts
  return {
    db,
    workflows: registry.workflows,
    reading,
    apiOf: (name) => sources.get(name)?.source.calls,
    settings,
    findings: fetchFindings(parts),
    signals,
    answerBytes: limits.bodyBytes,
    lockTimeoutMs: limits.lockTimeoutMs,
    random: Math.random,
  }
}

/** Whether any workflow mirrors or gathers: only then is there anything for a gatherer to do. */
export function asksProviders(registry: Registry): boolean {
  return lookedForTypes(registry.workflows).length > 0
}

/**
 * Start refuses a workflow that looks at Stripe without a key. The `fetch` of other sources may need no API.
 *
 * @throws HookledgerError HKL_GATHER_NO_API, one line that names workflow and source
 */
export function requireApis(
  registry: Registry,
  sources: ReadonlyMap<string, ConfiguredSource>,
): void {
  for (const workflow of registry.workflows.values()) {
    const types = lookedForTypes(new Map([[workflow.name, workflow]]))
    if (types.length === 0) continue
    for (const name of workflow.sources) {
      const configured = sources.get(name)
      if (configured?.source.provider !== 'stripe' || configured.source.calls !== undefined)
        continue
      throw new HookledgerError(
        'HKL_GATHER_NO_API',
        `workflow "${workflow.name}" asks the source "${name}" for the present state of objects, and that has no API key: give stripe({ apiKey }) a secret or restricted key`,
      )
    }
  }
}
