/** What the parts of a gatherer have in common. */
import type { Signals } from '../../core/signals.ts'
import type { Database } from '../../postgres/executor.ts'
import type { WritePart } from '../../postgres/write-parts.ts'
import type { SourceIdentity } from '../../workflow/event.ts'
import type { Order } from '../../workflow/order.ts'
import type { FetchFailure, ProviderApi } from '../../workflow/provider-api.ts'
import type { AnyEvent, AnyHandler, Workflow } from '../../workflow/workflow.ts'
import type { LookedAt } from '../answers.ts'
import type { EventReading } from '../read-claimed.ts'

/** How providers are asked. All of it can be configured. */
export interface GatherSettings {
  /** Requests to one source in a second, over all its accounts and all gatherers. */
  readonly callsPerSecond: number
  /** The same for one account of it. */
  readonly callsPerSecondPerAccount: number
  /** Requests of one process beside each other. */
  readonly concurrency: number
  /** The longest time that one request may take. */
  readonly callMs: number
  /** How long a request is its gatherer's own; longer than a request may take. */
  readonly leaseMs: number
  /** The first pause after a failure; it doubles from one to the next. */
  readonly firstRetryMs: number
  /** The longest of these pauses. */
  readonly maxRetryMs: number
  /** Failures of one account in a row after which it is left alone for a while; of a source, twice as many. */
  readonly breakerFailures: number
  /** The first such while; it doubles each time that a lone request fails, up to `maxBreakerMs`. */
  readonly breakerMs: number
  readonly maxBreakerMs: number
  /** How long a request may remain unanswered before a person is told. */
  readonly overdueMs: number
}

/** Findings about requests, as the root wires them. */
export interface FetchFindings {
  parts(opened: readonly FetchFinding[], answered: readonly LookedAt[]): readonly WritePart[]
}

/** A request that a person is told of. */
export interface FetchFinding {
  readonly about: LookedAt
  readonly source: SourceIdentity
  readonly attempts: number
  readonly waitingSince: string
  readonly error: string
}

/** What one gatherer works with. */
export interface GatherContext {
  readonly db: Database
  readonly workflows: ReadonlyMap<string, Workflow>
  readonly reading: EventReading
  /** By the source's name in the configuration; undefined: it has no API. */
  readonly apiOf: (source: string) => ProviderApi | undefined
  readonly settings: GatherSettings
  readonly findings: FetchFindings
  readonly signals: Signals
  /** The longest answer that is kept, in bytes. */
  readonly answerBytes: number
  /** How long a transaction waits for another one's locks, in milliseconds. */
  readonly lockTimeoutMs: number
  /** A number in [0, 1), for jitter. */
  readonly random: () => number
}

/** A request in this gatherer's hands. */
export interface LeasedFetch extends LookedAt {
  /** The number of this very request: no other has it. */
  readonly number: bigint
  readonly workflow: string
  readonly eventType: string
  readonly eventKey: string
  readonly source: SourceIdentity & { readonly name: string }
  readonly handler: AnyHandler
  /** Failed requests before this one. */
  readonly attempts: number
  /** Milliseconds since the first event asked for it. */
  readonly ageMs: number
  readonly askedAt: string
  /** By the database's clock, as ISO text. */
  readonly requestedAt: string
  /** The order's version before the request; null: there is no order. */
  readonly orderVersion: string | null
  readonly order: Order | null
  /** For a gathering; null for a mirror, and where the event's body is no longer there. */
  readonly event: AnyEvent | null
  /** Whether it is the lone request that finds out whether its source, or its account, is there again. */
  readonly probes: { readonly source: boolean; readonly account: boolean }
  /** When its lease began at the latest, by `performance.now()`. */
  readonly leasedAt: number
}

/** What came of a request. */
export type FetchOutcome =
  | { readonly kind: 'answered'; readonly isFound: boolean; readonly body: Uint8Array }
  | ({ readonly kind: 'failed'; readonly text: string } & {
      readonly failure: Exclude<FetchFailure, { kind: 'gone' }>
    })
  /** Nothing was asked, or its process stops: as if it had not been leased. */
  | { readonly kind: 'released' }

/** A request that ended. */
export interface FinishedFetch {
  readonly fetch: LeasedFetch
  readonly outcome: FetchOutcome
}

/** The types of events that this configuration looks for, as `workflow type`. */
export function lookedForTypes(workflows: ReadonlyMap<string, Workflow>): string[] {
  return [...workflows.values()].flatMap(({ name, handlers }) =>
    [...handlers].flatMap(([type, { mirror, gather }]) =>
      mirror === undefined && gather === undefined ? [] : [`${name} ${type}`],
    ),
  )
}
