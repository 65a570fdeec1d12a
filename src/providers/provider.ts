/**
 * The contract of a provider: a source takes options in and gives verification and naming of events
 * out. It connects to nothing, keeps its secrets to itself, and fails closed: what it cannot verify
 * is refused, what it cannot name is stored under the hash of its bytes.
 */
import type { HookledgerError } from '../core/errors.ts'
import type { Environment, UntypedBody } from '../workflow/event.ts'
import type { ProviderApi } from '../workflow/provider-api.ts'
import type { Records } from '../workflow/records.ts'

/** One delivery as it came in: the exact bytes, and the headers by lower-case name. */
export interface RawRequest {
  /** The value of a header; a repeated one as Node joins it, `a, b`. */
  readonly headers: (name: string) => string | undefined
  /** The body's bytes, undecoded. A parsed and re-serialized body does not verify. */
  readonly rawBody: Uint8Array
}

/**
 * Why a delivery is refused. Age is judged after the signature: `too_old` and `too_new` are said of
 * authentic deliveries only, so that a rise in them means clocks or replays and never noise.
 */
export type Refusal = 'missing' | 'malformed' | 'mismatch' | 'too_old' | 'too_new'

/** Whether a delivery is authentic, and by which of the source's secrets (index in the options). */
export type Verdict =
  { readonly ok: true; readonly secret: number } | { readonly ok: false; readonly reason: Refusal }

/** What an authentic delivery says about one event in it. Texts are at most 255 bytes, without NUL. */
export interface NamedEvent {
  /** The provider's id, or `sha256:<hex of the body>` when the body has none that can be kept. */
  readonly eventId: string
  /** The provider's type, or `unknown`. */
  readonly eventType: string
  /** Set when the event belongs to another account than the source's own (Stripe Connect). */
  readonly providerAccount?: string
  /** Set when the body says in which environment it happened. */
  readonly environment?: Environment
  /** When it happened according to the provider (millisecond precision). */
  readonly occurredAt?: Date
  /** The version of the provider's API that shaped the body. */
  readonly apiVersion?: string
}

/**
 * A configured source. Made by a provider's function (`stripe(…)`, `standardWebhooks(…)`), which never
 * throws at import: a bad option becomes its `problem`, one line that names the option.
 */
export interface Source<Name extends string = string, Events = unknown> {
  /** `stripe`, `standard-webhooks`. */
  readonly provider: Name
  /** The account as given; undefined: the root uses the name under which the source is configured. */
  readonly account: string | undefined
  /** As given; undefined: the root decides. */
  readonly environment: Environment | undefined
  /** Whether events of this account may act here: the given account, or one admitted by `connect`. */
  readonly allowsAccount: (account: string) => boolean
  /** What is wrong with its options; such a source verifies nothing, and the start refuses it. */
  readonly problem?: HookledgerError | undefined
  /** Judges signature and age on the bytes; `nowMs` is the receiver's clock, in milliseconds. */
  verify(request: RawRequest, nowMs: number): Verdict
  /** Names the events of a verified delivery; never throws, whatever the body is. */
  name(request: RawRequest): readonly NamedEvent[]
  /**
   * The key of the request that caused an event (perhaps a call of ours), by the parsed body; null where the
   * body names none. Never throws.
   */
  readonly requestKey?: ((body: Readonly<Record<string, unknown>>) => string | null) | undefined
  /**
   * The version of the provider's API that shaped the event, by its parsed body, where another one is expected;
   * null where it is the one. Never throws.
   */
  readonly otherVersion?:
    | ((
        body: Readonly<Record<string, unknown>>,
      ) => { readonly version: string; readonly expected: string } | null)
    | undefined
  /** The event types that this provider is known to send, where that is known. */
  readonly sends?: readonly string[] | undefined
  /** The provider's own records, where the provider can be asked for them; reconciliation needs them. */
  readonly records?: Records | undefined
  /** The provider's API, as mirrors and `gather` ask it; undefined where no key is given, or there is none. */
  readonly calls?: ProviderApi | undefined
  /** Only a type: event type → body. Never set. */
  readonly '~events'?: Events
}

/** Event type → body of a source; any type and the untyped body where the source gives none. */
export type EventsOf<S extends Source> =
  S extends Source<string, infer Events>
    ? unknown extends Events
      ? Readonly<Record<string, UntypedBody>>
      : Events
    : never

/** The names of the event types that a source is known to send. */
export type EventNames<S extends Source> = keyof EventsOf<S> & string

/** The body of one event type of a source. */
export type EventBody<S extends Source, Type extends EventNames<S>> = EventsOf<S>[Type]
