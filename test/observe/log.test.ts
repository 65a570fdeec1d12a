import { describe, expect, it } from 'vitest'
import { createSignals, type EventOutcome } from '../../src/core/signals.ts'
import { createLog, logSignals, type LogLevel } from '../../src/observe/log.ts'

const fulfilled: EventOutcome = {
  eventId: 'evt_1',
  eventType: 'checkout.session.completed',
  source: 'stripe',
  outcome: 'fulfilled',
  reason: 'pending to paid: license',
  orderId: '1001',
  workflow: 'license',
  from: 'pending',
  to: 'paid',
  effects: ['license'],
  granted: ['email:ada@example.com pro'],
  revoked: [],
  findings: [],
  waitsFor: null,
  until: null,
  attempts: 1,
  ageMs: 12.4,
}
const waiting: EventOutcome = {
  ...fulfilled,
  outcome: 'deferred',
  orderId: null,
  from: null,
  to: null,
  effects: [],
  granted: [],
  waitsFor: 'payment_intent pi_1',
  until: new Date('2026-01-02T00:00:00Z'),
}

function logged(level: LogLevel, outcomes: readonly EventOutcome[], pretty = false): string[] {
  const lines: string[] = []
  const signals = createSignals()
  logSignals(
    signals,
    createLog({ level, pretty, color: false, write: (line) => lines.push(line.trimEnd()) }),
  )
  for (const outcome of outcomes) signals.emit('inbox.event.decided', outcome)
  return lines
}

describe('logSignals', () => {
  it('writes one JSON line an outcome, with what was decided and how long it took', () => {
    const [line = ''] = logged('info', [fulfilled])
    expect(JSON.parse(line)).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/) as string,
      event_id: 'evt_1',
      type: 'checkout.session.completed',
      source: 'stripe',
      outcome: 'fulfilled',
      order_id: '1001',
      workflow: 'license',
      from: 'pending',
      to: 'paid',
      effects: ['license'],
      granted: ['email:ada@example.com pro'],
      attempt: 1,
      age_ms: 12,
      msg: 'checkout.session.completed evt_1: order 1001 pending → paid fulfilled · made license · granted email:ada@example.com pro · 12 ms',
    })
  })

  it('says of a waiting event what for, until when, and the explain to run', () => {
    const [line = ''] = logged('info', [waiting])
    expect(JSON.parse(line)).toMatchObject({
      waits_for: 'payment_intent pi_1',
      until: '2026-01-02T00:00:00.000Z',
    })
    expect(line).toContain(
      'waits for payment_intent pi_1 until 2026-01-02T00:00:00.000Z; try: hookledger explain evt_1',
    )
  })

  it('writes only what a person must look at when nothing else is asked for', () => {
    const outcomes = [
      fulfilled,
      waiting,
      { ...fulfilled, outcome: 'absorbed' },
      { ...fulfilled, findings: ['paid_twice'] },
      { ...fulfilled, outcome: 'contradicted' },
      { ...fulfilled, outcome: 'dead' },
    ]
    expect(
      logged('warn', outcomes).map((line) => (JSON.parse(line) as { level: string }).level),
    ).toEqual(['warn', 'warn', 'error'])
    expect(logged('error', outcomes)).toHaveLength(1)
    expect(logged('silent', outcomes)).toHaveLength(0)
  })

  it('keeps a hostile id on one line, in JSON and for a person', () => {
    const hostile = { ...fulfilled, eventId: 'evt\r\n\u001b[2J{"level":"error"}' }
    expect(logged('info', [hostile])).toHaveLength(1)
    const [pretty = ''] = logged('info', [hostile], true)
    expect(pretty).not.toContain('\u001b')
    expect(pretty).not.toContain('\n')
    expect(pretty).toContain('evt\\x0d\\x0a\\x1b[2J')
  })

  it('can be made louder and stopped while it runs', () => {
    const lines: string[] = []
    const signals = createSignals()
    const log = createLog({
      level: 'error',
      pretty: false,
      color: false,
      write: (line) => lines.push(line),
    })
    const stop = logSignals(signals, log)
    signals.emit('inbox.event.decided', fulfilled)
    log.level = 'info'
    signals.emit('inbox.event.decided', fulfilled)
    stop()
    signals.emit('inbox.event.decided', fulfilled)
    expect(lines).toHaveLength(1)
  })

  it('tells of the background: what failed, what was refused, what the net caught', () => {
    const lines: string[] = []
    const signals = createSignals()
    logSignals(
      signals,
      createLog({
        level: 'debug',
        pretty: true,
        color: false,
        write: (line) => lines.push(line.slice(13).trimEnd()),
      }),
    )
    signals.emit('worker.loop.failed', { loop: 'claim 1', message: 'no route' })
    signals.emit('inbox.request.rejected', { source: 'stripe', reason: 'mismatch', status: 400 })
    signals.emit('inbox.wait.rescued', { events: 2 })
    signals.emit('config.warned', { message: 'no way out' })
    expect(lines).toEqual([
      'error claim 1 failed and is tried again: no route',
      'info  refused a request to stripe: mismatch',
      'warn  the sweep found 2 events that nothing had woken',
      'warn  no way out',
    ])
  })

  it('tells of a pass that did something, warns of one that could not, and keeps quiet about agreement', () => {
    const lines: string[] = []
    const signals = createSignals()
    const write = (line: string): void => void lines.push(line.slice(13).trimEnd())
    logSignals(signals, createLog({ level: 'info', pretty: true, color: false, write }))
    const run = {
      runId: 'run_1',
      source: 'stripe',
      how: 'scheduled',
      state: 'complete',
      error: null,
      calls: 12,
      records: 340,
      injected: 0,
      opened: 0,
      closed: 0,
      repaired: 0,
      durationMs: 812.4,
    } as const
    signals.emit('reconcile.run.ended', run)
    signals.emit('reconcile.run.ended', { ...run, injected: 3, opened: 1, closed: 2, repaired: 1 })
    const error = 'the provider answers 503: the next pass goes on'
    signals.emit('reconcile.run.ended', { ...run, state: 'incomplete', error })
    expect(lines).toEqual([
      'info  scheduled pass over stripe complete · 340 records in 12 calls · 3 events injected · 1 findings opened; try: hookledger findings list · 2 findings closed · 1 repaired by rule · 812 ms',
      `warn  scheduled pass over stripe incomplete · 340 records in 12 calls · ${error} · 812 ms`,
    ])
  })

  it('warns of a finding that is overdue, with its owner and the command that shows it', () => {
    const lines: string[] = []
    const signals = createSignals()
    const write = (line: string): void => void lines.push(line.slice(13).trimEnd())
    logSignals(signals, createLog({ level: 'warn', pretty: true, color: false, write }))
    signals.emit('findings.overdue', {
      findingId: 'a1b320ef',
      kind: 'paid_twice',
      severity: 'high',
      owner: 'support',
      orderId: '1001',
      dueAt: new Date('2026-01-02T00:00:00Z'),
      step: 1,
    })
    expect(lines).toEqual([
      'warn  finding paid_twice about order 1001 of support was due 2026-01-02T00:00:00.000Z; try: hookledger findings show a1b320ef',
    ])
  })
})
