/** What a pass is asked, and what it says of itself while it runs and when it has ended. */

/** Why a pass runs: `range` is a window given by hand, which never moves a checkpoint. */
export type PassHow = 'scheduled' | 'deep' | 'manual' | 'range'

/** What a pass is asked to do. */
export interface PassOptions {
  readonly how: PassHow
  /** Who runs it: `reconciler`, `cli:ana`. */
  readonly actor: string
  /** Configured sources by name; all that can be asked without it. */
  readonly sources?: readonly string[] | undefined
  /** Kinds of record; all without it. What concerns no record is compared whatever is named. */
  readonly kinds?: readonly string[] | undefined
  /** The window of a `range`; `to` is now less the lag without it. */
  readonly from?: Date | undefined
  readonly to?: Date | undefined
  /** Ends the pass as soon as possible; it is `incomplete` then. */
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: PassProgress) => void) | undefined
}

/** Where a pass is. */
export interface PassProgress {
  readonly source: string
  readonly account: string
  /** What it does: going through a kind of record, waiting for decisions, or comparing. */
  readonly step: 'listing' | 'settling' | 'comparing'
  readonly kind: string | null
  /** Everything of the window that was made before it has been gone through. */
  readonly reached: Date | null
  readonly to: Date | null
  readonly records: number
  readonly injected: number
}

/** What a pass went through of one kind of record, over all accounts. Times are ISO texts. */
export interface KindCoverage {
  readonly from: string
  readonly to: string
  readonly accounts: number
  readonly slices: number
  readonly pages: number
  readonly records: number
  /** Events put into the inbox. */
  readonly injected: number
  /** Records that needed none: both sides say the same. */
  readonly known: number
}

/** One pass over one source. */
export interface RunReport {
  readonly runId: string
  readonly source: string
  readonly how: PassHow
  readonly state: 'complete' | 'incomplete' | 'failed'
  /** Why it is not complete, and what to do. */
  readonly error: string | null
  readonly coverage: Readonly<Record<string, KindCoverage>>
  /** Calls to the provider. */
  readonly calls: number
  readonly injected: number
  /** Findings opened, or open again. */
  readonly opened: number
  readonly closed: number
  readonly repaired: number
  readonly startedAt: Date
  readonly finishedAt: Date
}

/** What a pass came to, a run for each source. */
export interface PassReport {
  /** Whether every run is. */
  readonly complete: boolean
  readonly runs: readonly RunReport[]
}
