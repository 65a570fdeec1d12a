/** What every benchmark is given, and what it answers. */
import type { BenchServer } from './server.ts'

/** Options of the command line. */
export interface BenchOptions {
  readonly json: boolean
  readonly events: number
  readonly rounds: number
  /** Seconds that a measurement by time lasts. */
  readonly seconds: number
  /** Events that wait in `backlog`. */
  readonly backlog: number
  /** Orders in `reconcile`, each with a payment and an event at the provider. */
  readonly records: number
  /** Whether the competitors' statements are prepared by name. */
  readonly prepared: boolean
}

/** What a benchmark runs with. */
export interface BenchContext {
  readonly server: BenchServer
  readonly options: BenchOptions
  /** One line of progress, for people. */
  readonly log: (line: string) => void
}

/** The figures of a run: `ratios` are what counts, since machines differ. */
export interface Report {
  readonly bench: string
  readonly unit: string
  readonly conditions: Readonly<Record<string, string>>
  readonly results: readonly object[]
  readonly ratios: Readonly<Record<string, number>>
  /** What the ratios must reach at least. */
  readonly floors: Readonly<Record<string, number>>
}

/** The ratios that are below their floor. */
export function belowFloor({ ratios, floors }: Report): string[] {
  return Object.entries(floors).flatMap(([name, floor]) => {
    const ratio = ratios[name] ?? Number.NaN
    return ratio >= floor ? [] : [`${name} is ${ratio}, below ${floor}`]
  })
}
