import { describe, expect, it } from 'vitest'
import { createSignals, type EventOutcome, type Signals } from '../../src/core/signals.ts'
import { createLog, logLevels, logSignals } from '../../src/observe/log.ts'
import { counterFamilies, histogramFamilies, meterSignals } from '../../src/observe/meters.ts'
import { membersOf } from './interfaces.ts'
import { page, section, tableRows } from './pages.ts'

const { text } = page('docs/reference/logs.md')

/** An outcome in which nothing is empty. */
const outcome: EventOutcome = {
  eventId: 'evt_1',
  eventType: 'refund.created',
  source: 'stripe',
  outcome: 'fulfilled',
  reason: 'paid to refunded',
  orderId: '1001',
  workflow: 'license',
  from: 'paid',
  to: 'refunded',
  effects: ['refund re_1'],
  granted: ['email:ada@example.com pro'],
  revoked: ['email:bob@example.com pro'],
  findings: ['paid_twice'],
  waitsFor: 'payment_intent pi_1',
  until: new Date('2026-01-02T00:00:00Z'),
  attempts: 1,
  ageMs: 12,
  traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
}

function emitAll(signals: Signals): void {
  signals.emit('inbox.events.stored', { events: 1, duplicates: 1 })
  signals.emit('inbox.request.rejected', { source: 'stripe', reason: 'mismatch', status: 400 })
  signals.emit('inbox.event.decided', outcome)
  signals.emit('inbox.events.retried', { events: 1 })
  signals.emit('inbox.batch.finished', { events: 1, durationMs: 3 })
  signals.emit('worker.loop.failed', { loop: 'sweep', message: 'no connection' })
  signals.emit('inbox.wait.rescued', { events: 1 })
  signals.emit('worker.leases.expired', { role: 'work', leases: 1 })
  signals.emit('inbox.request.answered', { source: 'stripe', verdict: 'stored' })
  signals.emit('config.warned', { message: 'a warning' })
  const operation = { operationId: 'op_1', destination: 'email', orderId: '1001', attempts: 1 }
  const answer = { status: 500, error: 'status 500', reason: null }
  signals.emit('outbox.operations.recorded', { destinations: ['email'] })
  signals.emit('outbox.operation.ended', { ...operation, ...answer, outcome: 'sent', ageMs: 12 })
  signals.emit('outbox.attempt.failed', {
    ...operation,
    ...answer,
    kind: 'call',
    outcome: 'retry',
    nextInMs: 1000,
  })
  signals.emit('gather.answers.stored', { answers: 1, events: 2 })
  signals.emit('gather.request.failed', {
    source: 'stripe',
    account: 'acct_1',
    about: 'subscription sub_1',
    orderId: 'sub_1',
    kind: 'later',
    attempts: 1,
    error: 'status 500',
    nextInMs: 1000,
  })
  signals.emit('gather.source.paused', {
    source: 'stripe',
    account: null,
    failures: 20,
    forMs: 5000,
  })
  signals.emit('outbox.operation.stuck', { ...operation, reason: 'no lookup' })
  signals.emit('outbox.destination.paused', { destination: 'email', failures: 20, forMs: 5000 })
  signals.emit('outbox.destination.resumed', { destination: 'email' })
  signals.emit('reconcile.run.ended', {
    runId: 'run_1',
    source: 'stripe',
    how: 'scheduled',
    state: 'complete',
    error: null,
    calls: 3,
    records: 40,
    injected: 2,
    opened: 1,
    closed: 1,
    repaired: 0,
    durationMs: 900,
  })
  signals.emit('findings.overdue', {
    findingId: 'a1b320ef-9b60-5a6a-8318-142cfa86b199',
    kind: 'paid_twice',
    severity: 'high',
    owner: 'support',
    orderId: '1001',
    dueAt: new Date('2026-01-02T00:00:00Z'),
    step: 1,
  })
}

describe('docs/reference/logs.md', () => {
  it('lists every signal, and no other', () => {
    const listed = tableRows(section(text, 'Log').split(/^#/m)[0] ?? '').map(([name]) => name)
    expect(listed.sort()).toEqual(membersOf('src/core/signals.ts', 'SignalMap').sort())
  })

  it('names the levels', () => {
    for (const level of logLevels) expect(section(text, 'Log')).toContain(`\`${level}\``)
  })

  it('lists every field of an outcome, and no other', () => {
    const lines: string[] = []
    const signals = createSignals()
    logSignals(
      signals,
      createLog({ level: 'info', pretty: false, color: false, write: (line) => lines.push(line) }),
    )
    signals.emit('inbox.event.decided', outcome)
    const fields = Object.keys(JSON.parse(lines[0] ?? '{}') as object)
    const listed = tableRows(section(text, 'Fields of an outcome')).flatMap(([names = '']) =>
      names.split(', '),
    )
    expect(listed.sort()).toEqual(fields.sort())
  })

  it('lists every counter and histogram with its labels, and no other', () => {
    const families = { ...counterFamilies, ...histogramFamilies }
    const known = Object.entries(families).map(([name, { labels }]) => [
      `hookledger_${name}`,
      labels.join(', '),
    ])
    const listed = tableRows(section(text, 'Counters')).map(([name, labels]) => [name, labels])
    expect(listed.sort()).toEqual(known.sort())
  })

  it('lists nothing that no signal counts', () => {
    const signals = createSignals()
    const counted = new Set<string>()
    meterSignals(signals, {
      count: (name, labels) => {
        counted.add(name)
        expect(labels).toHaveLength(counterFamilies[name].labels.length)
      },
      observe: (name, labels) => {
        counted.add(name)
        expect(labels).toHaveLength(histogramFamilies[name].labels.length)
      },
    })
    emitAll(signals)
    expect([...counted].sort()).toEqual(
      [...Object.keys(counterFamilies), ...Object.keys(histogramFamilies)].sort(),
    )
  })
})
