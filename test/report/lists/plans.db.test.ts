/**
 * How the database finds what the console asks for, by the plans that really ran: along an index, and no further than
 * the page, or than the stretch that a filter without an index may look through. A backlog changes nothing.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { fillLedger } from '../../../bench/console-data.ts'
import { partsOf } from '../../../src/hookledger.ts'
import { gauges } from '../../../src/report/gauges.ts'
import { mostLooked } from '../../../src/report/lists/keyset.ts'
import { createExplainingPool, type CapturedPlan } from '../../support/captured-plans.ts'
import { startApi, type TestApi } from '../../support/console-api.ts'
import { createHookledgerDatabase } from '../../support/hookledger-database.ts'
import { shopOptions } from '../../support/shop.ts'
import type { TestDatabase } from '../../support/test-database.ts'

type Query = Readonly<Record<string, string>>
interface Page {
  readonly items: readonly unknown[]
  readonly next: string | null
}

const events = 180_000
const orders = 70_000

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
  await fillLedger(admin, 'hookledger', { events, orders, waiting: 60_000 })
  await admin.query(
    `insert into hookledger.inbox_ignored (event_key, received_on, reason, event_type)
     select event_key, current_date, 'no workflow knows it', event_type from hookledger.inbox_events where event_key % 3 = 0`,
  )
  await admin.query('vacuum analyze')
  api = await startApi(hookledger)
}, 180_000)
afterAll(async () => {
  await hookledger.stop()
  await database.drop()
})

/** What grows with events, orders, or a backlog of them, and is never gone through for a page. */
const big: ReadonlySet<string | null> = new Set([
  'inbox_events',
  'inbox_ready',
  'inbox_ignored',
  'deliveries',
  'orders',
  'order_names',
  'ledger_decisions',
  'ledger_payments',
  'fulfillment_effects',
  'entitlements',
  'outbox_operations',
  'outbox_attempts',
  'outbox_answers',
  'payloads',
])

/** What the statements read of big tables: by scans of whole tables, and in rows. */
function readOf(captured: readonly CapturedPlan[]): { scans: string[]; rows: number } {
  const nodes = captured.flatMap(({ text, nodes }) => nodes.map((node) => ({ ...node, text })))
  const ofBig = nodes.filter(({ table }) => big.has(table))
  return {
    scans: ofBig
      .filter(({ type }) => type === 'Seq Scan')
      .map(({ table, text }) => `${table}: ${text.slice(0, 120)}`),
    rows: ofBig.reduce((sum, { rows }) => sum + rows, 0),
  }
}

async function ask<Answer>(path: string, query: Query): Promise<Answer> {
  plans.length = 0
  const answer = await api.get<Answer>(path, query)
  expect(plans.length).toBeGreaterThan(0)
  return answer
}

/** Rows of big tables that a page of 50 may cost: a few probes for each of them, and ids by their beginning. */
const pageCosts = 5_000

const found: readonly (readonly [string, Query])[] = [
  ['/events', {}],
  ['/events', { state: 'pending' }],
  ['/events', { state: 'deferred' }],
  ['/events', { state: 'dead' }],
  ['/events', { state: 'processed' }],
  ['/events', { state: 'ignored' }],
  ['/events', { order_id: 'order-77' }],
  ['/events', { order_id: 'order-77', state: 'processed' }],
  ['/events', { text: 'evt_77' }],
  ['/events', { text: 'evt_77123' }],
  ['/events', { type: 'payment_intent.succeeded' }],
  ['/deliveries', {}],
  ['/deliveries', { verdict: 'duplicate' }],
  ['/rejections', {}],
  ['/orders', {}],
  ['/orders', { text: 'order-77' }],
  ['/orders', { text: 'order-7777' }],
  ['/orders', { subject: 'user:77' }],
  ['/orders', { state: 'paid' }],
  ['/decisions', {}],
  ['/decisions', { order_id: 'order-77' }],
  ['/decisions', { kind: 'absorbed' }],
  ['/effects', {}],
  ['/effects', { order_id: 'order-77' }],
  ['/effects', { type: 'license' }],
  ['/payments', {}],
  ['/payments', { order_id: 'order-77' }],
  ['/payments', { applied: 'true' }],
  ['/entitlements', {}],
  ['/entitlements', { subject: 'user:77' }],
  ['/entitlements', { order_id: 'order-77' }],
  ['/entitlements', { in_force: 'true' }],
  ['/operations', {}],
  ['/operations', { state: 'unfinished' }],
  ['/operations', { state: 'dead' }],
  ['/operations', { order_id: 'order-77' }],
  ['/operations', { destination: 'email' }],
  ['/findings', {}],
  ['/findings', { state: 'unfinished' }],
  ['/acts', {}],
  ['/acts', { actor: 'bench' }],
  ['/search', { q: 'order-77' }],
  ['/search', { q: 'evt_77' }],
  ['/search', { q: 'user:77' }],
  ['/search', { q: 'pi_77' }],
]

describe('the first page of', () => {
  it.each(found)(
    '%s %j is read by an index, and no further than it is long',
    async (list, query) => {
      const { items } = await ask<Page>(list, query)
      expect(items.length).toBeGreaterThan(0)
      const { scans, rows } = readOf(plans)
      expect(scans).toEqual([])
      // where a filter is not in the index, it is found out how far it may look
      expect(rows).toBeLessThan(pageCosts + (isLooked(query) ? mostLooked : 0))
    },
  )

  it.each<[string, Query]>([
    ['/search', { q: 'nothing-of-that-name' }],
    ['/orders', { text: 'nothing' }],
    ['/orders', { subject: 'nobody' }],
    ['/events', { text: 'nothing' }],
    ['/events', { order_id: 'nothing' }],
    ['/entitlements', { subject: 'nobody' }],
    ['/effects', { order_id: 'nothing' }],
    ['/operations', { order_id: 'nothing' }],
  ])('%s %j is empty at once, since nothing has that name', async (list, query) => {
    const { items, next = null } = await ask<Page>(list, query)
    expect([items, next]).toEqual([[], null])
    const { scans, rows } = readOf(plans)
    expect(scans).toEqual([])
    expect(rows).toBeLessThan(pageCosts)
  })
})

describe('a filter that no index knows, and that nothing fits', () => {
  it.each<[string, Query]>([
    ['/events', { type: 'no.such' }],
    ['/events', { source: 'none' }],
    ['/events', { state: 'pending', type: 'no.such' }],
    ['/events', { state: 'ignored', type: 'no.such' }],
    ['/decisions', { kind: 'no-such' }],
    ['/decisions', { workflow: 'none' }],
    ['/effects', { type: 'none' }],
    ['/effects', { reference: 'none' }],
    ['/payments', { applied: 'false' }],
    ['/orders', { state: 'none' }],
    ['/orders', { workflow: 'none' }],
    ['/entitlements', { entitlement: 'none' }],
    ['/operations', { destination: 'none' }],
    ['/operations', { state: 'discarded' }],
  ])('%s %j looks through a bounded stretch, and goes on from there', async (list, query) => {
    const first = await ask<Page>(list, query)
    expect(first.items).toEqual([])
    expect(first.next).not.toBeNull()
    const read = readOf(plans)
    expect(read.scans).toEqual([])
    // once to find where the stretch ends, once through it, and through the events that a list of a state names
    expect(read.rows).toBeLessThan(3 * mostLooked + pageCosts)
    let pages = 1
    for (let { next } = first; next !== null; pages += 1) {
      const page: Page = await api.get<Page>(list, { ...query, cursor: next })
      expect(page.items).toEqual([])
      next = page.next
    }
    expect(pages).toBeLessThanOrEqual(1 + Math.ceil(events / mostLooked))
  })

  it('finds what lies beyond the stretch on a later page, once', async () => {
    const all: unknown[] = []
    let cursor: string | null = ''
    let pages = 0
    for (; cursor !== null; pages += 1) {
      const page: Page = await api.get<Page>('/decisions', {
        kind: 'contradicted',
        ...(cursor !== '' && { cursor }),
      })
      all.push(...page.items.map((item) => (item as { decision_id: string }).decision_id))
      cursor = page.next
    }
    const { rows } = await database
      .pool()
      .query<{ id: string }>(
        `select decision_id::text as id from hookledger.ledger_decisions where kind = 'contradicted' order by decision_id desc`,
      )
    expect(pages).toBeGreaterThan(1)
    expect(rows.length).toBeGreaterThan(0)
    expect(all).toEqual(rows.map(({ id }) => id))
  })
})

describe('a page of last month', () => {
  it.each<[string]>([['/events'], ['/deliveries']])(
    '%s begins where the month ends, and not with today',
    async (list) => {
      const day = (ago: number): string => new Date(Date.now() - ago * 86_400_000).toISOString()
      const { items } = await ask<Page>(list, { from: day(31), to: day(30) })
      expect(items).toHaveLength(50)
      const { scans, rows } = readOf(plans)
      expect(scans).toEqual([])
      // the minutes and hours around both ends are found by block ranges
      expect(rows).toBeLessThan(mostLooked)
    },
  )
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
    '/operations',
  ])('%s is found as quickly, from where the one before ended', async (list) => {
    let cursor = ''
    for (let page = 0; page < 4; page += 1) {
      const asked = await api.get<{ next: string }>(list, {
        limit: '200',
        ...(cursor !== '' && { cursor }),
      })
      cursor = asked.next
    }
    await ask(list, { cursor })
    const { scans, rows } = readOf(plans)
    expect(scans).toEqual([])
    expect(rows).toBeLessThan(pageCosts)
  })
})

describe('what is not a list', () => {
  it.each<[string, Query]>([
    ['/overview', {}],
    ['/overview/series', { window: '1h' }],
    ['/orders/order-77', {}],
    ['/orders/order-77/graph', {}],
    ['/subjects/user:77', {}],
    ['/events/stripe%3Aacct_bench%3Atest/evt_77', {}],
  ])('%s %j goes through no table that grows', async (path, query) => {
    await ask(path, query)
    const { scans, rows } = readOf(plans)
    // a backlog is counted
    expect(scans.filter((scan) => !scan.startsWith('inbox_ready'))).toEqual([])
    expect(rows).toBeLessThan(path.startsWith('/overview') ? events * 2 : pageCosts)
  })
})

describe('the figures of /metrics', () => {
  it('are read from small tables, and from the lists of what is not finished', async () => {
    plans.length = 0
    const families = await gauges(partsOf(hookledger).database())
    expect(families.find(({ name }) => name === 'inbox_backlog')?.values).toContainEqual({
      labels: ['ready'],
      value: 60_000,
    })
    const { scans, rows } = readOf(plans)
    // a backlog is counted
    expect(scans.filter((scan) => !scan.startsWith('inbox_ready'))).toEqual([])
    expect(rows).toBeLessThan(60_000 + pageCosts)
  })
})

function isLooked(query: Query): boolean {
  return Object.keys(query).some((name) =>
    ['type', 'state', 'kind', 'applied', 'in_force', 'destination', 'text', 'verdict'].includes(
      name,
    ),
  )
}
