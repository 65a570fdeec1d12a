/**
 * Runs contestants side by side: every round prepares and runs each of them on a fresh schema, in an
 * order that turns from round to round, so that no place in the row is anybody's advantage.
 */
import { checkoutEvents } from './checkout-events.ts'
import type { Contestant } from './contestants/contestant.ts'
import { median, rounded } from './figures.ts'
import { createBenchPool, dropSchemas, settle, type BenchServer } from './server.ts'

/** One contestant's place in a contest. */
export interface Entry {
  readonly contestant: Contestant
  /** Events of each of its rounds. */
  readonly events: number
}

/** What a contestant came to. */
export interface Result {
  readonly name: string
  readonly settings: string
  readonly events: number
  /** Events a second, round by round. */
  readonly rounds: readonly number[]
  readonly median: number
}

/** Connections that every contestant gets. */
export const poolSize = 20

let schemas = 0

/** Events a second of one round. */
export async function runRound(
  server: BenchServer,
  { contestant, events: count }: Entry,
): Promise<number> {
  const schema = `bench_${process.pid}_${schemas++}`
  const pool = createBenchPool(server.url, poolSize)
  try {
    const events = checkoutEvents(schema, count)
    const prepared = await contestant.prepare({ url: server.url, pool, schema, events })
    await settle(server.url)
    const startedAt = performance.now()
    await prepared.run()
    const seconds = (performance.now() - startedAt) / 1000
    await prepared.finish()
    return count / seconds
  } finally {
    await pool.end()
    await dropSchemas(server.url, [schema, `${schema}_jobs`])
  }
}

/** The fastest of some settings of one contestant, by a short round each. */
export async function pickBest(
  server: BenchServer,
  candidates: readonly Contestant[],
  events: number,
): Promise<Contestant> {
  let best: { readonly contestant: Contestant; readonly rate: number } | undefined
  for (const contestant of candidates) {
    const rate = await runRound(server, { contestant, events })
    if (best === undefined || rate > best.rate) best = { contestant, rate }
  }
  if (best === undefined) throw new Error('a contestant needs at least one setting')
  return best.contestant
}

/** Runs all entries for so many rounds. */
export async function runContest(
  server: BenchServer,
  entries: readonly Entry[],
  rounds: number,
  log: (line: string) => void,
): Promise<Map<string, Result>> {
  const rates = new Map<string, number[]>(entries.map(({ contestant }) => [contestant.name, []]))
  for (let round = 0; round < rounds; round++) {
    const turned = entries.map((_, index) => entries[(index + round) % entries.length])
    for (const entry of round % 2 === 0 ? turned : turned.reverse()) {
      if (entry === undefined) continue
      const rate = await runRound(server, entry)
      rates.get(entry.contestant.name)?.push(rate)
      log(`round ${round + 1}: ${entry.contestant.name} ${Math.round(rate)} events/s`)
    }
  }
  return new Map(
    entries.map(({ contestant: { name, settings }, events }) => {
      const measured = rates.get(name) ?? []
      return [
        name,
        {
          name,
          settings,
          events,
          rounds: measured.map((rate) => Math.round(rate)),
          median: median(measured),
        },
      ]
    }),
  )
}

/** How many times as fast one is as another, round by round, and the median of that. */
export function ratioOf(results: ReadonlyMap<string, Result>, name: string, other: string): number {
  const ours = results.get(name)?.rounds ?? []
  const theirs = results.get(other)?.rounds ?? []
  return rounded(median(ours.map((rate, round) => rate / (theirs[round] ?? Number.NaN))))
}
