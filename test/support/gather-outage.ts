/**
 * A provider that is away for an hour while events pile up, with the clocks of requests and breakers put forward:
 * how often it is asked meanwhile, and how often afterwards.
 */
import { createGatherer, type Gatherer } from '../../src/inbox/gather/gatherer.ts'
import { away } from './asked-provider.ts'
import { createGatherBench, type GatherBench } from './gather-bench.ts'
import { probe } from './probe.ts'

/** What an outage is like. */
export interface Outage {
  readonly events: number
  readonly objects: number
  readonly accounts: number
  readonly gatherers: number
}

/** What it came to. */
export interface OutageReport {
  readonly callsMeanwhile: number
  /** Calls about each object afterwards, the most. */
  readonly mostCallsAfter: number
  readonly callsAfter: number
  /** Events without a decision at the end. */
  readonly undecided: number
  /** Orders that are not what the provider says. */
  readonly wrong: number
}

const hourMs = 3_600_000

/** Plays it. */
export async function playOutage(outage: Outage): Promise<OutageReport> {
  const bench = await createGatherBench(
    { gather: { callsPerSecond: 100_000, callsPerSecondPerAccount: 100_000 } },
    true,
  )
  try {
    const gatherers = await Promise.all(
      Array.from({ length: outage.gatherers }, async () =>
        createGatherer(await bench.parts.gatherContext()),
      ),
    )
    bench.provider.answer = away
    await pileUp(bench, outage)
    await hour(bench, gatherers)
    const callsMeanwhile = bench.provider.seen.length
    bench.provider.answer = undefined
    bench.provider.seen.length = 0
    await recovered(bench, gatherers)
    const counts = new Map<string, number>()
    for (const { id } of bench.provider.seen) counts.set(id, (counts.get(id) ?? 0) + 1)
    const [row] = await bench.rows<{ undecided: number; wrong: number }>(
      `select (select count(*)::int from inbox_events e where not exists (
          select from ledger_decisions d where d.event_key = e.event_key and d.final)) as undecided,
        (select count(*)::int from orders where state <> 'active') + $1 - (select count(*)::int from orders) as wrong`,
      [outage.objects],
    )
    return {
      callsMeanwhile,
      callsAfter: bench.provider.seen.length,
      mostCallsAfter: Math.max(...counts.values()),
      undecided: row?.undecided ?? -1,
      wrong: row?.wrong ?? -1,
    }
  } finally {
    await bench.close()
  }
}

async function pileUp(bench: GatherBench, { events, objects, accounts }: Outage): Promise<void> {
  for (let object = 0; object < objects; object++)
    bench.provider.plans.set(`p${object}`, { status: 'active' })
  for (let from = 0; from < events; from += 500) {
    const bodies = Array.from({ length: Math.min(500, events - from) }, (_, index) => {
      const object = (from + index) % objects
      return probe('look', {
        order: `o${object}`,
        plan: `p${object}`,
        ...(accounts > 1 && { account: `acct_${object % accounts}` }),
      })
    })
    await bench.ask(...bodies)
  }
}

/** An hour, as fast as nothing happens in it: to the next moment at which anything may be asked. */
async function hour(bench: GatherBench, gatherers: readonly Gatherer[]): Promise<void> {
  for (let passedMs = 0; passedMs < hourMs;) {
    await Promise.all(gatherers.map((each) => each.drain(performance.now() + 200)))
    const [row] = await bench.rows<{ shut_ms: number | null; due_ms: number | null }>(
      `select (select extract(epoch from max(closed_until) - clock_timestamp()) * 1000 from fetch_budgets)::int as shut_ms,
        (select extract(epoch from min(due_at) - clock_timestamp()) * 1000 from fetches)::int as due_ms`,
    )
    const stepMs = Math.max(1000, Math.min(row?.shut_ms ?? row?.due_ms ?? 1000, hourMs - passedMs))
    await bench.later(stepMs)
    passedMs += stepMs
  }
}

async function recovered(bench: GatherBench, gatherers: readonly Gatherer[]): Promise<void> {
  for (let round = 0; round < 100; round++) {
    await bench.later(300_000)
    await Promise.all(gatherers.map((each) => each.drain(performance.now() + 30_000)))
    const left = await bench.rows('select 1 from fetches limit 1')
    if (left.length === 0) break
  }
  await bench.work()
}
