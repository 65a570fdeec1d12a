/** Traces with OpenTelemetry's own SDK: from a delivery over its decision to the call of a destination, by links. */
import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from '@opentelemetry/sdk-trace-base'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { partsOf } from '../../src/hookledger.ts'
import { busy, scripted } from '../support/scripted-destination.ts'
import { sendingWorkflow } from '../support/outbox-proof.ts'
import { createProbe, probe, type Probe } from '../support/probe.ts'

const exporter = new InMemorySpanExporter()
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
const crm = scripted()
let bench: Probe
beforeAll(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  trace.setGlobalTracerProvider(provider)
  bench = await createProbe({
    workflows: [sendingWorkflow(['crm'])],
    destinations: { crm },
    traces: true,
  })
})
beforeEach(async () => {
  await bench.reset()
  crm.reset()
  exporter.reset()
})
afterAll(async () => {
  await bench.close()
  trace.disable()
  context.disable()
})

const spansOf = (name: string): ReadableSpan[] =>
  exporter.getFinishedSpans().filter((span) => span.name === name)
const spanOf = (name: string): ReadableSpan => {
  const [span, ...others] = spansOf(name)
  if (span === undefined || others.length > 0)
    throw new Error(`${others.length + (span ? 1 : 0)} spans are called ${name}`)
  return span
}
const linked = (span: ReadableSpan): string[] => span.links.map(({ context: { spanId } }) => spanId)

describe('traces', () => {
  it('go from the request over the decision to the call, tied by links and not by parents', async () => {
    const event = probe('pay', { order: 'o1' })
    const request = trace.getTracer('app').startSpan('POST /webhooks/probe')
    await context.with(trace.setSpan(context.active(), request), () => bench.deliver(event))
    request.end()
    await bench.work()

    const stored = spanOf('send probe')
    expect(stored.kind).toBe(SpanKind.PRODUCER)
    expect(stored.parentSpanContext?.spanId).toBe(request.spanContext().spanId)
    expect(stored.attributes).toEqual({
      'messaging.system': 'hookledger',
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'messaging.destination.name': 'probe',
      'messaging.message.id': event.id,
      'hookledger.outcome': 'stored',
    })

    const received = spanOf('receive probe')
    expect(received.kind).toBe(SpanKind.CLIENT)
    expect(received.parentSpanContext).toBeUndefined()
    expect(received.attributes).toMatchObject({ 'messaging.batch.message_count': 1 })
    expect(linked(received)).toEqual([stored.spanContext().spanId])

    const processed = spanOf('process probe')
    expect(processed.kind).toBe(SpanKind.CONSUMER)
    expect(processed.spanContext().traceId).not.toBe(stored.spanContext().traceId)
    expect(linked(processed)).toEqual([stored.spanContext().spanId])
    expect(processed.attributes).toMatchObject({
      'messaging.message.id': event.id,
      'hookledger.order.id': 'o1',
      'hookledger.outcome': 'fulfilled',
    })
    expect(spanOf('settle probe').attributes).toMatchObject({
      'messaging.operation.type': 'settle',
    })

    const sent = spanOf('send crm')
    expect(sent.kind).toBe(SpanKind.PRODUCER)
    expect(sent.parentSpanContext).toBeUndefined()
    expect(linked(sent)).toEqual([processed.spanContext().spanId])
    expect(sent.attributes).toMatchObject({
      'messaging.destination.name': 'crm',
      'messaging.message.id': crm.arrived[0]?.operationId,
      'hookledger.attempt': 1,
      'hookledger.outcome': 'sent',
    })
  })

  it('have what a destination does below the span of its call', async () => {
    let below: string | undefined
    crm.next(() => {
      below = trace.getActiveSpan()?.spanContext().spanId
      return { kind: 'sent', receipt: { id: 'r' }, status: 200 }
    })
    await bench.deliver(probe('pay', { order: 'o1' }))
    await bench.work()
    expect(below).toBe(spanOf('send crm').spanContext().spanId)
  })

  it('say that a delivery was a duplicate, and link a decision to the delivery that was stored', async () => {
    const event = probe('pay', { order: 'o1' })
    await bench.deliver(event)
    await bench.deliver(event)
    await bench.work()
    const [first, second] = spansOf('send probe')
    expect(second?.attributes['hookledger.outcome']).toBe('duplicate')
    expect(linked(spanOf('process probe'))).toEqual([first?.spanContext().spanId])
  })

  it('mark what failed, with a word and never with what came back', async () => {
    crm.next(busy)
    await bench.deliver(probe('pay', { order: 'o1' }))
    await bench.work()
    const failed = spanOf('send crm')
    expect(failed.status).toEqual({ code: SpanStatusCode.ERROR })
    expect(failed.attributes).toMatchObject({
      'error.type': 'retry',
      'hookledger.outcome': 'retry',
    })
    expect(failed.events).toEqual([])
  })

  it('mark a batch that was rolled back, and its events once more where they are decided', async () => {
    await bench.rows(`create function fail_once() returns trigger language plpgsql as $$
      begin raise exception 'no' using errcode = '40001'; end $$`)
    await bench.rows(
      'create trigger fail_once before insert on ledger_payments for each row execute function fail_once()',
    )
    await bench.deliver(probe('pay', { order: 'o1' }))
    await bench.hookledger.runOnce({ budgetMs: 50 }).catch(() => undefined)
    await bench.rows('drop trigger fail_once on ledger_payments')
    const [settle] = spansOf('settle probe')
    expect(settle?.attributes['error.type']).toBe('rolled_back')
    exporter.reset()
    await bench.rows('update inbox_delayed set due_at = now()')
    await bench.work()
    expect(spanOf('process probe').attributes['hookledger.outcome']).toBe('fulfilled')
    expect(spanOf('settle probe').status.code).toBe(SpanStatusCode.UNSET)
  })

  it('are named in what is told of an event', async () => {
    const told: (string | undefined)[] = []
    const stop = partsOf(bench.hookledger).signals.on('inbox.event.decided', ({ traceId }) =>
      told.push(traceId),
    )
    await bench.deliver(probe('pay', { order: 'o1' }))
    await bench.work()
    stop()
    expect(told).toEqual([spanOf('process probe').spanContext().traceId])
  })

  it('link a call to what was active where the app asked for it', async () => {
    const span = trace.getTracer('app').startSpan('checkout')
    const client = await bench.pool.connect()
    await context.with(trace.setSpan(context.active(), span), () =>
      bench.hookledger.outbox.add(client, { to: 'crm', key: 'welcome-1', body: { hello: 'you' } }),
    )
    client.release()
    span.end()
    await bench.work()
    expect(linked(spanOf('send crm'))).toEqual([span.spanContext().spanId])
  })

  it('store nothing and do nothing where they are off', async () => {
    const off = bench.another({ traces: false })
    const event = probe('pay', { order: 'o1' })
    const { deliverTo, workOff } = await import('../support/probe.ts')
    await deliverTo(off, [event])
    await workOff(off)
    expect(exporter.getFinishedSpans()).toEqual([])
    expect(
      await bench.rows(
        'select trace from inbox_events union all select trace from outbox_operations',
      ),
    ).toEqual([{ trace: null }, { trace: null }])
  })

  it('store nothing where no provider is registered', async () => {
    trace.disable()
    try {
      await bench.deliver(probe('pay', { order: 'o1' }))
      await bench.work()
      expect(await bench.rows('select distinct trace from inbox_events')).toEqual([{ trace: null }])
      expect(crm.arrived.length).toBe(1)
    } finally {
      trace.setGlobalTracerProvider(provider)
    }
  })
})
