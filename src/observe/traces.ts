/**
 * Traces by OpenTelemetry, whose API is an optional peer: spans of deliveries, batches, decisions and calls. What
 * follows in another process is tied by links and never by parents: it may happen hours later, or twice.
 */
import { createRequire } from 'node:module'
import type * as opentelemetry from '@opentelemetry/api'
import type { Attributes, Context, Link, Span, SpanContext, SpanOptions } from '@opentelemetry/api'
import { HookledgerError } from '../core/errors.ts'
import type {
  AttemptEnd,
  BatchMoments,
  BatchTrace,
  DeliveryTrace,
  TraceContext,
  TracedAttempt,
  TracedEvent,
  Tracing,
} from '../core/tracing.ts'
import { messaging, own, system } from './trace-names.ts'

type Api = typeof opentelemetry

/**
 * Traces to whatever provider the app has registered; without one, spans that go nowhere.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID where the API is not installed
 */
export function openTelemetry(): Tracing {
  let api: Api
  try {
    api = createRequire(import.meta.url)('@opentelemetry/api') as Api
  } catch {
    throw new HookledgerError(
      'HKL_CONFIG_INVALID',
      'traces: true needs @opentelemetry/api: npm install @opentelemetry/api',
    )
  }
  return new OpenTelemetryTracing(api)
}

class OpenTelemetryTracing implements Tracing {
  readonly #api: Api

  constructor(api: Api) {
    this.#api = api
  }

  delivery(source: string): DeliveryTrace {
    const { SpanKind } = this.#api
    const span = this.#start(`send ${source}`, {
      kind: SpanKind.PRODUCER,
      attributes: attributesOf('send', 'send', source),
    })
    return {
      context: contextOf(span),
      end: ({ eventIds, duplicate, error }) => {
        const [only] = eventIds
        if (eventIds.length === 1 && only !== undefined)
          span.setAttribute(messaging.messageId, only)
        else span.setAttribute(messaging.batchCount, eventIds.length)
        if (error === null) span.setAttribute(own.outcome, duplicate ? 'duplicate' : 'stored')
        else this.#fail(span, error)
        span.end()
      },
    }
  }

  batch(events: readonly TracedEvent[], moments: BatchMoments): BatchTrace {
    const { SpanKind, trace, ROOT_CONTEXT } = this.#api
    const spans = new Map<bigint, { readonly span: Span; readonly event: TracedEvent }>()
    const settles: Span[] = []
    for (const [source, of] of bySource(events)) {
      const receive = this.#start(
        `receive ${source}`,
        {
          kind: SpanKind.CLIENT,
          startTime: moments.claimedAt,
          attributes: {
            ...attributesOf('receive', 'receive', source),
            [messaging.batchCount]: of.length,
          },
          links: of.flatMap(({ context }) => linkTo(context)),
        },
        ROOT_CONTEXT,
      )
      receive.end(moments.readAt)
      const within = trace.setSpan(ROOT_CONTEXT, receive)
      for (const event of of) {
        const span = this.#start(
          `process ${source}`,
          {
            kind: SpanKind.CONSUMER,
            startTime: moments.readAt,
            attributes: {
              ...attributesOf('process', 'process', source),
              [messaging.messageId]: event.eventId,
              [own.outcome]: event.outcome,
              ...(event.orderId === null ? {} : { [own.orderId]: event.orderId }),
            },
            links: linkTo(event.context),
          },
          within,
        )
        spans.set(event.key, { span, event })
      }
      settles.push(
        this.#start(
          `settle ${source}`,
          {
            kind: SpanKind.CLIENT,
            startTime: moments.decidedAt,
            attributes: {
              ...attributesOf('settle', 'settle', source),
              [messaging.batchCount]: of.length,
            },
          },
          within,
        ),
      )
    }
    return {
      contextOf: (key) => {
        const found = spans.get(key)
        return found === undefined ? null : contextOf(found.span)
      },
      end: (error) => {
        for (const { span, event } of spans.values()) {
          const failed = error ?? event.error
          if (failed !== null) this.#fail(span, failed)
          // deciding ended here; whether it counts is the settling's to say
          span.end(moments.decidedAt)
        }
        for (const span of settles) {
          if (error !== null) this.#fail(span, error)
          span.end()
        }
      },
    }
  }

  async attempt<T>(
    attempt: TracedAttempt,
    call: () => Promise<T>,
    endOf: (result: T) => AttemptEnd,
  ): Promise<T> {
    const { SpanKind, context, trace, ROOT_CONTEXT } = this.#api
    const { kind, destination } = attempt
    const isCall = kind === 'call'
    const name = isCall ? 'send' : 'lookup'
    const span = this.#start(
      `${name} ${destination}`,
      {
        kind: isCall ? SpanKind.PRODUCER : SpanKind.CLIENT,
        attributes: {
          ...attributesOf(name, isCall ? 'send' : null, destination),
          [messaging.messageId]: attempt.operationId,
          [own.attempt]: attempt.number,
          ...(attempt.orderId === null ? {} : { [own.orderId]: attempt.orderId }),
        },
        links: linkTo(attempt.context),
      },
      ROOT_CONTEXT,
    )
    const result = await context.with(trace.setSpan(ROOT_CONTEXT, span), call)
    const { outcome, status, error } = endOf(result)
    span.setAttribute(own.outcome, outcome)
    if (status !== null) span.setAttribute(messaging.httpStatus, status)
    if (error !== null) this.#fail(span, outcome)
    span.end()
    return result
  }

  active(): TraceContext | null {
    const span = this.#api.trace.getActiveSpan()
    return span === undefined ? null : contextOf(span)
  }

  /** Looked up each time: the app may register its provider after this was made. */
  #start(name: string, options: SpanOptions, parent?: Context): Span {
    return this.#api.trace.getTracer(system).startSpan(name, options, parent)
  }

  /** A word of ours and no message: those can hold what a sender wrote. */
  #fail(span: Span, type: string): void {
    span.setAttribute(messaging.errorType, type)
    span.setStatus({ code: this.#api.SpanStatusCode.ERROR })
  }
}

function attributesOf(name: string, type: string | null, destination: string): Attributes {
  return {
    [messaging.system]: system,
    [messaging.operationName]: name,
    ...(type === null ? {} : { [messaging.operationType]: type }),
    [messaging.destination]: destination,
  }
}

const contextPattern = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/
const noTrace = '0'.repeat(32)

function contextOf(span: Span): TraceContext | null {
  const { traceId, spanId, traceFlags } = span.spanContext()
  if (traceId === noTrace) return null
  return `00-${traceId}-${spanId}-${(traceFlags & 0xff).toString(16).padStart(2, '0')}`
}

function linkTo(context: TraceContext | null): Link[] {
  const [, traceId, spanId, flags] = contextPattern.exec(context ?? '') ?? []
  if (traceId === undefined || spanId === undefined || flags === undefined) return []
  const linked: SpanContext = {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16),
    isRemote: true,
  }
  return [{ context: linked }]
}

function bySource(events: readonly TracedEvent[]): ReadonlyMap<string, readonly TracedEvent[]> {
  const sources = new Map<string, TracedEvent[]>()
  for (const event of events) {
    const of = sources.get(event.source)
    if (of === undefined) sources.set(event.source, [event])
    else of.push(event)
  }
  return sources
}
