/**
 * What receiving needs of a configured source, and the number under which a namespace of event ids
 * (provider, account, environment) is stored. A namespace is registered once and never removed.
 */
import type { Database } from '../postgres/executor.ts'
import type { Environment } from '../workflow/event.ts'

/** One delivery as it came in: the exact bytes, and the headers by lower-case name. */
export interface RawDelivery {
  /** The value of a header; a repeated one joined, `a, b`. */
  readonly headers: (name: string) => string | undefined
  readonly rawBody: Uint8Array
}

/** What an authentic delivery says about one event in it. */
export interface NamedInboxEvent {
  readonly eventId: string
  readonly eventType: string
  readonly providerAccount?: string
  readonly environment?: Environment
  readonly occurredAt?: Date
  readonly apiVersion?: string
}

/** A configured source, as far as receiving is concerned; the providers' sources fit. */
export interface InboxSource {
  readonly provider: string
  /** The source's own account: as given, or the name under which it is configured. */
  readonly account: string
  readonly environment: Environment
  /** Judges signature and age on the bytes; `nowMs` is the receiver's clock, in milliseconds. */
  verify(
    delivery: RawDelivery,
    nowMs: number,
  ): { readonly ok: true } | { readonly ok: false; readonly reason: string }
  /** Names the events of a verified delivery. */
  name(delivery: RawDelivery): readonly NamedInboxEvent[]
}

/** The namespace in which an event id is unique. */
export interface SourceNamespace {
  readonly provider: string
  readonly account: string
  readonly environment: Environment
}

/** One text for a namespace, to compare and to remember it by. */
export function namespaceKey({ provider, account, environment }: SourceNamespace): string {
  return `${environment} ${provider} ${account}`
}

/** How many namespaces are remembered; past it the oldest is asked for again. */
const rememberedNamespaces = 10_000

/**
 * Sees to it that a namespace has its row before events refer to it. What is remembered only saves a
 * round trip: statements join the row itself, so that a database that was replaced under a running
 * process can never give an event to another account.
 */
export class NamespaceRegistry {
  readonly #database: Database
  readonly #known = new Set<string>()

  constructor(database: Database) {
    this.#database = database
  }

  /** Registers those of the namespaces that are not known yet. */
  async ensure(namespaces: Iterable<SourceNamespace>): Promise<void> {
    const missing = new Map<string, SourceNamespace>()
    for (const namespace of namespaces) {
      const key = namespaceKey(namespace)
      if (!this.#known.has(key)) missing.set(key, namespace)
    }
    if (missing.size === 0) return
    await this.#register([...missing.values()])
    for (const key of missing.keys()) this.#remember(key)
  }

  /** Forgets a namespace whose row was not found. */
  forget(namespace: SourceNamespace): void {
    this.#known.delete(namespaceKey(namespace))
  }

  async #register(namespaces: readonly SourceNamespace[]): Promise<void> {
    const { schema } = this.#database
    // the anti-join comes first because a conflict burns one of two billion numbers
    await this.#database.query({
      text: `insert into ${schema}sources (provider, provider_account, environment)
select i.provider, i.account, i.environment
from unnest($1::text[], $2::text[], $3::text[]) i(provider, account, environment)
where not exists (
  select from ${schema}sources s
  where s.provider = i.provider and s.provider_account = i.account and s.environment = i.environment)
order by 1, 2, 3
on conflict (provider, provider_account, environment) do nothing`,
      values: [
        namespaces.map(({ provider }) => provider),
        namespaces.map(({ account }) => account),
        namespaces.map(({ environment }) => environment),
      ],
    })
  }

  #remember(key: string): void {
    if (this.#known.size >= rememberedNamespaces) {
      for (const oldest of this.#known) {
        this.#known.delete(oldest)
        break
      }
    }
    this.#known.add(key)
  }
}
