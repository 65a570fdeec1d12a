/**
 * What an event may need from its provider before it can be decided: the present state of an object
 * (`mirror`), or facts of its own (`gather`). Both are asked for before the order is locked, and what was
 * answered is evidence: decided from, recorded, and fenced by the number of its request.
 */
import type { Name, Order } from './order.ts'

/** What `fetch` of a mirror is given. */
export interface FetchInput<Api = unknown> {
  /** What to look at, as `object` named it. */
  readonly object: Name
  /** The source's name in the configuration. */
  readonly source: string
  /** The provider account that the event belongs to. */
  readonly account: string
  /**
   * The provider's API, for this account: with Stripe, a client of the official SDK. Its calls end by
   * `signal`, and nothing repeats them. Undefined where the source has no API.
   */
  readonly api: Api
  /** Ends the request when its time is up. */
  readonly signal: AbortSignal
}

/** What `gather` is given. The order is as it stood before the request: what is decided later reads it anew. */
export interface GatherInput<
  Event,
  State extends string = string,
  Subject extends string | null = string | null,
  Api = unknown,
> extends Omit<FetchInput<Api>, 'object'> {
  readonly event: Event
  /** Null where the event opens the order. */
  readonly order: Order<State, Subject> | null
}

/** The number of a request and what came of it, as decisions record it. */
export interface Answered {
  /** The row of the evidence. */
  readonly evidenceId: bigint
  /** Of the request: a later one has a higher number. */
  readonly number: bigint
  /** When the answer was there, by the database's clock. */
  readonly fetchedAt: Date
  /** Of the answer's bytes, hex. */
  readonly sha256: string
}

/** The answer to a mirror's fetch. */
export interface MirrorAnswer extends Answered {
  readonly object: Name
  /** Frozen; null: the provider knows no such object (any more). */
  readonly current: unknown
  /** The newest number that a decision was made from already: a lower one changes nothing. */
  readonly applied: bigint
}

/** The answer to a gathering. */
export interface GatherAnswer extends Answered {
  /** Frozen. */
  readonly evidence: unknown
  /** The order's version when it was asked: a moved one makes the answer stale. Null: there was no order. */
  readonly orderVersion: bigint | null
}

/** A provider's customer, and the subject that it was linked with; null as long as it is not. */
export interface LinkedCustomer {
  readonly id: string
  readonly subject: string | null
}

/** What is read beside the order for a claim, under its lock. */
export interface ClaimInputs {
  readonly mirror?: MirrorAnswer | undefined
  readonly gather?: GatherAnswer | undefined
  readonly customer?: LinkedCustomer | undefined
}

/** The kind of the object of a gathering: the event itself, by its key. No mirror may use it. */
export const gatheredEvent = 'event'
