import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { partsOf } from '../../../src/hookledger.ts'
import { createGatherer, type Gatherer } from '../../../src/inbox/gather/gatherer.ts'
import { tellOverdue } from '../../../src/inbox/gather/overdue.ts'
import type { GatherContext } from '../../../src/inbox/gather/gather-context.ts'
import { createExplainingPool, type CapturedPlan } from '../../support/captured-plans.ts'
import { createGatherBench, type GatherBench } from '../../support/gather-bench.ts'
import { probe } from '../../support/probe.ts'

const many = 20_000
const bigTables = ['looked_at', 'evidence', 'fetches', 'inbox_gathers', 'inbox_events', 'orders']

let bench: GatherBench
let explaining: { readonly pool: pg.Pool; readonly plans: CapturedPlan[] }
let ctx: GatherContext
let gatherer: Gatherer
beforeAll(async () => {
  bench = await createGatherBench({
    gather: { callsPerSecond: 1000, callsPerSecondPerAccount: 1000 },
  })
  explaining = createExplainingPool(bench.database)
  ctx = await partsOf(bench.another({}, explaining.pool)).gatherContext()
  gatherer = createGatherer(ctx)
  await fill()
})
afterAll(() => bench.close())

/** Two hundred accounts with a backlog that is not due yet, behind the engine's back. */
async function fill(): Promise<void> {
  for (const statement of [
    `insert into sources (provider, provider_account, environment) select 'stripe', 'old_' || n, 'test' from generate_series(1, 200) n`,
    `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
       select s.source_id, 'evt_old_' || n, 'look', '\\x00', 1 from generate_series(1, ${many}) n, (select min(source_id) as source_id from sources) s`,
    `insert into orders (order_id, workflow, state) select 'old-' || n, 'plans', 'none' from generate_series(1, ${many}) n`,
    `insert into looked_at (order_id, source_id, kind, object_id, workflow, sent, answered)
       select 'old-' || n, s.first + n % 200, 'plan', 'p-' || n, 'plans', 1, 1
       from generate_series(1, ${many}) n, (select min(source_id) as first from sources where provider_account like 'old%') s`,
    `insert into evidence (order_id, source_id, kind, object_id, number, workflow, is_found, requested_at, body_sha256, body_bytes, body)
       select order_id, source_id, kind, object_id, 1, workflow, true, now(), '\\x00', 1, '\\x00' from looked_at`,
    `insert into fetches (order_id, source_id, kind, object_id, workflow, event_type, event_key, wanted, due_at)
       select order_id, source_id, kind, object_id, workflow, 'look', 1, 2, now() + interval '1 day' from looked_at`,
    `insert into inbox_gathers (event_key, received_on, order_id, source_id, kind, object_id, wanted, attempts)
       select 1000000 + row_number() over (), current_date, order_id, source_id, kind, object_id, 2, 0 from looked_at`,
  ])
    await bench.rows(statement)
}

const nowhere = (plans: readonly CapturedPlan[]): readonly string[] =>
  plans.flatMap(({ text, nodes }) =>
    nodes
      .filter(({ type, table }) => type === 'Seq Scan' && bigTables.includes(table ?? ''))
      .map(({ table }) => `${table} in ${text.slice(0, 120)}`),
  )

describe('the plans of the gatherer', () => {
  it.each([
    ['stale', false],
    ['fresh', true],
  ])('read no big table from end to end, with %s statistics', async (when, analyzed) => {
    if (analyzed) await bench.rows('analyze')
    explaining.plans.length = 0
    for (const round of [1, 2]) {
      bench.provider.plans.set(`p-${when}`, { status: round === 1 ? 'active' : 'late' })
      await bench.ask(
        bench.look(`p-${when}`),
        probe('ask', { id: `evt_ask_${when}_${round}`, order: `o_p-${when}` }),
      )
      await gatherer.drain(performance.now() + 2000)
      // one that fails, and one that is asked for by name
      bench.provider.answer = () => Promise.reject(new Error('away'))
      await bench.ask(bench.look(`q-${when}-${round}`))
      const [event] = await bench.rows<{ event_key: string }>(
        'select event_key from inbox_gathers where object_id = $1',
        [`q-${when}-${round}`],
      )
      await gatherer.gatherNow([BigInt(event?.event_key ?? 0)], performance.now() + 2000)
      bench.provider.answer = undefined
      await tellOverdue(ctx)
    }
    const texts = explaining.plans.map(({ text }) => text)
    for (const part of [
      'with recursive hop',
      'for update of f, l skip locked',
      'from numbered n',
      'gathered_payloads',
      'fenced as',
      'failed_fetches as',
      'not f.told',
    ]) {
      expect(
        texts.some((text) => text.includes(part)),
        part,
      ).toBe(true)
    }
    expect(nowhere(explaining.plans)).toEqual([])
  })
})
