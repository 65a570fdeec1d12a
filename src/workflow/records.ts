/**
 * What a provider's own records say, in the words that reconciliation and the success page compare by. A
 * source that can be asked has `records`; nothing here knows a provider.
 */
import type { Name } from './order.ts'

/** One record as the provider has it now: an event of its event list, or an object. */
export interface ProviderRecord {
  /** `event`, or the kind of object in the provider's own words: `payment_intent`. */
  readonly kind: string
  readonly id: string
  /** When the provider made it; what windows are cut by. */
  readonly createdAt: Date
  /** The account that it belongs to. */
  readonly account: string
  /** The provider's own JSON, deeply frozen or never changed. */
  readonly object: Readonly<Record<string, unknown>>
}

/** A record to look at again. */
export interface RecordReference {
  readonly kind: string
  readonly id: string
  readonly account: string
}

/** A kind of record that can be listed. */
export interface RecordKind {
  readonly kind: string
  /** What its records are: events that were or should have been delivered, or objects as they are now. */
  readonly holds: 'events' | 'objects'
  /** How far back lists reach, in milliseconds; null: for ever. */
  readonly reachMs: number | null
}

/** One page to be asked for: records made in `[from, to)`. */
export interface RecordQuery {
  readonly kind: string
  readonly account: string
  readonly from: Date
  readonly to: Date
  /** What the page before gave as `next`; null for the first. */
  readonly cursor: string | null
  /** Most records of the page; 100. The same for every page of a slice. */
  readonly limit?: number | undefined
  readonly signal: AbortSignal
}

/** A page. `next` is null on the last one. */
export interface RecordPage {
  readonly records: readonly ProviderRecord[]
  readonly next: string | null
}

/** An event as the provider's webhook would have carried it, made from its records. */
export interface MadeEvent {
  /** The provider's own id where its event list has it, else `object:<type>:<id>[:<fact>]`. */
  readonly eventId: string
  readonly eventType: string
  readonly occurredAt: Date | null
  readonly apiVersion: string | null
  readonly body: Readonly<Record<string, unknown>>
}

/** Money captured, or not, under the provider's id. Minor units. */
export interface PaymentFact {
  readonly fact: 'payment'
  readonly id: string
  /** Other ids of the same money (its charge, session, invoice): a ledger may keep it under any of them. */
  readonly aliases?: readonly string[] | undefined
  /** The record that tells whose order it pays, where that is another one: the invoice of a payment intent. */
  readonly judgedBy?: RecordReference | undefined
  /** `paid`: captured. `unpaid`: may still be. `failed`: will never be. */
  readonly standing: 'paid' | 'unpaid' | 'failed'
  readonly amount: bigint
  readonly currency: string
  /** Given back for good. */
  readonly refunded: bigint
}

/** Money given back. */
export interface RefundFact {
  readonly fact: 'refund'
  readonly id: string
  readonly payment: string | null
  readonly standing: 'pending' | 'succeeded' | 'failed'
  readonly amount: bigint
  readonly currency: string
}

/** Money that the customer's bank disputes. */
export interface DisputeFact {
  readonly fact: 'dispute'
  readonly id: string
  readonly payment: string | null
  readonly standing: 'open' | 'won' | 'lost'
}

/** What a record claims about money. */
export type Fact = PaymentFact | RefundFact | DisputeFact

/** How the provider delivers to us. */
export interface EndpointState {
  readonly url: string
  readonly enabled: boolean
  /** Types that it delivers; null: all. */
  readonly types: readonly string[] | null
  readonly apiVersion: string | null
}

/** Asks a provider. Every method rejects with {@link RecordsError} and with nothing else. */
export interface Records {
  readonly kinds: readonly RecordKind[]
  /** The accounts to go through one by one; the source's own comes first. */
  accounts(own: string, signal: AbortSignal): Promise<readonly string[]>
  list(query: RecordQuery): Promise<RecordPage>
  /** The record as it is now; null: the provider says that there is none. */
  fetch(reference: RecordReference, signal: AbortSignal): Promise<ProviderRecord | null>
  /** The events that led to the record's present state; of an event itself that event. Pure. */
  eventsOf(record: ProviderRecord): readonly MadeEvent[]
  /** What it claims about money. Pure. */
  factsOf(record: ProviderRecord): readonly Fact[]
  /** The record under which a payment, refund or dispute of this id is fetched. Pure. */
  referenceOf(fact: Fact['fact'], id: string, account: string): RecordReference | null
  /** The record that a name of an order stands for (`payment_intent` pi_1); null: none. Pure. */
  namedBy(name: Name, account: string): RecordReference | null
  /** The endpoints that deliver to us; undefined: this provider cannot be asked. */
  readonly endpoints?:
    ((own: string, signal: AbortSignal) => Promise<readonly EndpointState[]>) | undefined
  /**
   * What a destination is sent to refund a payment; undefined: it cannot be done through the outbox. Null for
   * a payment that has to be refunded under another id.
   */
  readonly refundCall?:
    | ((payment: {
        readonly id: string
        readonly amount: bigint
        readonly currency: string
        /** The account that it belongs to; the source's own where absent. */
        readonly account?: string | undefined
      }) => unknown)
    | undefined
  /** The version of the provider's API that its objects are asked for in; undefined: it has none. */
  readonly apiVersion?: string | undefined
}

/** Why a provider could not be asked. */
export type RecordsTrouble =
  /** 429, 5xx, no connection, no answer in time: later. */
  | 'unavailable'
  /** The key is missing, wrong or lacks a right: a person must act. */
  | 'refused'
  /** An answer that cannot be what it should be: HTML under 200, a page that repeats, records outside the window. */
  | 'garbage'
  /** The cursor is not known any more: the slice begins anew. */
  | 'cursor_lost'

/** Thrown by {@link Records}; the message says what to do and carries no payload and no key. */
export class RecordsError extends Error {
  readonly trouble: RecordsTrouble
  /** What the provider asked to wait, in milliseconds. */
  readonly retryAfterMs: number | null

  constructor(
    trouble: RecordsTrouble,
    message: string,
    options: { readonly cause?: unknown; readonly retryAfterMs?: number | null } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'RecordsError'
    this.trouble = trouble
    this.retryAfterMs = options.retryAfterMs ?? null
  }
}
