import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../src/testing/stripe-double/stripe-double.ts'
import { emptyTables } from '../support/probe.ts'
import { createReconcileProof, type ReconcileProof } from '../support/reconcile-proof.ts'
import { reconcileViolations } from '../support/reconcile-tables.ts'
import { shopSecret } from '../support/shop.ts'

const minute = 60_000
const pageSize = 10

let proof: ReconcileProof
beforeAll(async () => {
  proof = await createReconcileProof({
    options: {
      reconcile: {
        callsPerSecond: 10_000,
        lagMs: 0,
        pageSize,
        overlapMs: 60 * minute,
        sliceMs: 240 * minute,
      },
    },
  })
})
beforeEach(() => emptyTables(proof.pool))
afterAll(() => proof.close())

/** A provider at which so many licenses were bought so long ago, of which the shop was told nothing. */
function bought(
  ...when: readonly { readonly orders: number; readonly agoMs: number; readonly apartMs?: number }[]
): StripeDouble {
  let clock = Date.now()
  const double = createStripeDouble({ signingSecret: shopSecret, clock: () => clock })
  let order = 1000
  for (const { orders, agoMs, apartMs = 0 } of when) {
    clock = Date.now() - agoMs
    for (let n = 0; n < orders; n++) {
      const session = double.createSession({ clientReferenceId: String(++order) })
      double.completeSession(session.id, { email: `buyer.${order}@example.com` })
      clock += apartMs
    }
  }
  clock = Date.now()
  return double
}

/** What the tables break when every event of the provider must be here. */
async function violations(double: StripeDouble): Promise<readonly string[]> {
  const listed = double
    .all('event')
    .map(({ id, created }) => ({ id, createdAt: new Date(created * 1000) }))
  const found = await reconcileViolations(proof.pool, { listed, delivered: [] })
  return found.map(({ invariant, key }) => `${invariant} ${key}`)
}

/** Events that are here, and licenses that were given. */
async function here(): Promise<{ events: number; licenses: number }> {
  const { rows } = await proof.pool.query<{ events: number; licenses: number }>(
    `select (select count(*)::int from inbox_events where event_id like 'evt_%') as events,
       (select count(*)::int from fulfillment_effects where effect_type = 'license') as licenses`,
  )
  return rows[0] ?? { events: 0, licenses: 0 }
}

async function through(): Promise<readonly unknown[]> {
  const { rows } = await proof.pool.query(
    `select kind, through from reconciliation_checkpoints order by kind`,
  )
  return rows
}

function isNextPage(url: URL, path = '/v1/events'): boolean {
  return url.pathname === path && url.searchParams.has('starting_after')
}

describe('a pass over lists that change while they are read', () => {
  it('has every event of one and the same second, over many pages', async () => {
    const double = bought({ orders: 30, agoMs: 90 * minute })
    proof.ask(double)
    expect((await proof.pass()).complete).toBe(true)
    expect(await violations(double)).toEqual([])
    expect(await here()).toEqual({ events: 150, licenses: 30 })
  })

  it('has every event that is put in before the page that it reads, at the latest by the next pass', async () => {
    const double = bought({ orders: 24, agoMs: 50 * minute, apartMs: 1000 })
    // two of three show only once the list is being read
    let shown = 0
    const hidden = double.all('event').filter((_, at) => at % 3 !== 0)
    const shows = new Map(hidden.map(({ id }, at) => [id, at]))
    double.setListLag(({ id }) => ((shows.get(id) ?? -1) < shown ? 0 : Infinity))
    proof.ask(double, (url) => void (url.pathname === '/v1/events' && (shown += 7)))
    await proof.pass()
    shown = hidden.length
    expect((await proof.pass()).complete).toBe(true)
    expect(await violations(double)).toEqual([])
    expect(await here()).toEqual({ events: 120, licenses: 24 })
  })

  it('begins its slice anew when the record that its page ended with is gone', async () => {
    const double = bought({ orders: 20, agoMs: 90 * minute, apartMs: 1000 })
    let lost: string | undefined
    double.setListLag(({ id }) => (id === lost ? Infinity : 0))
    proof.ask(double, (url) => {
      if (isNextPage(url)) lost ??= url.searchParams.get('starting_after') ?? undefined
    })
    await proof.pass()
    lost = ''
    expect((await proof.pass()).complete).toBe(true)
    expect(await violations(double)).toEqual([])
    expect(await here()).toEqual({ events: 100, licenses: 20 })
  })

  it('has what its provider shows late, as long as that is within the overlap', async () => {
    const double = bought({ orders: 3, agoMs: 40 * minute }, { orders: 3, agoMs: 10 * minute })
    const late = new Set(
      double
        .all('event')
        .slice(0, 15)
        .map(({ id }) => id),
    )
    double.setListLag(({ id }) => (late.has(id) ? Infinity : 0))
    const objects = double.all('checkout.session').map(({ id }) => id)
    const intents = double.all('payment_intent').map(({ id }) => id)
    for (const id of [...objects.slice(0, 3), ...intents.slice(0, 3)]) late.add(id)
    proof.ask(double)
    expect((await proof.pass()).complete).toBe(true)
    expect(await here()).toEqual({ events: 15, licenses: 3 })
    late.clear()
    expect((await proof.pass()).complete).toBe(true)
    expect(await violations(double)).toEqual([])
    expect(await here()).toEqual({ events: 30, licenses: 6 })
  })

  it('has what its provider shows later still, in a deep pass', async () => {
    const double = bought({ orders: 3, agoMs: 150 * minute }, { orders: 3, agoMs: 10 * minute })
    let isLate = true
    const late = Date.now() - 100 * minute
    double.setListLag((object) =>
      isLate && (object as { created: number }).created * 1000 < late ? Infinity : 0,
    )
    proof.ask(double)
    expect((await proof.pass()).complete).toBe(true)
    isLate = false
    expect((await proof.pass()).complete).toBe(true)
    expect(await here()).toEqual({ events: 15, licenses: 3 })
    expect((await proof.pass({ how: 'deep' })).complete).toBe(true)
    expect(await violations(double)).toEqual([])
    expect(await here()).toEqual({ events: 30, licenses: 6 })
  })
})

describe('a pass over lists that lie', () => {
  /** Answers the second page of events with this instead. */
  const lies: readonly (readonly [string, (double: StripeDouble) => object | string])[] = [
    ['HTML under 200', () => '<html>welcome</html>'],
    ['an empty page that says there is more', () => list([], true)],
    ['the first page again', (double) => list(newest(double).slice(0, pageSize), true)],
    [
      'records of another window',
      (double) => list([{ ...newest(double).at(-1), created: 5 }], false),
    ],
  ]
  const list = (data: readonly unknown[], more: boolean): object => ({
    object: 'list',
    data,
    has_more: more,
    url: '/v1/events',
  })
  const newest = (double: StripeDouble): object[] => [...double.all('event')].reverse()

  it.each(lies)(
    'moves no checkpoint past %s, and has everything by the next pass',
    async (_, lie) => {
      const double = bought({ orders: 12, agoMs: 90 * minute })
      let planted = false
      proof.ask(double, (url) => {
        if (planted || !isNextPage(url)) return
        planted = true
        double.fault({
          match: { path: '/v1/events' },
          once: true,
          respond: { status: 200, body: lie(double) },
        })
      })
      const first = await proof.pass()
      expect(planted).toBe(true)
      expect(await violations(double)).not.toContainEqual(expect.stringContaining('I13'))
      if (!first.complete) expect((await proof.pass()).complete).toBe(true)
      expect(await violations(double)).toEqual([])
      expect(await here()).toEqual({ events: 60, licenses: 12 })
    },
  )

  it('does not believe a full page that says it is the last', async () => {
    const double = bought({ orders: 12, agoMs: 90 * minute })
    proof.ask(double)
    double.fault({
      match: { path: '/v1/events' },
      once: true,
      respond: { status: 200, body: list(newest(double).slice(0, pageSize), false) },
    })
    await proof.pass()
    expect((await proof.pass()).complete).toBe(true)
    expect(await violations(double)).toEqual([])
    expect(await here()).toEqual({ events: 60, licenses: 12 })
  })

  it('says that it is not complete, and moves nothing, while the cursor is lost each time', async () => {
    const double = bought({ orders: 12, agoMs: 90 * minute })
    const missing = {
      error: {
        type: 'invalid_request_error',
        code: 'resource_missing',
        param: 'starting_after',
        message: 'No such event',
      },
    }
    proof.ask(double, (url) => {
      if (isNextPage(url))
        double.fault({
          match: { path: '/v1/events' },
          once: true,
          respond: { status: 404, body: missing },
        })
    })
    const report = await proof.pass()
    expect(report.complete).toBe(false)
    expect(report.runs.map(({ error }) => error)).toEqual([expect.stringMatching(/cursor|event/)])
    expect(await violations(double)).not.toContainEqual(expect.stringContaining('I13'))
    proof.ask(double)
    expect((await proof.pass()).complete).toBe(true)
    expect(await violations(double)).toEqual([])
  })

  it('moves nothing while the provider refuses the key, and says so', async () => {
    const double = bought({ orders: 2, agoMs: 90 * minute })
    proof.ask(double)
    const fault = double.fault({ match: { path: '/v1/events' }, respond: { status: 401 } })
    const report = await proof.pass()
    expect(report.complete).toBe(false)
    expect(await violations(double)).not.toContainEqual(expect.stringContaining('I13'))
    fault.remove()
    expect((await proof.pass()).complete).toBe(true)
    expect(await here()).toEqual({ events: 10, licenses: 2 })
    expect(await through()).not.toEqual([])
  })
})
