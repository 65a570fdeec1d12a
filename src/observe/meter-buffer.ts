/**
 * Figures on their way from a process that has no `/metrics` to the one that has: sums and single values,
 * handed over now and then. What was handed over is forgotten, so that a process that is started anew begins
 * at zero and takes nothing back from what is counted already.
 */
import type { CounterName, HistogramName, LabelValues, Meter } from './meters.ts'

/** What was counted since the last time, in plain JSON. */
export interface MeterReadings {
  readonly counts: readonly (readonly [CounterName, LabelValues, number])[]
  readonly values: readonly (readonly [HistogramName, LabelValues, readonly number[]])[]
}

/** A meter that keeps what it is told until it is taken. */
export class MeterBuffer implements Meter {
  #counts = new Map<string, [CounterName, LabelValues, number]>()
  #values = new Map<string, [HistogramName, LabelValues, number[]]>()

  count(name: CounterName, labels: LabelValues, by: number): void {
    if (by === 0) return
    const key = keyOf(name, labels)
    const kept = this.#counts.get(key)
    if (kept === undefined) this.#counts.set(key, [name, labels, by])
    else kept[2] += by
  }

  observe(name: HistogramName, labels: LabelValues, value: number): void {
    const key = keyOf(name, labels)
    const kept = this.#values.get(key)
    if (kept === undefined) this.#values.set(key, [name, labels, [value]])
    else kept[2].push(value)
  }

  /** What there is, and nothing of it is here any more; null when nothing was counted. */
  take(): MeterReadings | null {
    if (this.#counts.size === 0 && this.#values.size === 0) return null
    const readings = { counts: [...this.#counts.values()], values: [...this.#values.values()] }
    this.#counts = new Map()
    this.#values = new Map()
    return readings
  }
}

/** Counts on another meter what a buffer was told. */
export function replayReadings({ counts, values }: MeterReadings, meter: Meter): void {
  for (const [name, labels, by] of counts) meter.count(name, labels, by)
  for (const [name, labels, observed] of values)
    for (const value of observed) meter.observe(name, labels, value)
}

function keyOf(name: string, labels: LabelValues): string {
  return [name, ...labels].join('\u0000')
}
