/** Comparison of a window that holds all of a grown database: by time and by key, and through no big table. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, stripe, type Hookledger } from 'hookledger'
import { comparisonOf } from '../../src/compose/comparison.ts'
import { partsOf } from '../../src/hookledger.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { createExplainingPool, type CapturedPlan } from '../support/captured-plans.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import { probeSecret, probeWorkflow } from '../support/probe.ts'
import { scriptedRecords } from '../support/scripted-records.ts'
import type { TestDatabase } from '../support/test-database.ts'

const many = 6000
const hour = 3_600_000
const bigTables = new Set([
  'inbox_events',
  'ledger_decisions',
  'ledger_payments',
  'fulfillment_effects',
  'entitlements',
  'orders',
  'order_names',
  'findings',
])

let database: TestDatabase
let hookledger: Hookledger
let plans: CapturedPlan[]
let pool: ReturnType<typeof createExplainingPool>['pool']
const records = scriptedRecords({
  kinds: [{ kind: 'payment', holds: 'objects', reachMs: null }],
  // what no list confirmed is asked for, and was paid
  factsOf: ({ id }) => [
    { fact: 'payment', id, standing: 'paid', amount: 4900n, currency: 'USD', refunded: 0n },
  ],
})

beforeAll(async () => {
  database = await createHookledgerDatabase()
  const explaining = createExplainingPool(database)
  ;({ plans, pool } = explaining)
  const options = { account: 'acct_1', environment: 'test' as const, signingSecrets: [probeSecret] }
  hookledger = createHookledger({
    environment: 'test',
    sources: { probe: Object.freeze({ ...stripe(options), records }) },
    workflows: [probeWorkflow()],
    database: pool,
  })
  await partsOf(hookledger).register()
  await fill()
})
afterAll(async () => {
  await hookledger.stop()
  await database.drop()
})

/** Everything was decided a moment ago. */
async function fill(): Promise<void> {
  const filling = database.pool({ max: 1, options: '-c search_path=hookledger' })
  const statements = [
    `insert into sources (provider, provider_account, environment) values ('stripe', 'acct_1', 'test')`,
    `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
       select 1, 'evt_' || n, 'pay', '\\x00', 1 from generate_series(1, ${many}) n`,
    `insert into orders (order_id, workflow, source_id, state) select 'o-' || n, 'probe', 1, 'paid' from generate_series(1, ${many}) n`,
    `insert into ledger_decisions (event_key, order_id, workflow, kind, final, from_state, to_state, entitles, reason, evidence, actor)
       select event_key, 'o-' || event_key, 'probe', 'fulfilled', true, 'pending', 'paid', true, 'paid',
         jsonb_build_object('granted', jsonb_build_array('user:o-' || event_key || ' pro')), 'test' from inbox_events`,
    `insert into ledger_payments (source_id, payment_id, order_id, amount, currency, applied, decision_id)
       select 1, 'pay_' || order_id, order_id, 4900, 'USD', true, decision_id from ledger_decisions`,
    `insert into fulfillment_effects (order_id, effect_type, decision_id) select order_id, 'grant', decision_id from ledger_decisions`,
    `insert into entitlements (order_id, subject, entitlement, active, granted_by, changed_by)
       select order_id, 'user:' || order_id, 'pro', true, decision_id, decision_id from ledger_decisions`,
    `insert into findings (finding_id, class, kind, severity, state, owner, evidence, due_at, closed_at)
       select gen_random_uuid(), 'lag', 'tampered', 'medium', 'closed', 'operations', '{}', now(), now() from generate_series(1, ${many})`,
  ]
  for (const statement of statements) await filling.query(statement)
  await filling.query('analyze')
  await filling.end()
}

describe('a comparison of everything that there is', () => {
  it('goes through no big table, and reads what is in the window by its time', async () => {
    const parts = partsOf(hookledger)
    const installed = await parts.installation()
    const db = createDatabase(pool, 'hookledger')
    const { comparison } = comparisonOf({
      db,
      installed,
      config: parts.config,
      signals: parts.signals,
    })
    const source = parts.config.sources.get('probe')
    if (source === undefined) throw new Error('no source')
    plans.length = 0
    const [from, to] = [new Date(Date.now() - hour), new Date(Date.now() + hour)]
    const signal = new AbortController().signal
    expect(await comparison.checkLocally({ from, to, signal })).toMatchObject({
      compared: many,
      opened: 0,
      closed: 0,
    })
    const seen = comparison.newSeen()
    let asked = 0
    const compared = await comparison.compareWindow({
      source,
      seen,
      localFrom: from,
      to,
      settledBefore: to,
      signal,
      fetch: async (_, { kind, id, account }) => {
        asked++
        return { kind, id, account, createdAt: from, object: {} }
      },
    })
    expect([asked, compared.opened]).toEqual([many, 0])
    const scans = plans.flatMap(({ text, nodes }) =>
      nodes
        .filter(({ type, table }) => type === 'Seq Scan' && table !== null && bigTables.has(table))
        .map(({ table }) => `${table}: ${text.replaceAll(/\s+/g, ' ').slice(0, 160)}`),
    )
    expect([...new Set(scans)]).toEqual([])
    const indexes = new Set(plans.flatMap(({ nodes }) => nodes.map(({ index }) => index)))
    expect([...indexes]).toEqual(
      expect.arrayContaining([
        'ledger_decisions_decided_idx',
        'ledger_payments_recorded_idx',
        expect.stringMatching(/^orders_opened_/),
      ]),
    )
  })
})
