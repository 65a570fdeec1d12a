/**
 * What traces need to be told, where they are on; where they are off nobody has one of these, and nothing is
 * done. A context is the W3C text `00-<trace>-<span>-<flags>`: it is stored with an event and with an operation, so that
 * what follows in another process links to it.
 */

/** A span's context as text. */
export type TraceContext = string

/** A request on its way into the inbox. */
export interface DeliveryTrace {
  /** Stored with its events; null where there is nothing to link to. */
  readonly context: TraceContext | null
  /** Ends it: `error` says why it was not stored. */
  end(stored: {
    readonly eventIds: readonly string[]
    readonly duplicate: boolean
    readonly error: string | null
  }): void
}

/** An event of a batch, and what became of it. */
export interface TracedEvent {
  readonly key: bigint
  readonly source: string
  readonly eventId: string
  /** The context that was stored with it. */
  readonly context: TraceContext | null
  /** A kind of decision, `retried` or `asked`. */
  readonly outcome: string
  readonly orderId: string | null
  /** Why it failed; null where it did not. */
  readonly error: string | null
}

/** When a batch did what, by `Date.now()`. */
export interface BatchMoments {
  readonly claimedAt: number
  readonly readAt: number
  readonly decidedAt: number
}

/** A batch on its way to its commit. */
export interface BatchTrace {
  /** Of the span that decided an event: stored with the operations that it asks for. */
  contextOf(key: bigint): TraceContext | null
  /** Ends all spans; an error says that nothing of the batch stands. */
  end(error: string | null): void
}

/** A call of a destination, or a lookup there. */
export interface TracedAttempt {
  readonly kind: 'call' | 'lookup'
  readonly destination: string
  readonly operationId: string
  readonly orderId: string | null
  readonly number: number
  /** The context that was stored with the operation. */
  readonly context: TraceContext | null
}

/** What came of it. */
export interface AttemptEnd {
  readonly outcome: string
  readonly status: number | null
  readonly error: string | null
}

/** Where traces go. Nothing of it ever throws. */
export interface Tracing {
  /** Begins with a request that is authentic, within whatever is active. */
  delivery(source: string): DeliveryTrace
  /** Of events that were decided, before their commit. */
  batch(events: readonly TracedEvent[], moments: BatchMoments): BatchTrace
  /** Runs a call within its span, so that what the call makes is below it. */
  attempt<T>(
    attempt: TracedAttempt,
    call: () => Promise<T>,
    endOf: (result: T) => AttemptEnd,
  ): Promise<T>
  /** What is active where the app records an operation of its own. */
  active(): TraceContext | null
}
