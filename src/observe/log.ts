/**
 * The log: a subscriber of signals. One line an outcome, on stderr; JSON unless a person watches.
 * Signals carry no body, header or secret, and neither does anything here.
 */
import { styleText } from 'node:util'
import { pino } from 'pino'
import type { EventOutcome, FailedAttempt, OperationEnd, Signals } from '../core/signals.ts'
import { logGathering } from './log-gathering.ts'
import { logReconciliation } from './log-reconciliation.ts'
import type { LogTarget } from './log-target.ts'
import { printable } from './printable.ts'

/** How much is logged. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/** Every level, least first. */
export const logLevels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error', 'silent']

/** A log whose level can be changed. */
export interface Log extends LogTarget {
  level: LogLevel
}

/** How a log is written. */
export interface LogOptions {
  readonly level: LogLevel
  /** Lines for a person instead of JSON. */
  readonly pretty: boolean
  readonly color: boolean
  /** Where lines go; stderr, written at once, so that a killed process has said what it said. */
  readonly write?: (line: string) => void
  /** Fields of every line, such as which process it is. */
  readonly base?: Readonly<Record<string, string | number>>
}

/** Creates a log. */
export function createLog(options: LogOptions): Log {
  const destination =
    options.write === undefined ? pino.destination({ fd: 2, sync: true }) : { write: options.write }
  const stream = options.pretty
    ? { write: (line: string) => destination.write(`${prettyLine(line, options.color)}\n`) }
    : destination
  return pino(
    {
      level: options.level,
      base: options.base ?? null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  ) as unknown as Log
}

/** Logs what the signals tell. Returns what stops it. */
export function logSignals(signals: Signals, log: LogTarget): () => void {
  const stops = [
    signals.on('inbox.event.decided', (outcome) =>
      log[levelOf(outcome)](outcomeFields(outcome), outcomeText(outcome)),
    ),
    signals.on('inbox.events.stored', (stored) => log.debug(stored, 'stored')),
    signals.on('inbox.batch.finished', ({ events, durationMs }) =>
      log.debug({ events, duration_ms: Math.round(durationMs) }, 'batch finished'),
    ),
    signals.on('inbox.request.rejected', (rejected) =>
      log.info(rejected, `refused a request to ${rejected.source}: ${rejected.reason}`),
    ),
    signals.on('inbox.wait.rescued', ({ events }) =>
      log.warn({ events }, `the sweep found ${events} events that nothing had woken`),
    ),
    ...logOutbox(signals, log),
    ...logGathering(signals, log),
    ...logReconciliation(signals, log),
    signals.on('worker.leases.expired', ({ role, leases }) =>
      log.info({ role, leases }, `${leases} leases of the role ${role} ran out: others go on`),
    ),
    signals.on('worker.loop.failed', ({ loop, message }) =>
      log.error({ loop }, `${loop} failed and is tried again: ${message}`),
    ),
    signals.on('api.request.failed', ({ requestId, route, message }) =>
      log.error({ request_id: requestId, route }, `the API failed: ${message}`),
    ),
    signals.on('console.sign_in.ended', ({ actor, outcome, reason }) =>
      log[outcome === 'signed_in' ? 'info' : 'warn'](
        { actor, outcome },
        `console: ${actor ?? 'somebody'} ${outcome === 'signed_in' ? 'signed in' : `could not sign in (${outcome})`}: ${printable(reason)}`,
      ),
    ),
    signals.on('config.warned', ({ message }) => log.warn({}, message)),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}

function logOutbox(signals: Signals, log: LogTarget): (() => void)[] {
  return [
    signals.on('outbox.operation.ended', (end) =>
      log[end.outcome === 'dead' ? 'error' : 'info'](endFields(end), endText(end)),
    ),
    signals.on('outbox.attempt.failed', (failed) =>
      log[failed.outcome === 'absent' ? 'info' : 'warn'](failedFields(failed), failedText(failed)),
    ),
    signals.on(
      'outbox.operation.stuck',
      ({ operationId, destination, orderId, attempts, reason }) =>
        log.error(
          { operation_id: operationId, destination, order_id: orderId ?? undefined, attempts },
          `operation ${operationId} to ${destination} needs a person: ${reason}; try: hookledger outbox show ${operationId}`,
        ),
    ),
    signals.on('outbox.destination.paused', ({ destination, failures, forMs }) =>
      log.warn(
        { destination, failures, for_ms: forMs },
        `destination ${destination} failed ${failures} times in a row: nothing is sent for ${forMs} ms, then one operation`,
      ),
    ),
    signals.on('outbox.destination.resumed', ({ destination }) =>
      log.info({ destination }, `destination ${destination} answers again`),
    ),
    signals.on('outbox.events.woken', ({ events }) =>
      log.debug({ events }, 'woke what waited for an operation'),
    ),
  ]
}

function endFields(end: OperationEnd): Record<string, unknown> {
  return {
    operation_id: end.operationId,
    destination: end.destination,
    outcome: end.outcome,
    order_id: end.orderId ?? undefined,
    attempts: end.attempts,
    status: end.status ?? undefined,
    age_ms: Math.round(end.ageMs),
  }
}

function endText(end: OperationEnd): string {
  return [
    `${end.destination} ${end.operationId}:${end.orderId === null ? '' : ` order ${end.orderId}`} ${end.outcome}`,
    ...(end.reason === null ? [] : [end.reason]),
    ...(end.attempts > 1 ? [`${end.attempts} attempts`] : []),
    `${Math.round(end.ageMs)} ms`,
  ].join(' · ')
}

function failedFields(failed: FailedAttempt): Record<string, unknown> {
  return {
    operation_id: failed.operationId,
    destination: failed.destination,
    outcome: failed.outcome,
    order_id: failed.orderId ?? undefined,
    attempts: failed.attempts,
    status: failed.status ?? undefined,
    next_in_ms: failed.nextInMs === null ? undefined : Math.round(failed.nextInMs),
  }
}

function failedText(failed: FailedAttempt): string {
  return [
    `${failed.destination} ${failed.operationId}: ${failed.kind} ${failed.attempts} ${failed.outcome}`,
    ...(failed.error === null ? [] : [failed.error]),
    failed.nextInMs === null ? 'not again by itself' : `again in ${Math.round(failed.nextInMs)} ms`,
  ].join(' · ')
}

/** What a person must look at is a warning; what needs a person to go on is an error. */
function levelOf(outcome: EventOutcome): 'info' | 'warn' | 'error' {
  if (outcome.outcome === 'dead') return 'error'
  return outcome.outcome === 'contradicted' || outcome.findings.length > 0 ? 'warn' : 'info'
}

function outcomeFields(outcome: EventOutcome): Record<string, unknown> {
  const list = (values: readonly string[]): readonly string[] | undefined =>
    values.length === 0 ? undefined : values
  return {
    event_id: outcome.eventId,
    type: outcome.eventType,
    source: outcome.source,
    outcome: outcome.outcome,
    order_id: outcome.orderId ?? undefined,
    workflow: outcome.workflow ?? undefined,
    from: outcome.from ?? undefined,
    to: outcome.to ?? undefined,
    effects: list(outcome.effects),
    granted: list(outcome.granted),
    revoked: list(outcome.revoked),
    findings: list(outcome.findings),
    waits_for: outcome.waitsFor ?? undefined,
    until: outcome.until?.toISOString(),
    attempt: outcome.attempts,
    age_ms: Math.round(outcome.ageMs),
    trace_id: outcome.traceId,
  }
}

/** The line for a person: event, type, order, from → to, what was made and granted, time. */
function outcomeText(outcome: EventOutcome): string {
  const order = outcome.orderId === null ? '' : ` order ${outcome.orderId}`
  const moved =
    outcome.to === null || outcome.from === outcome.to
      ? ''
      : ` ${outcome.from ?? ''} → ${outcome.to}`
  const parts = [
    `${outcome.eventType} ${outcome.eventId}:${order}${moved} ${outcome.outcome}`,
    ...(outcome.effects.length === 0 ? [] : [`made ${outcome.effects.join(', ')}`]),
    ...(outcome.granted.length === 0 ? [] : [`granted ${outcome.granted.join(', ')}`]),
    ...(outcome.revoked.length === 0 ? [] : [`revoked ${outcome.revoked.join(', ')}`]),
    ...(outcome.findings.length === 0 ? [] : [`finding ${outcome.findings.join(', ')}`]),
    ...(outcome.waitsFor === null
      ? [outcome.outcome === 'fulfilled' || outcome.outcome === 'moved' ? '' : outcome.reason]
      : [
          `waits for ${outcome.waitsFor}${outcome.until === null ? '' : ` until ${outcome.until.toISOString()}`}; try: hookledger explain ${outcome.eventId}`,
        ]),
    `${Math.round(outcome.ageMs)} ms`,
  ]
  return parts.filter((part) => part !== '').join(' · ')
}

const colors = { debug: 'gray', info: 'cyan', warn: 'yellow', error: 'red' } as const

/** A JSON line of ours as a person reads it. */
function prettyLine(line: string, color: boolean): string {
  const { level, time, msg } = JSON.parse(line) as {
    level: keyof typeof colors
    time: string
    msg?: string
  }
  const clock = time.slice(11, 23)
  const label = level.padEnd(5)
  const text = printable(msg ?? '')
  if (!color) return `${clock} ${label} ${text}`
  return `${styleText('gray', clock)} ${styleText(colors[level], label)} ${text}`
}
