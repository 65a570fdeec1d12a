/**
 * What a destination is: where operations go, and what it promises about an operation that is sent twice.
 * Every kind of destination is a file of its own under this contract, and one suite of tests holds them to it.
 */

/** What a destination promises, and how it is to be treated. Times are milliseconds. */
export interface DestinationContract {
  /**
   * `key`: it honors the operation's id, so that sending the same bytes again changes nothing. `none`: it does
   * not, and an operation is done at least once.
   */
  readonly idempotency: 'key' | 'none'
  /** How long it remembers an id, from the first call on. 0 where it honors none. */
  readonly retentionMs: number
  /** So much before the end of the retention it no longer counts as remembered. */
  readonly marginMs: number
  /** Whether it answers a key that it knows with the stored answer even where that was a failure. */
  readonly replaysFailures: boolean
  /** One call in all, from connecting to the last byte of the answer. */
  readonly callMs: number
  /** The lease around a call; longer than `callMs`. */
  readonly leaseMs: number
  /** Calls at once, over all dispatchers. */
  readonly concurrency: number
  /** Calls a second, over all dispatchers; null: as many as come. */
  readonly ratePerSecond: number | null
  /** `order`: the operations of one order go one after the other. */
  readonly sequence: 'order' | 'none'
  /** Attempts before a person is asked. */
  readonly maxAttempts: number
  readonly firstRetryMs: number
  readonly maxRetryMs: number
  /** After so many failures in a row nothing is sent for `breakerMs`; then one is tried. */
  readonly breakerFailures: number
  readonly breakerMs: number
}

/** One operation as it is called: always the same bytes under the same key. */
export interface OutgoingRequest {
  readonly operationId: string
  /** What the destination is to recognize the operation by: the id, and from the second generation on `id:n`. */
  readonly key: string
  readonly request: Uint8Array
  /** When the operation was recorded, for a lookup that reads a list from there on; absent: not known. */
  readonly recordedAt?: Date
}

/** What a destination said of an operation, small enough to be kept in the ledger: ids and figures. */
export type Receipt = Readonly<Record<string, string | number | boolean | null>>

/** What a call came to. */
export type CallOutcome =
  /** Done: the destination said so. */
  | {
      readonly kind: 'sent'
      readonly receipt: Receipt
      readonly status?: number
      readonly answer?: Uint8Array
    }
  /** Certainly not done, and worth another try. */
  | {
      readonly kind: 'retry'
      readonly error: string
      readonly retryAfterMs?: number
      readonly status?: number
      readonly answer?: Uint8Array
    }
  /**
   * Refused for good. `settlesEarlier` says that this is the destination's word about the operation itself, so that
   * an earlier call whose outcome is not known was not done either; false for what is refused at the door (401, 403).
   */
  | {
      readonly kind: 'refused'
      readonly error: string
      readonly settlesEarlier: boolean
      readonly status?: number
      readonly answer?: Uint8Array
    }
  /** Nobody knows: a timeout, a reset, an answer that says neither. */
  | {
      readonly kind: 'uncertain'
      readonly error: string
      readonly retryAfterMs?: number
      readonly status?: number
      readonly answer?: Uint8Array
    }

/** What a lookup came to. */
export type LookupOutcome =
  /** It was done. */
  | { readonly kind: 'present'; readonly receipt: Receipt }
  /** It was not done, by proof: the destination's complete record does not have it. */
  | { readonly kind: 'absent' }
  /** The destination did not say. */
  | { readonly kind: 'no_answer'; readonly error: string; readonly retryAfterMs?: number }

/** Where operations go. */
export interface Destination<Body = unknown> {
  /** `http`, `stripe`, `function`. */
  readonly kind: string
  readonly contract: DestinationContract
  /** Why it cannot be used as configured; the start refuses it with this line. */
  readonly problem?: string | undefined
  /**
   * The exact bytes of a request, made once, when the operation is recorded. Pure and synchronous.
   *
   * @throws PermanentError for a body that can never be sent, naming what is wrong and not what it says
   */
  encode(send: EncodedSend<Body>): Uint8Array
  /** Calls. Never rejects; ends by `signal` at the latest. */
  call(request: OutgoingRequest, signal: AbortSignal): Promise<CallOutcome>
  /** Looks whether the operation was done; absent where the destination cannot say. Never rejects. */
  lookup?(request: OutgoingRequest, signal: AbortSignal): Promise<LookupOutcome>
  /** Closes connections that it keeps. */
  close?(): Promise<void>
}

/** What is encoded: the body of a send, and what the destination may want to write into it. */
export interface EncodedSend<Body = unknown> {
  readonly operationId: string
  readonly body: Body
  /** Present for operations of an effect. */
  readonly orderId: string | null
}

/** The defaults of design.md, section 7; a destination changes what it declares. */
export const defaultContract: DestinationContract = Object.freeze({
  idempotency: 'key',
  retentionMs: 24 * 3_600_000,
  marginMs: 3_600_000,
  replaysFailures: false,
  callMs: 10_000,
  leaseMs: 30_000,
  concurrency: 20,
  ratePerSecond: null,
  sequence: 'none',
  maxAttempts: 10,
  firstRetryMs: 1000,
  maxRetryMs: 3_600_000,
  breakerFailures: 20,
  breakerMs: 5000,
})
