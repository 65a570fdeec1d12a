/**
 * Counters in Prometheus' text format, fed by signals. Labels are words of ours and names of the
 * configuration, never anything that a sender can invent.
 */
import type { Signals } from '../core/signals.ts'

/** Figures that are asked for when metrics are read: name (without prefix) → value. */
export type Gauges = () => Promise<Readonly<Record<string, number>>>

/** Counts from now on; renders on demand. */
export interface Metrics {
  /** The text of `/metrics`. Gauges that cannot be read are left out. */
  render(): Promise<string>
  /** Stops listening. */
  stop(): void
}

/** How long gauges are kept, in milliseconds: reading metrics often is no load on the database. */
const keptMs = 5000

/** Starts to count what the signals tell. */
export function createMetrics(signals: Signals, gauges?: Gauges): Metrics {
  const counters = new Map<string, number>()
  const add = (series: string, by: number): void => {
    counters.set(series, (counters.get(series) ?? 0) + by)
  }
  const stops = [
    signals.on('inbox.events.stored', ({ events, duplicates }) => {
      add('hookledger_inbox_events_stored_total', events)
      add('hookledger_inbox_duplicates_total', duplicates)
    }),
    signals.on('inbox.request.rejected', ({ source, reason, status }) => {
      add(`hookledger_inbox_requests_rejected_total${labels({ source, reason, status })}`, 1)
    }),
    signals.on('inbox.event.decided', ({ outcome }) => {
      add(`hookledger_events_decided_total${labels({ outcome })}`, 1)
    }),
    signals.on('inbox.batch.finished', ({ durationMs }) => {
      add('hookledger_batches_total', 1)
      add('hookledger_batch_seconds_total', durationMs / 1000)
    }),
    signals.on('worker.loop.failed', ({ loop }) => {
      add(`hookledger_loop_failures_total${labels({ loop })}`, 1)
    }),
    signals.on('outbox.operation.ended', ({ destination, outcome }) => {
      add(`hookledger_operations_ended_total${labels({ destination, outcome })}`, 1)
    }),
    signals.on('outbox.attempt.failed', ({ destination, outcome }) => {
      add(`hookledger_attempts_failed_total${labels({ destination, outcome })}`, 1)
    }),
    signals.on('outbox.destination.paused', ({ destination }) => {
      add(`hookledger_destination_pauses_total${labels({ destination })}`, 1)
    }),
    signals.on('reconcile.run.ended', ({ source, state, injected }) => {
      add(`hookledger_reconciliation_runs_total${labels({ source, state })}`, 1)
      add(`hookledger_reconciliation_injected_total${labels({ source })}`, injected)
    }),
    signals.on('findings.overdue', ({ kind }) => {
      add(`hookledger_findings_escalated_total${labels({ kind })}`, 1)
    }),
    signals.on('inbox.wait.rescued', ({ events }) => {
      add('hookledger_waits_rescued_total', events)
    }),
  ]
  const read = cachedGauges(gauges)
  return {
    render: async () => renderSeries(counters, await read()),
    stop: () => {
      for (const stop of stops) stop()
    },
  }
}

function renderSeries(
  counters: ReadonlyMap<string, number>,
  gauges: Readonly<Record<string, number>>,
): string {
  const lines: string[] = []
  let family = ''
  for (const [series, value] of [...counters].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const name = series.replace(/\{.*$/, '')
    if (name !== family) lines.push(`# TYPE ${name} counter`)
    family = name
    lines.push(`${series} ${value}`)
  }
  for (const [name, value] of Object.entries(gauges)) {
    lines.push(`# TYPE hookledger_${name} gauge`, `hookledger_${name} ${value}`)
  }
  return `${lines.join('\n')}\n`
}

function labels(values: Readonly<Record<string, string | number>>): string {
  const pairs = Object.entries(values).map(
    ([name, value]) => `${name}="${escapeLabel(String(value))}"`,
  )
  return `{${pairs.join(',')}}`
}

function escapeLabel(value: string): string {
  return value.replace(/\\/g, '\\\\').replace(/"/g, '\\"').replace(/\n/g, '\\n')
}

function cachedGauges(gauges: Gauges | undefined): Gauges {
  let last:
    { readonly values: Promise<Readonly<Record<string, number>>>; readonly at: number } | undefined
  return () => {
    if (gauges === undefined) return Promise.resolve({})
    if (last === undefined || performance.now() - last.at >= keptMs) {
      last = { values: gauges().catch(() => ({})), at: performance.now() }
    }
    return last.values
  }
}
