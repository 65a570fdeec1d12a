/**
 * The inbox's door. 200 means that the exact bytes, their identity and a delivery row of this very
 * request are committed and flushed, and nothing else; whatever is not provably so is 503, and the
 * provider delivers again. Nothing is parsed, queried or stored before the signature was verified.
 */
import type { ErrorCode } from '../core/errors.ts'
import { reach } from '../core/failpoints.ts'
import type { Limits } from '../core/limits.ts'
import type { SignalMap, Signals } from '../core/signals.ts'
import type { Tracing } from '../core/tracing.ts'
import type { Database } from '../postgres/executor.ts'
import type { IncomingDelivery } from './intake-statement.ts'
import { toIncoming } from './intake-events.ts'
import type { StoredEvent } from './intake-store.ts'
import type { IntakeOptions, NotStored } from './intake.ts'
import { Intake } from './intake.ts'
import type { HeadersInput } from './request-headers.ts'
import { headerLookup } from './request-headers.ts'
import { Rejections, unknownSource } from './rejections.ts'
import type { InboxSource, RawDelivery } from './source.ts'

/** One request as a route hands it in. */
export interface IngestRequest {
  /** The name under which the source is configured. */
  readonly source: string
  /** A `Headers`, Node's `request.headers`, a plain record, or a function from lower-case name to value. */
  readonly headers: HeadersInput
  /** The body's bytes exactly as they came. */
  readonly rawBody: Uint8Array
}

/** A request that was not stored. `message` may be shown to the sender. */
export interface IngestRefusal {
  readonly status: 400 | 404 | 413 | 503
  readonly code: ErrorCode
  readonly message: string
  readonly retryAfterSeconds?: number
}

/** What became of a request. */
export type IngestOutcome =
  { readonly status: 200; readonly events: readonly StoredEvent[] } | IngestRefusal

/** What a receiver needs. */
export interface ReceiverOptions {
  readonly database: Database
  /** By configured name. */
  readonly sources: ReadonlyMap<string, InboxSource>
  readonly limits: Pick<
    Limits,
    'bodyBytes' | 'intakeBatch' | 'intakeQueue' | 'lockTimeoutMs' | 'requestTimeoutMs'
  >
  readonly signals: Signals
  /** Milliseconds since 1970, to judge a delivery's age by. Default Date.now. */
  readonly now?: () => number
  /** See {@link IntakeOptions}. */
  readonly intake?: Pick<IntakeOptions, 'lanes' | 'queueBytes' | 'batchBytes'>
  /** Absent or null: traces are off. */
  readonly tracing?: Tracing | null
}

/** How long a sender is asked to wait after 503, in seconds. */
const retryAfterSeconds = 5

/** Verifies and stores deliveries. */
export class Receiver {
  readonly #sources: ReadonlyMap<string, InboxSource>
  readonly #bodyBytes: number
  readonly #now: () => number
  readonly #intake: Intake
  readonly #rejections: Rejections
  readonly #signals: Signals
  readonly #tracing: Tracing | null

  constructor(options: ReceiverOptions) {
    const { database, limits, signals } = options
    this.#sources = options.sources
    this.#bodyBytes = limits.bodyBytes
    this.#now = options.now ?? Date.now
    this.#signals = signals
    this.#tracing = options.tracing ?? null
    this.#rejections = new Rejections({ database, signals })
    // a request has requestTimeoutMs in all: half of it for coming in, half for being stored
    const answerWithinMs = Math.ceil(limits.requestTimeoutMs / 2)
    this.#intake = new Intake({ ...options.intake, database, limits, signals, answerWithinMs })
  }

  /** Whether a source of this name is configured. */
  hasSource(name: string): boolean {
    return this.#sources.has(name)
  }

  /** Stores a delivery. Never rejects; resolves within half of `limits.requestTimeoutMs`. */
  async ingest(request: IngestRequest): Promise<IngestOutcome> {
    const source = this.#sources.get(request.source)
    if (source === undefined) return this.refuse(unknownSource, 'unknown_source', notFound)
    if (!isBytes(request.rawBody)) return this.refuse(request.source, 'not_bytes', notBytes)
    if (request.rawBody.byteLength > this.#bodyBytes) {
      return this.refuse(request.source, 'too_large', tooLarge)
    }
    const delivery = { headers: headerLookup(request.headers), rawBody: request.rawBody }
    const refusal = this.#verify(request.source, source, delivery)
    if (refusal !== undefined) return refusal
    const incoming = toIncoming(source, delivery)
    if (this.#tracing === null) return this.#store(request.source, incoming)
    return this.#storeTraced(this.#tracing, request.source, incoming)
  }

  /** Counts a request that a transport refused before it came to `ingest`, and hands the refusal on. */
  refuse<R extends { readonly status: number }>(source: string, reason: string, refusal: R): R {
    const known = this.hasSource(source) ? source : unknownSource
    this.#rejections.count(known, reason, refusal.status)
    this.#tell(known, 'refused')
    return refusal
  }

  /** Takes nothing more, answers what was taken, and writes what was counted. */
  async stop(): Promise<void> {
    await this.#intake.stop()
    await this.#rejections.stop()
  }

  #tell(source: string, verdict: SignalMap['inbox.request.answered']['verdict']): void {
    if (this.#signals.has('inbox.request.answered'))
      this.#signals.emit('inbox.request.answered', { source, verdict })
  }

  #verify(name: string, source: InboxSource, delivery: RawDelivery): IngestRefusal | undefined {
    try {
      const verdict = source.verify(delivery, this.#now())
      return verdict.ok ? undefined : this.refuse(name, verdict.reason, notAuthentic)
    } catch {
      // a verifier that fails proves nothing; the event may be genuine, so it may come again
      return this.refuse(name, 'verify_failed', unavailable('unavailable'))
    }
  }

  async #storeTraced(
    tracing: Tracing,
    name: string,
    incoming: IncomingDelivery,
  ): Promise<IngestOutcome> {
    const span = tracing.delivery(name)
    const outcome = await this.#store(name, { ...incoming, trace: span.context })
    const isStored = outcome.status === 200
    span.end({
      eventIds: incoming.events.map(({ eventId }) => eventId),
      duplicate: isStored && outcome.events.every(isDuplicate),
      error: isStored ? null : 'unavailable',
    })
    return outcome
  }

  async #store(name: string, incoming: IncomingDelivery): Promise<IngestOutcome> {
    try {
      const step = reach('R3')
      if (step !== undefined) await step
    } catch {
      return this.refuse(name, 'unavailable', unavailable('unavailable'))
    }
    const result = await this.#intake.submit(incoming)
    if (result.stored) {
      this.#tell(name, result.events.every(isDuplicate) ? 'duplicate' : 'stored')
      return { status: 200, events: result.events }
    }
    return this.refuse(name, result.reason, unavailable(result.reason))
  }
}

const isDuplicate = ({ duplicate }: StoredEvent): boolean => duplicate

/** In plain JavaScript anything may come; bytes of another realm are bytes too. */
function isBytes(body: unknown): boolean {
  return Object.prototype.toString.call(body) === '[object Uint8Array]'
}

/** 503, because the provider must not give the event up for a mistake in the app. */
const notBytes: IngestRefusal = {
  status: 503,
  code: 'HKL_INBOX_BODY_CONSUMED',
  message:
    'rawBody is not a Uint8Array of the bytes that came, so the signature cannot be checked: read the raw body before any body parser (express.raw(), request.arrayBuffer()) and pass its bytes',
  retryAfterSeconds: 60,
}

const notFound: IngestRefusal = {
  status: 404,
  code: 'HKL_INBOX_SOURCE_UNKNOWN',
  message: 'no source of this name is configured',
}

const tooLarge: IngestRefusal = {
  status: 413,
  code: 'HKL_INBOX_BODY_TOO_LARGE',
  message: 'the body is larger than this endpoint takes',
}

/** The same for every failed check: which one failed is counted, not told. */
const notAuthentic: IngestRefusal = {
  status: 400,
  code: 'HKL_INBOX_SIGNATURE_INVALID',
  message: 'the signature or its age is not valid for this source',
}

function unavailable(reason: NotStored): IngestRefusal {
  const message =
    reason === 'unstorable'
      ? 'the delivery could not be stored; see the count of refusals'
      : 'the delivery is not stored; send it again'
  return { status: 503, code: 'HKL_INBOX_UNAVAILABLE', message, retryAfterSeconds }
}
