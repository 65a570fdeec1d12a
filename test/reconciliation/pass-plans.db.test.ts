/** A pass over a database that has grown: whatever it runs looks rows up and goes through no big table. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, stripe, type Hookledger } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { createExplainingPool, type CapturedPlan } from '../support/captured-plans.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import { probe, probeSecret, probeWorkflow } from '../support/probe.ts'
import { listed, scriptedRecords } from '../support/scripted-records.ts'
import type { TestDatabase } from '../support/test-database.ts'

const many = 20_000
const bigTables = new Set([
  'inbox_events',
  'deliveries',
  'payloads_default',
  'ledger_decisions',
  'ledger_payments',
  'fulfillment_effects',
  'entitlements',
  'orders',
  'order_names',
  'findings',
  'reconciliation_runs',
])

let database: TestDatabase
let hookledger: Hookledger
let plans: CapturedPlan[]
const records = scriptedRecords({ pageSize: 100 })

beforeAll(async () => {
  database = await createHookledgerDatabase()
  const explaining = createExplainingPool(database)
  plans = explaining.plans
  const source = stripe({
    account: 'acct_1',
    environment: 'test',
    signingSecrets: [probeSecret],
  })
  hookledger = createHookledger({
    environment: 'test',
    sources: { probe: Object.freeze({ ...source, records }) },
    workflows: [probeWorkflow()],
    reconcile: { lagMs: 0, callsPerSecond: 10_000 },
    database: explaining.pool,
  })
  await partsOf(hookledger).register()
  await fill()
  for (let at = 0; at < 150; at++) {
    const body = probe('note', { id: `evt_new_${at}`, order: `new-${at}` })
    records.held.push(listed(body, 60_000 + at * 1000))
  }
})
afterAll(async () => {
  await hookledger.stop()
  await database.drop()
})

/** Fills the tables with what was decided long ago. */
async function fill(): Promise<void> {
  const pool = database.pool({ max: 1, options: '-c search_path=hookledger' })
  const statements = [
    `update installation set created_at = now() - interval '10 days'`,
    `insert into sources (provider, provider_account, environment) values ('stripe', 'acct_1', 'test')`,
    `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes, received_at)
       select 1, 'evt_old_' || n, 'note', '\\x00', 1, now() - interval '5 days' from generate_series(1, ${many}) n`,
    `insert into deliveries (source_id, event_id, body_sha256) select source_id, event_id, body_sha256 from inbox_events`,
    `insert into orders (order_id, workflow, source_id, state, opened_at, updated_at)
       select 'old-' || n, 'probe', 1, 'paid', now() - interval '5 days', now() - interval '5 days' from generate_series(1, ${many}) n`,
    `insert into ledger_decisions (event_key, order_id, workflow, kind, final, from_state, to_state, entitles, reason, actor, decided_at, evidence)
       select event_key, 'old-' || event_key, 'probe', 'fulfilled', true, 'pending', 'paid', true, 'as it was', 'test', now() - interval '5 days',
         jsonb_build_object('granted', jsonb_build_array('user:old-' || event_key || ' pro'))
       from inbox_events`,
    `insert into ledger_payments (source_id, payment_id, order_id, amount, currency, applied, decision_id, recorded_at)
       select 1, 'pay_old-' || event_key, order_id, 4900, 'USD', true, decision_id, decided_at from ledger_decisions`,
    `insert into fulfillment_effects (order_id, effect_type, decision_id, recorded_at)
       select order_id, 'grant', decision_id, decided_at from ledger_decisions`,
    `insert into entitlements (order_id, subject, entitlement, active, granted_by, changed_by)
       select order_id, 'user:' || order_id, 'pro', true, decision_id, decision_id from ledger_decisions`,
    `insert into findings (finding_id, class, kind, severity, state, owner, evidence, due_at, closed_at)
       select gen_random_uuid(), 'lag', 'event_missing', 'medium', 'closed', 'operations', '{}', now(), now() from generate_series(1, ${many})`,
    `insert into reconciliation_runs (run_id, source, how, actor, state, started_at, finished_at)
       select gen_random_uuid(), 'probe', 'scheduled', 'x', 'complete', now() - n * interval '5 minutes', now() from generate_series(1, ${many}) n`,
    `insert into reconciliation_checkpoints (source_id, kind, through) values (1, 'event', now() - interval '1 hour')`,
  ]
  for (const statement of statements) await pool.query(statement)
  await pool.query('analyze')
  await pool.end()
}

describe('a pass over a database that has grown', () => {
  it('goes through no big table, while it puts in and when it finds nothing', async () => {
    plans.length = 0
    const reconciler = await partsOf(hookledger).reconciler({ decides: true })
    const first = await reconciler.pass({ how: 'manual', actor: 'test' })
    expect(first.runs[0]).toMatchObject({ state: 'complete', injected: 150 })
    const second = await reconciler.pass({ how: 'manual', actor: 'test' })
    expect(second.runs[0]).toMatchObject({ state: 'complete', injected: 0 })
    const scans = plans.flatMap(({ text, nodes }) =>
      nodes
        .filter(({ type, table }) => type === 'Seq Scan' && table !== null && bigTables.has(table))
        .map(({ table }) => `${table}: ${text.replaceAll(/\s+/g, ' ').slice(0, 160)}`),
    )
    expect([...new Set(scans)]).toEqual([])
    expect(plans.some(({ text }) => text.includes('reconciliation_checkpoints'))).toBe(true)
  })
})
