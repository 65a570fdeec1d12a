/**
 * What is counted, and by which signals. Labels are words of ours and names of the configuration, never
 * anything that a sender can invent: the number of series is bounded by what somebody wrote down.
 */
import type { Signals } from '../core/signals.ts'

/** A family of series: what it says, and the names of its labels. */
export interface Family {
  readonly help: string
  readonly labels: readonly string[]
}

/** The name of a counter. */
export type CounterName =
  | 'inbox_requests_total'
  | 'inbox_events_stored_total'
  | 'inbox_duplicates_total'
  | 'inbox_requests_rejected_total'
  | 'inbox_events_total'
  | 'inbox_retries_total'
  | 'waits_rescued_total'
  | 'worker_leases_expired_total'
  | 'ledger_transitions_total'
  | 'effects_total'
  | 'fetch_answers_total'
  | 'fetch_failures_total'
  | 'fetch_pauses_total'
  | 'outbox_deliveries_total'
  | 'outbox_attempts_failed_total'
  | 'outbox_destination_pauses_total'
  | 'reconciliation_runs_total'
  | 'reconciliation_injected_total'
  | 'findings_escalated_total'
  | 'loop_failures_total'

/** The name of a histogram. */
export type HistogramName = 'process_duration_seconds' | 'event_age_seconds' | 'outbox_attempts'

/** Every counter, by its name without the prefix `hookledger_`. */
export const counterFamilies: Readonly<Record<CounterName, Family>> = {
  inbox_requests_total: {
    help: 'Requests answered: stored, duplicate (all of its events were known) or refused.',
    labels: ['source', 'verdict'],
  },
  inbox_events_stored_total: { help: 'New events stored.', labels: [] },
  inbox_duplicates_total: { help: 'Deliveries of events that were known already.', labels: [] },
  inbox_requests_rejected_total: {
    help: 'Requests that were not stored.',
    labels: ['source', 'reason', 'status'],
  },
  inbox_events_total: { help: 'Outcomes of events.', labels: ['source', 'outcome'] },
  inbox_retries_total: { help: 'Events that failed and are tried again.', labels: [] },
  waits_rescued_total: { help: 'Events that only the sweep woke.', labels: [] },
  worker_leases_expired_total: {
    help: 'Leases that ran out, and batches whose worker died in them: the work went on elsewhere.',
    labels: ['role'],
  },
  ledger_transitions_total: {
    help: 'Orders that went from one state to another.',
    labels: ['workflow', 'from', 'to'],
  },
  effects_total: { help: 'Effects recorded.', labels: ['workflow', 'type'] },
  fetch_answers_total: {
    help: 'Answers of providers that mirrors and gather asked for.',
    labels: [],
  },
  fetch_failures_total: {
    help: 'Requests to providers that failed and are made again.',
    labels: ['source', 'kind'],
  },
  fetch_pauses_total: {
    help: 'Times that a source, or an account of it, was left alone after too many failures in a row.',
    labels: ['source'],
  },
  outbox_deliveries_total: {
    help: 'Operations that ended.',
    labels: ['destination', 'outcome'],
  },
  outbox_attempts_failed_total: {
    help: 'Attempts after which their operation goes on.',
    labels: ['destination', 'outcome'],
  },
  outbox_destination_pauses_total: {
    help: 'Times that a destination was left alone after too many failures in a row.',
    labels: ['destination'],
  },
  reconciliation_runs_total: { help: 'Passes over a source.', labels: ['source', 'state'] },
  reconciliation_injected_total: {
    help: 'Events that no delivery had brought.',
    labels: ['source'],
  },
  findings_escalated_total: { help: 'Steps of being overdue that were told.', labels: ['kind'] },
  loop_failures_total: { help: 'Failures in the background.', labels: ['loop'] },
}

/** Every histogram, by its name without the prefix, with the upper bounds of its buckets. */
export const histogramFamilies: Readonly<
  Record<HistogramName, Family & { readonly buckets: readonly number[] }>
> = {
  process_duration_seconds: {
    help: 'How long a batch of events took, from claiming to the end of its commit.',
    labels: [],
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
  event_age_seconds: {
    help: 'How old an event was when it was decided for good.',
    labels: [],
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 3600, 21600, 86400],
  },
  outbox_attempts: {
    help: 'How many attempts an operation took to its end.',
    labels: ['destination'],
    buckets: [1, 2, 3, 5, 10, 20],
  },
}

/** Values of labels, in the order in which the family names them. */
export type LabelValues = readonly string[]

/** Where figures go. */
export interface Meter {
  count(name: CounterName, labels: LabelValues, by: number): void
  observe(name: HistogramName, labels: LabelValues, value: number): void
}

/** Outcomes after which an event is waited for no longer. */
const unfinished: ReadonlySet<string> = new Set(['deferred', 'ignored', 'dead'])

/** Counts what the signals tell, until the function that it returns is called. */
export function meterSignals(signals: Signals, meter: Meter): () => void {
  const stops = [
    signals.on('inbox.request.answered', ({ source, verdict }) =>
      meter.count('inbox_requests_total', [source, verdict], 1),
    ),
    signals.on('inbox.events.stored', ({ events, duplicates }) => {
      meter.count('inbox_events_stored_total', [], events)
      meter.count('inbox_duplicates_total', [], duplicates)
    }),
    signals.on('inbox.request.rejected', ({ source, reason, status }) =>
      meter.count('inbox_requests_rejected_total', [source, reason, String(status)], 1),
    ),
    signals.on('inbox.event.decided', ({ source, outcome, workflow, from, to, effects, ageMs }) => {
      meter.count('inbox_events_total', [source, outcome], 1)
      if (!unfinished.has(outcome)) meter.observe('event_age_seconds', [], ageMs / 1000)
      if (workflow === null) return
      if (from !== null && to !== null && from !== to)
        meter.count('ledger_transitions_total', [workflow, from, to], 1)
      for (const effect of effects)
        meter.count('effects_total', [workflow, effect.split(' ', 1)[0] ?? ''], 1)
    }),
    signals.on('inbox.events.retried', ({ events }) =>
      meter.count('inbox_retries_total', [], events),
    ),
    signals.on('inbox.batch.finished', ({ durationMs }) =>
      meter.observe('process_duration_seconds', [], durationMs / 1000),
    ),
    signals.on('inbox.wait.rescued', ({ events }) =>
      meter.count('waits_rescued_total', [], events),
    ),
    signals.on('worker.leases.expired', ({ role, leases }) =>
      meter.count('worker_leases_expired_total', [role], leases),
    ),
    signals.on('worker.loop.failed', ({ loop }) => meter.count('loop_failures_total', [loop], 1)),
    signals.on('gather.answers.stored', ({ answers }) =>
      meter.count('fetch_answers_total', [], answers),
    ),
    signals.on('gather.request.failed', ({ source, kind }) =>
      meter.count('fetch_failures_total', [source, kind], 1),
    ),
    signals.on('gather.source.paused', ({ source }) =>
      meter.count('fetch_pauses_total', [source], 1),
    ),
    signals.on('outbox.operation.ended', ({ destination, outcome, attempts }) => {
      meter.count('outbox_deliveries_total', [destination, outcome], 1)
      meter.observe('outbox_attempts', [destination], attempts)
    }),
    signals.on('outbox.attempt.failed', ({ destination, outcome }) =>
      meter.count('outbox_attempts_failed_total', [destination, outcome], 1),
    ),
    signals.on('outbox.destination.paused', ({ destination }) =>
      meter.count('outbox_destination_pauses_total', [destination], 1),
    ),
    signals.on('reconcile.run.ended', ({ source, state, injected }) => {
      meter.count('reconciliation_runs_total', [source, state], 1)
      meter.count('reconciliation_injected_total', [source], injected)
    }),
    signals.on('findings.overdue', ({ kind }) =>
      meter.count('findings_escalated_total', [kind], 1),
    ),
  ]
  return () => {
    for (const stop of stops) stop()
  }
}
