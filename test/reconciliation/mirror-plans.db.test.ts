/** Passes over a grown database of objects that mirrors follow: by key and by time, and through no big table. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, stripe, type Hookledger } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { createExplainingPool, type CapturedPlan } from '../support/captured-plans.ts'
import { followingWorkflow, PlanProvider, recordOf } from '../support/followed-plans.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import { probeSecret } from '../support/probe.ts'
import { scriptedRecords } from '../support/scripted-records.ts'
import type { TestDatabase } from '../support/test-database.ts'

const many = 6000
const bigTables = new Set([
  'inbox_events',
  'ledger_decisions',
  'fulfillment_effects',
  'entitlements',
  'orders',
  'findings',
  'looked_at',
  'evidence',
])

let database: TestDatabase
let hookledger: Hookledger
let plans: CapturedPlan[]
const provider = new PlanProvider()
const records = scriptedRecords({
  kinds: [{ kind: 'plan', holds: 'objects', reachMs: null }],
  pageSize: 100,
  eventsOf: ({ id, object }) => [
    {
      eventId: `object:plan.changed:${id}`,
      eventType: 'plan.changed',
      occurredAt: null,
      apiVersion: null,
      body: { id, type: 'plan.changed', created: 1, livemode: false, plan: object },
    },
  ],
})

beforeAll(async () => {
  database = await createHookledgerDatabase()
  const explaining = createExplainingPool(database)
  plans = explaining.plans
  const options = { account: 'acct_1', environment: 'test' as const, signingSecrets: [probeSecret] }
  hookledger = createHookledger({
    environment: 'test',
    sources: { probe: Object.freeze({ ...stripe(options), records, calls: provider.calls }) },
    workflows: [followingWorkflow(provider)],
    gather: { callsPerSecond: 10_000, callsPerSecondPerAccount: 10_000 },
    reconcile: { lagMs: 0, callsPerSecond: 10_000 },
    database: explaining.pool,
  })
  await partsOf(hookledger).register()
  await fill()
})
afterAll(async () => {
  await hookledger.stop()
  await database.drop()
})

/** Every plan was looked at two days ago, and is late as its order is. */
async function fill(): Promise<void> {
  const filling = database.pool({ max: 1, options: '-c search_path=hookledger' })
  const body = `convert_to('{"value":{"id":"p' || n || '","order":"o' || n || '","status":"late"}}', 'UTF8')`
  const statements = [
    `insert into sources (provider, provider_account, environment) values ('stripe', 'acct_1', 'test')`,
    `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
       select 1, 'evt_' || n, 'plan.changed', sha256(('' || n)::bytea), 1 from generate_series(1, ${many}) n`,
    `insert into orders (order_id, workflow, source_id, provider_account, state, subject) select 'o' || n, 'plans', 1, 'acct_1', 'late', 'org:o' || n from generate_series(1, ${many}) n`,
    `insert into ledger_decisions (event_key, order_id, workflow, kind, final, from_state, to_state, entitles, reason, evidence, actor, decided_at)
       select event_key, 'o' || event_key, 'plans', 'moved', true, 'unseen', 'late', false, 'late', '{}', 'test', now() - interval '2 days' from inbox_events`,
    `insert into evidence (order_id, source_id, kind, object_id, number, workflow, event_key, is_found, requested_at, fetched_at, body_sha256, body_bytes, body)
       select 'o' || n, 1, 'plan', 'p' || n, 1, 'plans', n, true, now() - interval '2 days', now() - interval '2 days', sha256(${body}), length(${body}), ${body}
       from generate_series(1, ${many}) n`,
    `insert into looked_at (order_id, source_id, kind, object_id, workflow, sent, answered, applied, evidence_id, answered_at)
       select order_id, 1, 'plan', object_id, 'plans', 1, 1, 1, evidence_id, fetched_at from evidence`,
    `insert into findings (finding_id, class, kind, severity, state, owner, evidence, due_at, closed_at)
       select gen_random_uuid(), 'lag', 'mirror_differs', 'medium', 'closed', 'operations', '{}', now(), now() from generate_series(1, ${many})`,
    `update installation set created_at = now() - interval '10 days'`,
    `analyze`,
  ]
  for (const statement of statements) await filling.query(statement)
  await filling.end()
}

describe('a pass over objects that mirrors follow', () => {
  it('reads what is known of each by its key, and what is stale by its time', async () => {
    for (let n = 1; n <= many; n += 1) {
      const status = n % 20 === 0 ? 'active' : 'late'
      const plan = { id: `p${n}`, order: `o${n}`, status }
      provider.present.set(plan.id, plan)
      if (n <= 300) records.held.push(recordOf('plan', plan, 1_800_000))
    }
    const reconciler = await partsOf(hookledger).reconciler({ decides: true })
    plans.length = 0
    const { runs } = await reconciler.pass({ how: 'manual', actor: 'test' })
    // fifteen of the list differ, and a hundred are looked at again because they are old
    expect(runs).toMatchObject([{ state: 'complete', error: null, injected: 15, closed: 15 }])
    expect(provider.asked).toBeGreaterThanOrEqual(100)
    const scans = plans.flatMap(({ text, nodes }) =>
      nodes
        .filter(({ type, table }) => type === 'Seq Scan' && table !== null && bigTables.has(table))
        .map(({ table }) => `${table}: ${text.replaceAll(/\s+/g, ' ').slice(0, 200)}`),
    )
    expect([...new Set(scans)]).toEqual([])
    const indexed = plans.flatMap(({ nodes }) =>
      nodes.filter(({ type }) => type.startsWith('Index')).map(({ table }) => table),
    )
    expect(indexed).toEqual(expect.arrayContaining(['looked_at', 'evidence', 'inbox_events']))
  })
})
