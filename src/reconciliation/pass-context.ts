/** What a pass works with, and what it hands to its steps. */
import type { Database } from '../postgres/executor.ts'
import type {
  EndpointState,
  ProviderRecord,
  RecordPage,
  RecordQuery,
  RecordReference,
  Records,
} from '../workflow/records.ts'
import type { PassHow, PassProgress } from './pass-report.ts'
import type { EventContent } from '../workflow/event.ts'
import type { Comparison, ConfiguredSourceLike, FindingsWriter, Preview } from './ports.ts'
import type { ReconcileSettings } from './settings.ts'

/** A configured source that can be asked. */
export interface AskedSource extends ConfiguredSourceLike {
  readonly source: ConfiguredSourceLike['source'] & { readonly records: Records }
}

/**
 * Asks one source within its rate and the budget of the pass, and again where that helps. Rejects with
 * RecordsError, {@link BudgetSpent}, or the reason of the pass's signal.
 */
export interface Asker {
  list(query: Omit<RecordQuery, 'signal'>): Promise<RecordPage>
  fetch(reference: RecordReference): Promise<ProviderRecord | null>
  accounts(): Promise<readonly string[]>
  /** Undefined: this provider cannot be asked. */
  endpoints(): Promise<readonly EndpointState[] | undefined>
  /** Calls so far, repeated ones counted again. */
  readonly calls: number
}

/** The calls of this pass are used up: the next one goes on. */
export class BudgetSpent extends Error {}

/** Somebody else moved the checkpoint: what was to be written with it is not. */
export class CheckpointLost extends Error {}

/** What every pass of a configuration works with. */
export interface PassContext {
  readonly db: Database
  readonly settings: ReconcileSettings
  readonly sources: readonly AskedSource[]
  readonly comparison: Comparison
  readonly findings: FindingsWriter
  /** Whether a workflow or handler takes events of this type from this source. */
  readonly handles: (source: string, eventType: string) => boolean
  readonly preview: Preview
  /** States that their workflows let nothing follow: what is looked at for such an order is not looked at again. */
  readonly endings: readonly { readonly workflow: string; readonly state: string }[]
  /** Reads the bytes of an answer as the inbox reads bodies. */
  readonly parse: (bytes: Uint8Array) => EventContent
  /** Told when events were put into the inbox: a worker in this process wakes on it. */
  readonly injected: (source: string, events: number) => void
  /** Decides what is ready in this process; undefined: workers do. */
  readonly decide?: (() => Promise<unknown>) | undefined
  /** Repairs what the configuration says repairs itself, and verifies what was repaired; answers how much. */
  readonly autoRepair?: ((signal: AbortSignal) => Promise<number>) | undefined
  readonly lockTimeoutMs: number
}

/** One pass over one source, while it runs. */
export interface SourceRun {
  readonly runId: string
  readonly how: PassHow
  readonly source: AskedSource
  readonly asker: Asker
  readonly signal: AbortSignal
  /** The database's time at which the pass began: windows end a lag before it. */
  readonly now: Date
  readonly progress: (progress: Omit<PassProgress, 'source' | 'records' | 'injected'>) => void
}

/** One kind of record of one account in a run. */
export interface WalkTarget {
  readonly account: string
  /** The number of the source's row for this account. */
  readonly sourceId: number
  readonly kind: string
  /** How far back its list reaches, in milliseconds; null: for ever. */
  readonly reachMs: number | null
}
