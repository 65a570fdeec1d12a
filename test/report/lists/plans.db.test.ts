/** How the database finds the first page of each list: along an index and no further than the page, by plan. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { fillLedger } from '../../../bench/console-data.ts'
import { partsOf } from '../../../src/hookledger.ts'
import { createExplainingPool, type CapturedPlan } from '../../support/captured-plans.ts'
import { startApi, type TestApi } from '../../support/console-api.ts'
import { createHookledgerDatabase } from '../../support/hookledger-database.ts'
import { shopOptions } from '../../support/shop.ts'
import type { TestDatabase } from '../../support/test-database.ts'

let database: TestDatabase
let hookledger: Hookledger
let api: TestApi
let plans: CapturedPlan[]
beforeAll(async () => {
  database = await createHookledgerDatabase()
  const admin = database.pool()
  const explaining = createExplainingPool(database)
  plans = explaining.plans
  hookledger = createHookledger({ ...shopOptions, database: explaining.pool })
  await partsOf(hookledger).register()
  await fillLedger(admin, 'hookledger', { events: 60_000, orders: 15_000 })
  await admin.query(
    `insert into hookledger.outbox_operations (operation_id, destination, order_id, name, request_sha256, request_bytes, promise, window_ms)
     select gen_random_uuid(), 'email', 'order-' || n, 'license', sha256(n::text::bytea), 100, 'once', 1000 from generate_series(1, 15000) n`,
  )
  await admin.query('vacuum analyze')
  api = await startApi(hookledger)
}, 120_000)
afterAll(async () => {
  await hookledger.stop()
  await database.drop()
})

/** What grows with every order, and is never gone through for a page. */
const big = [
  'inbox_events',
  'deliveries',
  'orders',
  'order_names',
  'ledger_decisions',
  'ledger_payments',
  'fulfillment_effects',
  'entitlements',
  'outbox_operations',
  'payloads',
]

describe('the first page of', () => {
  it.each<[string, Readonly<Record<string, string>>]>([
    ['/events', {}],
    ['/events', { state: 'pending' }],
    ['/events', { state: 'dead' }],
    ['/events', { state: 'processed' }],
    ['/events', { order_id: 'order-77' }],
    ['/events', { text: 'evt_77' }],
    ['/deliveries', {}],
    ['/orders', {}],
    ['/orders', { text: 'order-77' }],
    ['/orders', { subject: 'user:77' }],
    ['/orders', { state: 'paid' }],
    ['/decisions', {}],
    ['/decisions', { order_id: 'order-77' }],
    ['/effects', {}],
    ['/effects', { order_id: 'order-77' }],
    ['/payments', {}],
    ['/payments', { order_id: 'order-77' }],
    ['/entitlements', {}],
    ['/entitlements', { subject: 'user:77' }],
    ['/operations', {}],
    ['/findings', { state: 'unfinished' }],
    ['/acts', {}],
    ['/search', { q: 'order-77' }],
    ['/search', { q: 'evt_77' }],
    ['/search', { q: 'user:77' }],
  ])('%s %j goes through no table that grows', async (list, query) => {
    plans.length = 0
    const { items } = await api.get<{ items: unknown[] }>(list, query)
    if (
      list !== '/findings' &&
      list !== '/acts' &&
      list !== '/operations' &&
      query['state'] !== 'dead' &&
      query['state'] !== 'pending'
    )
      expect(items.length).toBeGreaterThan(0)
    expect(plans.length).toBeGreaterThan(0)
    const through = plans.flatMap(({ text, nodes }) =>
      nodes
        .filter(({ type, table }) => type === 'Seq Scan' && table !== null && big.includes(table))
        .map(({ table }) => `${table}: ${text.slice(0, 120)}`),
    )
    expect(through).toEqual([])
  })
})

describe('a later page of', () => {
  it.each([
    '/events',
    '/deliveries',
    '/orders',
    '/decisions',
    '/effects',
    '/payments',
    '/entitlements',
  ])('%s is found as quickly, from where the one before ended', async (list) => {
    let cursor = ''
    for (let page = 0; page < 4; page += 1) {
      const asked = await api.get<{ next: string }>(list, {
        limit: '200',
        ...(cursor !== '' && { cursor }),
      })
      cursor = asked.next
    }
    plans.length = 0
    await api.get(list, { cursor })
    const through = plans.flatMap(({ nodes }) =>
      nodes.filter(
        ({ type, table }) => type === 'Seq Scan' && table !== null && big.includes(table),
      ),
    )
    expect(through).toEqual([])
  })
})
