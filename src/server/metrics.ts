/**
 * `/metrics` in Prometheus' text format: counters fed by signals, gauges that are asked of the database when
 * somebody looks, at most every few seconds.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Signals } from '../core/signals.ts'
import { replayReadings, type MeterReadings } from '../observe/meter-buffer.ts'
import {
  counterFamilies,
  histogramFamilies,
  meterSignals,
  type CounterName,
  type HistogramName,
  type LabelValues,
  type Meter,
} from '../observe/meters.ts'

/** One family of figures that are asked for: its values by labels. */
export interface GaugeFamily {
  /** Without the prefix. */
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  readonly values: readonly { readonly labels: LabelValues; readonly value: number }[]
  /** True where it only ever grows: the database counts what the processes before this one did, too. */
  readonly isCounter?: boolean
}

/** Figures that are asked for when metrics are read. */
export type Gauges = () => Promise<readonly GaugeFamily[]>

/** Counts from now on; renders on demand. */
export interface Metrics {
  /** The text of `/metrics`. Gauges that cannot be read are left out, and `hookledger_gauges_up` is 0. */
  render(): Promise<string>
  /** Counts what another process of ours tells. */
  add(readings: MeterReadings): void
  /** Stops listening. */
  stop(): void
}

/** How long gauges are kept, in milliseconds: reading metrics often is no load on the database. */
const keptMs = 5000
const prefix = 'hookledger_'

/** Starts to count what the signals tell. */
export function createMetrics(signals: Signals, gauges?: Gauges): Metrics {
  const registry = new Registry()
  const meter = registryMeter(registry)
  const stop = meterSignals(signals, meter)
  const read = kept(gauges)
  return {
    render: async () => (await registry.metrics()) + (await renderGauges(await read())),
    add: (readings) => replayReadings(readings, meter),
    stop,
  }
}

/** Meters that are series of a registry; one without labels is there from the start, at zero. */
function registryMeter(registry: Registry): Meter {
  const counters = new Map<CounterName, Counter>()
  for (const name of Object.keys(counterFamilies) as CounterName[]) {
    const { help, labels } = counterFamilies[name]
    const options = { name: `${prefix}${name}`, help, labelNames: [...labels] }
    counters.set(name, new Counter({ ...options, registers: [registry] }))
  }
  const histograms = new Map<HistogramName, Histogram>()
  for (const name of Object.keys(histogramFamilies) as HistogramName[]) {
    const { help, labels, buckets } = histogramFamilies[name]
    const options = { name: `${prefix}${name}`, help, labelNames: [...labels] }
    histograms.set(
      name,
      new Histogram({ ...options, buckets: [...buckets], registers: [registry] }),
    )
  }
  return {
    count: (name, labels, by) =>
      void (
        by > 0 &&
        counters
          .get(name)
          ?.labels(...labels)
          .inc(by)
      ),
    observe: (name, labels, value) =>
      void (
        Number.isFinite(value) &&
        histograms
          .get(name)
          ?.labels(...labels)
          .observe(value)
      ),
  }
}

async function renderGauges(families: readonly GaugeFamily[] | null | undefined): Promise<string> {
  if (families === undefined) return ''
  const registry = new Registry()
  const up = {
    name: `${prefix}gauges_up`,
    help: 'Whether the figures of the database could be read.',
  }
  new Gauge({ ...up, registers: [registry] }).set(families === null ? 0 : 1)
  for (const { name, help, labels, values, isCounter } of families ?? []) {
    const options = {
      name: `${prefix}${name}`,
      help,
      labelNames: [...labels],
      registers: [registry],
    }
    if (isCounter === true) {
      const counter = new Counter(options)
      for (const each of values) counter.labels(...each.labels).inc(each.value)
    } else {
      const gauge = new Gauge(options)
      for (const each of values) gauge.labels(...each.labels).set(each.value)
    }
  }
  return registry.metrics()
}

/** Null where there is no answer; undefined where there is nothing to ask. */
function kept(
  gauges: Gauges | undefined,
): () => Promise<readonly GaugeFamily[] | null | undefined> {
  let last:
    { readonly values: Promise<readonly GaugeFamily[] | null>; readonly at: number } | undefined
  return () => {
    if (gauges === undefined) return Promise.resolve(undefined)
    if (last === undefined || performance.now() - last.at >= keptMs)
      last = { values: gauges().catch(() => null), at: performance.now() }
    return last.values
  }
}
