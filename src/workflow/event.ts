/**
 * What a decision is made from: the provider's own body, and what the inbox knows about it.
 */

/** Where money is real (`live`) or not (`test`). One schema holds exactly one. */
export type Environment = 'live' | 'test'

/** Provider, provider account and environment: the namespace in which an event id is unique. */
export interface SourceIdentity {
  /** The name the source has in the configuration; null when no configured source matches. */
  readonly name: string | null
  readonly provider: string
  readonly account: string
  readonly environment: Environment
}

/** What every decision and handler sees of an event besides the provider's own body. */
export interface EventMeta {
  /** When the first delivery was stored (database clock). */
  readonly receivedAt: Date
  /** When it happened according to the provider; null when the body does not say. */
  readonly occurredAt: Date | null
  /** True when the event did not come from the provider's delivery but was made from its records. */
  readonly synthetic: boolean
  readonly source: SourceIdentity
}

/** The provider's parsed body (deeply frozen) and the inbox's facts about it. */
export type ReceivedEvent<Body = UntypedBody> = Body & EventMeta

/** The shape assumed of a body whose provider gives no types. */
export interface UntypedBody {
  readonly id?: string
  readonly type: string
  readonly data: unknown
}

/** An event as the engine handles it: identity, and the body or why it cannot be read. */
export interface InboxEvent {
  /** The inbox's own number, in order of arrival. */
  readonly key: bigint
  readonly sourceId: number
  readonly source: SourceIdentity
  /** Whether the configured source allows the event's account (its own, or a Connect account). */
  readonly accountAllowed: boolean
  readonly eventId: string
  readonly eventType: string
  readonly receivedAt: Date
  readonly occurredAt: Date | null
  readonly synthetic: boolean
  /** The operation of ours that caused it, where the provider says under which key it was asked. */
  readonly causedBy?: string | null | undefined
  readonly content: EventContent
}

/** The parsed body, or the reason that it has none. */
export type EventContent =
  | { readonly readable: true; readonly value: Readonly<Record<string, unknown>> }
  | { readonly readable: false; readonly reason: string }
