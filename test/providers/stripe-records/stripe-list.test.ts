import { describe, expect, test } from 'vitest'
import { RecordsError } from '../../../src/workflow/records.ts'
import { paidSession } from '../../testing/stripe-double/stripe-client.ts'
import { going, idsOf, serveRecords, troubleOf, type ServedRecords } from './served-records.ts'

/** So many orders paid, one a second. */
function sell(served: ServedRecords, orders: number): void {
  for (let order = 0; order < orders; order++) {
    paidSession(served.double, String(order))
    served.clock.move(1_000)
  }
}

describe('list', () => {
  test('every record of every kind comes once, newest first, over as many pages as it takes', async () => {
    await using served = await serveRecords()
    const { double, records } = served
    sell(served, 30)
    for (const [at, intent] of double.all('payment_intent').slice(0, 12).entries()) {
      double.refund({ paymentIntent: intent.id, amount: 900 })
      if (at % 3 === 0) double.openDispute({ paymentIntent: intent.id })
    }
    const customer = double.createCustomer({ email: 'ada@example.com' })
    const product = double.createProduct({ name: 'Team' })
    const price = double.createPrice({ product: product.id, unitAmount: 2000, interval: 'month' })
    const { id } = double.createSubscription({ customer: customer.id, price: price.id })
    for (let month = 0; month < 9; month++) double.renewSubscription(id)

    for (const { kind } of records.kinds) {
      const made = double.all(kind as 'event')
      const { records: found, pages } = await served.walk(kind, { limit: 7 })
      expect(idsOf(found)).toEqual(idsOf(made).reverse())
      expect(pages).toBe(Math.floor(made.length / 7) + 1)
      expect(found.every((record) => record.kind === kind && record.account === 'stripe')).toBe(
        true,
      )
    }
  })

  test('subscriptions that have ended are listed like the others', async () => {
    await using served = await serveRecords()
    const { double } = served
    const customer = double.createCustomer({ email: 'ada@example.com' }).id
    const product = double.createProduct({ name: 'Team' }).id
    const price = double.createPrice({ product, unitAmount: 2000, interval: 'month' }).id
    const ended = double.createSubscription({ customer, price }).id
    const running = double.createSubscription({ customer, price }).id
    double.cancelSubscription(ended)
    const { records } = await served.walk('subscription')
    expect(idsOf(records)).toEqual([running, ended])
    expect(records.map(({ object }) => object['status'])).toEqual(['active', 'canceled'])
  })

  test('what connects invoices with payments is listed in versions that have it', async () => {
    const kindsIn = async (apiVersion?: string): Promise<string[]> => {
      await using served = await serveRecords({}, apiVersion === undefined ? {} : { apiVersion })
      return served.records.kinds.map(({ kind }) => kind)
    }
    expect(await kindsIn('2025-03-31.basil')).toContain('invoice_payment')
    expect(await kindsIn()).toContain('invoice_payment')
    expect(await kindsIn('2024-06-20')).not.toContain('invoice_payment')
    expect(await kindsIn('2024-06-20')).toContain('subscription')
  })

  test('windows that meet share no record and lose none, wherever they are cut', async () => {
    await using served = await serveRecords()
    const start = served.clock.now()
    sell(served, 12)
    const cuts = [0, 1, 1_500, 2_000, 4_001, 4_999, 7_000, 7_001, 12_000].map(
      (ms) => new Date(start + ms),
    )
    const found: string[] = []
    for (const [at, from] of cuts.slice(0, -1).entries()) {
      const { records } = await served.walk('payment_intent', { from, to: cuts[at + 1]! })
      found.push(...idsOf(records))
      for (const record of records) expect(record.createdAt >= from).toBe(true)
    }
    expect(found.sort()).toEqual(idsOf(served.double.all('payment_intent')).sort())
  })

  test('a window between two seconds asks nothing and has no records', async () => {
    await using served = await serveRecords()
    const from = new Date(served.clock.now() + 100)
    const { records } = await served.walk('event', { from, to: new Date(from.getTime() + 500) })
    expect(records).toEqual([])
    expect(served.double.log.entries('api_call')).toEqual([])
  })

  test('a record that shows late is in a later walk over the same window', async () => {
    await using served = await serveRecords({ listLagMs: 5_000 })
    const { intent } = paidSession(served.double)
    const window = { from: new Date(served.clock.now()), to: new Date(served.clock.now() + 1_000) }
    expect((await served.walk('payment_intent', window)).records).toEqual([])
    served.clock.move(5_000)
    expect(idsOf((await served.walk('payment_intent', window)).records)).toEqual([intent])
  })

  test('another process goes on in the middle of a window', async () => {
    await using served = await serveRecords()
    sell(served, 8)
    const query = { kind: 'payment_intent', account: 'stripe', limit: 5, signal: going }
    const from = new Date(0)
    const to = new Date(served.clock.now())
    const first = await served.records.list({ ...query, from, to, cursor: null })
    const { next } = first
    await using other = await serveRecords()
    const { stripeRecords } =
      await import('../../../src/providers/stripe-records/stripe-records.ts')
    const records = stripeRecords({ base: served.url, key: 'sk_test_123' })
    const second = await records.list({ ...query, from, to, cursor: next })
    expect(idsOf([...first.records, ...second.records])).toEqual(
      idsOf(served.double.all('payment_intent')).reverse(),
    )
    expect(other.double.log.entries('api_call')).toEqual([])
  })
})

/** A second in the window that these tests ask for. */
const created = Date.UTC(2026, 10, 1) / 1000

describe('lists that go wrong', () => {
  test('a page that says it is the last, although it is full, is not believed', async () => {
    await using served = await serveRecords()
    sell(served, 20)
    served.double.fault({
      match: { path: '/v1/payment_intents', continued: false },
      list: 'ends_early',
    })
    const { records } = await served.walk('payment_intent', { limit: 10 })
    expect(records).toHaveLength(20)
  })

  test.each(['repeated', 'empty', 'outside', 'shrunken'] as const)(
    'a further page that is %s is garbage',
    async (list) => {
      await using served = await serveRecords()
      sell(served, 30)
      const [first] = served.double.all('payment_intent')
      served.double.fault({
        match: { path: '/v1/payment_intents', continued: true },
        list,
        once: true,
      })
      const from = new Date(first!.created * 1000 + 1_000)
      const trouble = await troubleOf(served.walk('payment_intent', { limit: 10, from }))
      expect(trouble).toBeInstanceOf(RecordsError)
      expect(trouble).toMatchObject({ trouble: 'garbage' })
    },
  )

  test('the first page again, after others, is garbage', async () => {
    await using served = await serveRecords()
    sell(served, 40)
    const { records } = served
    const query = { kind: 'payment_intent', account: 'stripe', from: new Date(0), signal: going }
    const to = new Date(served.clock.now())
    let cursor: string | null = null
    for (let page = 0; page < 3; page++) {
      cursor = (await records.list({ ...query, to, cursor, limit: 10 })).next
    }
    served.double.fault({ match: { continued: true }, list: 'repeated' })
    await records.list({ ...query, to, cursor: null, limit: 10 })
    const trouble = await troubleOf(records.list({ ...query, to, cursor, limit: 10 }))
    expect(trouble).toMatchObject({ trouble: 'garbage' })
    expect(trouble.message).toContain('comes again')
  })

  test('a list that never ends is garbage', async () => {
    await using served = await serveRecords()
    sell(served, 20)
    served.double.fault({ match: { path: '/v1/payment_intents' }, list: 'never_ends' })
    const trouble = await troubleOf(served.walk('payment_intent', { limit: 10 }))
    expect(trouble).toMatchObject({ trouble: 'garbage' })
  })

  test('a short page that Stripe gives twice is good', async () => {
    await using served = await serveRecords()
    sell(served, 20)
    // without the fault's first meeting, both answers are short in the same way
    served.double.fault({
      match: { path: '/v1/payment_intents', continued: false },
      list: 'shrunken',
    })
    const { records } = await served.walk('payment_intent', { limit: 9 })
    expect(records).toHaveLength(17)
  })

  test('a record that vanishes under the cursor loses the cursor, and the window begins anew', async () => {
    await using served = await serveRecords()
    sell(served, 12)
    const last = served.double.all('payment_intent')[7]!
    const walk = served.walk('payment_intent', {
      limit: 5,
      between: () => served.double.forget(last.id),
    })
    expect(await troubleOf(walk)).toMatchObject({ trouble: 'cursor_lost' })
    const { records } = await served.walk('payment_intent', { limit: 5 })
    expect(idsOf(records)).toEqual(idsOf(served.double.all('payment_intent')).reverse())
    expect(records).toHaveLength(11)
  })

  test('an old cursor that the provider does not know any more is lost', async () => {
    await using served = await serveRecords()
    sell(served, 12)
    served.double.fault({ match: { continued: true }, list: 'cursor_lost' })
    const walk = served.walk('event', { limit: 5 })
    expect(await troubleOf(walk)).toMatchObject({ trouble: 'cursor_lost' })
  })

  test('records made or deleted while paging neither shift the pages nor come twice', async () => {
    await using served = await serveRecords()
    sell(served, 20)
    const before = idsOf(served.double.all('payment_intent'))
    let page = 0
    served.double.forget(before[0]!)
    const { records } = await served.walk('payment_intent', {
      limit: 6,
      to: new Date(served.clock.now()),
      between: () => {
        paidSession(served.double, `new ${page}`)
        served.double.forget(before[19 - page++]!)
      },
    })
    expect(page).toBe(3)
    expect(idsOf(records)).toEqual(before.slice(1).reverse())
  })

  test.each([
    ['a page in HTML', { respond: { status: 200, body: '<html>maintenance</html>' } }],
    ['half an answer', { respond: { status: 200, body: '{"object":"list","data":[{"id"' } }],
    ['no list', { respond: { status: 200, body: { object: 'balance' } } }],
    ['nothing', { respond: { status: 200, body: 'null' } }],
    ['a text', { respond: { status: 200, body: '"ok"' } }],
    ['records without ids', { respond: { status: 200, body: { data: [{}], has_more: false } } }],
    ['no word about the end', { respond: { status: 200, body: { data: [] } } }],
    [
      'records of another kind',
      {
        respond: {
          status: 200,
          body: { data: [{ id: 'cus_1', object: 'customer', created }], has_more: false },
        },
      },
    ],
    ['a redirect', { respond: { status: 302, body: '', headers: { location: '/elsewhere' } } }],
  ])('%s under the list is garbage', async (_, fault) => {
    await using served = await serveRecords()
    sell(served, 2)
    served.double.fault(fault)
    expect(await troubleOf(served.walk('event'))).toMatchObject({
      name: 'RecordsError',
      trouble: 'garbage',
    })
  })
})
