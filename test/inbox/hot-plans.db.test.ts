import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { claimStatement } from '../../src/inbox/claim.ts'
import { signStripe } from '../../src/testing/sign.ts'
import {
  checkoutSessionCompleted,
  paymentIntentSucceeded,
  refundCreated,
  stripeBody,
} from '../../src/testing/stripe-events.ts'
import { createExplainingPool, type CapturedPlan } from '../support/captured-plans.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import { shopOptions, shopSecret } from '../support/shop.ts'
import type { TestDatabase } from '../support/test-database.ts'

/** Rows of each table: enough that a scan would be the planner's honest choice for small ones only. */
const many = 20_000

const bigTables = [
  'inbox_events',
  'inbox_ready',
  'inbox_deferred',
  'inbox_delayed',
  'inbox_waits',
  'inbox_dead',
  'deliveries',
  'payloads_default',
  'ledger_decisions',
  'ledger_payments',
  'fulfillment_effects',
  'entitlements',
  'orders',
  'order_names',
]

let database: TestDatabase
let hookledger: Hookledger
let plans: CapturedPlan[]

beforeAll(async () => {
  database = await createHookledgerDatabase()
  const explaining = createExplainingPool(database)
  plans = explaining.plans
  hookledger = createHookledger({ ...shopOptions, database: explaining.pool })
  await partsOf(hookledger).register()
  await fill(database)
})
afterAll(async () => {
  await hookledger.stop()
  await database.drop()
})

/** Fills the tables behind the engine's back, with statistics as they were when all was empty. */
async function fill(target: TestDatabase): Promise<void> {
  const pool = target.pool({ max: 1, options: '-c search_path=hookledger' })
  const statements = [
    `insert into sources (provider, provider_account, environment) values ('stripe', 'old', 'test')`,
    `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
       select 1, 'evt_old_' || n, 'payment_intent.succeeded', '\\x00', 1 from generate_series(1, ${many}) n`,
    `insert into deliveries (source_id, event_id, body_sha256) select source_id, event_id, body_sha256 from inbox_events`,
    `insert into orders (order_id, workflow, state) select 'old-' || n, 'license', 'paid' from generate_series(1, ${many}) n`,
    `insert into order_names (source_id, kind, name, order_id) select 1, 'payment_intent', 'pi_old_' || n, 'old-' || n from generate_series(1, ${many}) n`,
    `insert into ledger_decisions (event_key, order_id, workflow, kind, final, to_state, entitles, reason, actor)
       select event_key, 'old-' || event_key, 'license', 'fulfilled', true, 'paid', true, 'as it was', 'test' from inbox_events`,
    `insert into ledger_payments (source_id, payment_id, order_id, amount, currency, applied, decision_id)
       select 1, 'pi_old_' || event_key, order_id, 4900, 'USD', true, decision_id from ledger_decisions`,
    `insert into fulfillment_effects (order_id, effect_type, decision_id) select order_id, 'license', decision_id from ledger_decisions`,
    `insert into entitlements (order_id, subject, entitlement, active, granted_by, changed_by)
       select order_id, 'email:' || order_id, 'pro', true, decision_id, decision_id from ledger_decisions`,
    `insert into inbox_deferred (event_key, received_on, attempts, deadline_at, waits_for, at_deadline)
       select event_key + 1000000, current_date, 0, now() + interval '1 day', 'a name', 'finding' from inbox_events`,
    `insert into inbox_waits (kind, source_id, name, event_key) select 'payment_intent', 1, 'pi_new_' || event_key, event_key from inbox_deferred`,
    `insert into inbox_delayed (event_key, received_on, attempts, due_at, last_error)
       select event_key + 2000000, current_date, 1, now() + interval '1 day', 'failed' from inbox_events`,
    `insert into inbox_dead (event_key, received_on, reason, attempts) select event_key + 3000000, current_date, 'dead', 10 from inbox_events`,
  ]
  for (const statement of statements) await pool.query(statement)
}

async function deliver(event: object): Promise<void> {
  const body = stripeBody(event)
  const headers = signStripe(body, shopSecret)
  const outcome = await hookledger.ingest({ source: 'stripe', headers, rawBody: Buffer.from(body) })
  expect(outcome.status).toBe(200)
}

/** Everything that happens to events: new, twice, before their order, woken by a name. */
async function live(order: string): Promise<void> {
  const key = { order, email: `${order}@example.com` }
  await deliver(refundCreated({ ...key, amount: 100, id: `re_${order}` }))
  await hookledger.runOnce({ budgetMs: 5000 })
  for (const event of [
    paymentIntentSucceeded(key),
    checkoutSessionCompleted(key),
    checkoutSessionCompleted(key),
  ]) {
    await deliver(event)
  }
  await hookledger.runOnce({ budgetMs: 5000 })
  expect(await hookledger.entitlements(`email:${order}@example.com`)).toHaveLength(1)
}

/** Retention runs once an hour and may read what it wants. */
const isUpkeep = (text: string): boolean =>
  /payloads_held|payloads_default|received_at,\s+exists/.test(text)

const scanned = ({ nodes }: CapturedPlan): string[] =>
  nodes.flatMap(({ type, table }) =>
    type === 'Seq Scan' && table !== null && bigTables.includes(table) ? [table] : [],
  )

describe('the plans of hot statements', () => {
  it.each([
    ['stale statistics', 'never'],
    ['fresh statistics', 'analyzed'],
  ])('read no big table from end to end, with %s', async (_, when) => {
    if (when === 'analyzed') await database.pool({ max: 1 }).query('analyze')
    plans.length = 0
    await live(`order-${when}`)
    const hot = plans.filter(
      ({ text }) => /inbox_|ledger_|orders|order_names|entitlements/.test(text) && !isUpkeep(text),
    )
    expect(hot.length).toBeGreaterThan(20)
    const scans = hot.flatMap((plan) =>
      scanned(plan).map((table) => `${table}: ${plan.text.slice(0, 200)}`),
    )
    expect(scans).toEqual([])
    // every kind of access was really seen
    for (const part of [
      'for update skip locked',
      'claimed_events',
      'order_names n',
      'no key update',
      'ledger_payments p where',
      'insert into',
      'inbox_delayed',
      'current_entitlements',
    ]) {
      expect(
        plans.some(({ text }) => text.includes(part)),
        part,
      ).toBe(true)
    }
  })

  it.each(['stale', 'fresh'])(
    'claim in the order of the index, without a sort (%s statistics)',
    async (when) => {
      const pool = database.pool({ max: 1, options: '-c search_path=hookledger' })
      await pool.query('delete from inbox_ready')
      if (when === 'stale') await pool.query('analyze inbox_ready')
      await pool.query(
        `insert into inbox_ready (event_key, received_on) select event_key, current_date from inbox_events`,
      )
      if (when === 'fresh') await pool.query('analyze inbox_ready')
      plans.length = 0
      await hookledger.runOnce({ budgetMs: 1 })
      await hookledger.runOnce({ budgetMs: 5000 })
      const claims = plans.filter(({ text }) => text === claimStatement('"hookledger".', 'next'))
      expect(claims.length).toBeGreaterThan(0)
      for (const { nodes } of claims) {
        const types = nodes.map(({ type }) => type)
        expect(types.some((type) => /^Index/.test(type))).toBe(true)
        expect(types).not.toContain('Sort')
        expect(types).not.toContain('Seq Scan')
      }
    },
  )
})
