import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { partsOf } from '../../src/hookledger.ts'
import { rescueGathers } from '../../src/inbox/gather-net.ts'
import { runBatch } from '../../src/inbox/run-batch.ts'
import type { WorkContext } from '../../src/inbox/work-batch.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { createExplainingPool, type CapturedPlan } from '../support/captured-plans.ts'
import { mirroredSources, mirrorWorkflow } from '../support/mirror-workflow.ts'
import { answerNow } from '../support/played-gatherer.ts'
import { createProbe, probe, type Probe } from '../support/probe.ts'

const many = 20_000
const bigTables = ['looked_at', 'evidence', 'fetches', 'inbox_gathers', 'inbox_events', 'orders']

let bench: Probe
let work: WorkContext
let explaining: { readonly pool: pg.Pool; readonly plans: CapturedPlan[] }
beforeAll(async () => {
  bench = await createProbe({ workflows: [mirrorWorkflow()], sources: mirroredSources })
  explaining = createExplainingPool(bench.database)
  ;({ work } = await partsOf(bench.another({}, explaining.pool)).contexts())
  await fill()
})
afterAll(() => bench.close())

async function fill(): Promise<void> {
  for (const statement of [
    `insert into sources (provider, provider_account, environment) values ('stripe', 'old', 'test') on conflict do nothing`,
    `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
       select s.source_id, 'evt_old_' || n, 'look', '\\x00', 1 from generate_series(1, ${many}) n, (select min(source_id) as source_id from sources) s`,
    `insert into orders (order_id, workflow, state) select 'old-' || n, 'plans', 'none' from generate_series(1, ${many}) n`,
    `insert into looked_at (order_id, source_id, kind, object_id, workflow, sent, answered)
       select 'old-' || n, 1, 'plan', 'p-' || n, 'plans', 1, 1 from generate_series(1, ${many}) n`,
    `insert into evidence (order_id, source_id, kind, object_id, number, workflow, is_found, requested_at, body_sha256, body_bytes, body)
       select order_id, source_id, kind, object_id, 1, workflow, true, now(), '\\x00', 1, '\\x00' from looked_at`,
    `insert into fetches (order_id, source_id, kind, object_id, workflow, event_type, event_key, wanted, due_at)
       select order_id, source_id, kind, object_id, workflow, 'look', 1, 2, now() + interval '1 day' from looked_at`,
    `insert into inbox_gathers (event_key, received_on, order_id, source_id, kind, object_id, wanted, attempts)
       select 1000000 + n, current_date, 'old-' || n, 1, 'plan', 'p-' || n, 2, 0 from generate_series(1, ${many}) n`,
  ]) {
    await bench.rows(statement)
  }
}

const batch = (): Promise<unknown> => runBatch(work, { kind: 'next', after: 0n, limit: 500 })

describe('the plans of asking and of deciding from answers', () => {
  it.each([
    ['stale', false],
    ['fresh', true],
  ])('read no big table from end to end, with %s statistics', async (when, analyzed) => {
    if (analyzed) await bench.rows('analyze')
    explaining.plans.length = 0
    for (const round of [1, 2]) {
      const order = `o-${when}`
      await bench.deliver(
        probe('look', { order, plan: `p-${when}` }),
        probe('ask', { id: `evt_ask_${when}_${round}`, order }),
      )
      await batch()
      await answerNow(bench, 'plan', `p-${when}`, { status: round === 1 ? 'active' : 'late' })
      const [key] = await bench.rows<{ event_key: string }>(
        'select event_key from inbox_events where event_id = $1',
        [`evt_ask_${when}_${round}`],
      )
      await batch()
      await answerNow(bench, 'event', key?.event_key ?? '', { round })
      await batch()
    }
    const texts = explaining.plans.map(({ text }) => text)
    for (const part of [
      'for update of l',
      'newest_answers',
      'evidence e',
      'inbox_gathers where event_key = any',
      'insert into "hookledger".inbox_gathers',
      'insert into "hookledger".fetches',
      'update "hookledger".looked_at',
    ]) {
      expect(
        texts.some((text) => text.includes(part)),
        part,
      ).toBe(true)
    }
    expect(scansOf(explaining.plans)).toEqual([])
  })

  it('reads only small tables under the net, which runs once a minute', async () => {
    explaining.plans.length = 0
    await rescueGathers(createDatabase(explaining.pool, 'hookledger'))
    expect(scansOf(explaining.plans).filter((scan) => !scan.startsWith('inbox_gathers'))).toEqual(
      [],
    )
  })
})

function scansOf(plans: readonly CapturedPlan[]): string[] {
  return plans.flatMap(({ text, nodes }) =>
    nodes.flatMap(({ type, table }) =>
      type === 'Seq Scan' && table !== null && bigTables.includes(table)
        ? [`${table}: ${text.slice(0, 200)}`]
        : [],
    ),
  )
}

describe('a batch in which nothing is looked at', () => {
  it('asks the database nothing about looks', async () => {
    explaining.plans.length = 0
    await bench.deliver(probe('paid', { order: 'o-plain' }))
    await batch()
    const texts = explaining.plans.map(({ text }) => text)
    expect(texts.some((text) => text.includes('claimed_events'))).toBe(true)
    expect(
      texts.filter((text) =>
        /looked_at|inbox_gathers|\.evidence|\.fetches|customer_links/.test(text),
      ),
    ).toEqual([])
  })
})
