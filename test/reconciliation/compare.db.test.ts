import { afterEach, describe, expect, it } from 'vitest'
import { money } from 'hookledger'
import { fulfill } from '../../src/workflow/decision.ts'
import { createCompareProbe, type CompareProbe } from '../support/compare-probe.ts'
import { probe, type ProbeHooks } from '../support/probe.ts'

const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function create(options?: Parameters<typeof createCompareProbe>[0]): Promise<CompareProbe> {
  const made = await createCompareProbe(options)
  closing.push(made.close)
  return made
}

const minute = 60_000

/** Everything that a pass must leave alone when nothing happened in between. */
async function settled({ rows }: CompareProbe): Promise<unknown> {
  return rows(`select
    (select count(*) from inbox_events) as events, (select count(*) from ledger_decisions) as decisions,
    (select jsonb_agg(to_jsonb(o) order by order_id) from orders o) as orders,
    (select jsonb_agg(to_jsonb(p) order by payment_id) from ledger_payments p) as payments,
    (select jsonb_agg(to_jsonb(f) - 'last_seen_at' - 'times_seen' order by finding_id) from findings f) as findings`)
}

describe('a payment that only the provider has', () => {
  it('is put in as its event, which is missing until it is decided', async () => {
    const made = await create()
    made.pays('p1', { order: '1' })
    expect(await made.pass()).toMatchObject({
      state: 'complete',
      injected: 1,
      opened: 1,
      closed: 1,
    })
    expect(await made.rows(`select order_id, state from orders`)).toEqual([
      { order_id: '1', state: 'paid' },
    ])
    expect(await made.findings()).toMatchObject([
      {
        kind: 'event_missing',
        class: 'lag',
        state: 'closed',
        order_id: '1',
        reference: { kind: 'event', id: 'object:pay:p1', account: 'acct_1' },
        closed_because: 'it was decided: fulfilled',
      },
    ])
    const before = await settled(made)
    expect(await made.pass()).toMatchObject({
      state: 'complete',
      injected: 0,
      opened: 0,
      closed: 0,
    })
    expect(await settled(made)).toEqual(before)
  })

  it('is absorbed when its webhook comes after all', async () => {
    const made = await create()
    made.pays('p1', { order: '1' })
    await made.pass()
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.work()
    expect(await made.rows(`select kind from decisions order by decision_id`)).toEqual([
      { kind: 'fulfilled' },
      { kind: 'absorbed' },
    ])
  })

  it('is neither put in nor judged while its delivery may be under way', async () => {
    const made = await create({ settings: { lagMs: 10 * minute } })
    made.pays('p1', { order: '1', changedAgoMs: minute })
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 0, opened: 0 })
    made.pays('p1', { order: '1', changedAgoMs: 11 * minute })
    expect(await made.pass()).toMatchObject({ injected: 1, opened: 1 })
  })

  it('is put in although what it names is planned for later', async () => {
    const made = await create({ settings: { lagMs: minute } })
    made.pays('p1', { order: '1', changedAgoMs: -24 * 60 * minute })
    expect(await made.pass()).toMatchObject({ injected: 1, opened: 1 })
  })

  it('is nothing to judge while deliveries wait for a worker', async () => {
    const made = await create({ decides: false, settings: { settleMs: 10 } })
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.rows(`update inbox_events set received_at = now() - interval '1 minute'`)
    made.pays('p1', { order: '1' })
    expect(await made.pass()).toMatchObject({ injected: 0, opened: 0 })
    await made.work()
    expect(await made.pass()).toMatchObject({ injected: 0, opened: 0 })
    expect(await made.findings()).toEqual([])
  })

  it('is no order’s where nothing leads to one, and is over when one is there', async () => {
    const made = await create()
    made.pays('p1', { waits: 'cart-1' })
    expect(await made.pass()).toMatchObject({ injected: 0, opened: 1 })
    expect(await made.findings()).toMatchObject([
      {
        kind: 'payment_without_order',
        state: 'open',
        order_id: null,
        evidence: { payment: 'p1', there: '49.00 USD paid', waits_for: 'ref cart-1' },
        reference: { kind: 'payment', id: 'p1', account: 'acct_1' },
      },
    ])
    const before = await settled(made)
    await made.pass()
    expect(await settled(made)).toEqual(before)
    await made.deliver(probe('note', { order: '1', learns: 'cart-1' }))
    await made.work()
    await made.pass()
    expect(await made.findings()).toMatchObject([
      { kind: 'event_missing', state: 'closed', order_id: '1' },
      { kind: 'payment_without_order', state: 'closed', closed_because: 'both sides say the same' },
    ])
  })

  it('is paid_there where the workflow passed over it although its order waits for money', async () => {
    const hooks: ProbeHooks = {
      decide: ({ event }) =>
        event['type'] === 'pay' ? { kind: 'skip', reason: 'by mistake' } : undefined,
    }
    const made = await create({ hooks, shape: { opens: 'app' } })
    const client = await made.pool.connect()
    await made.hookledger.openOrder(client, { id: '1', workflow: 'probe', subject: 'user:1' })
    client.release()
    made.pays('p1', { order: '1' })
    expect(await made.pass()).toMatchObject({ injected: 0, opened: 1 })
    expect(await made.findings()).toMatchObject([
      { kind: 'paid_there', class: 'contradiction', state: 'open', order_id: '1' },
    ])
    delete hooks.decide
    await made.pass()
    expect(await made.findings()).toMatchObject([
      { kind: 'event_missing', state: 'closed' },
      { kind: 'paid_there', state: 'closed' },
    ])
  })
})

describe('a payment that only this database has', () => {
  it('is paid_here where the provider says otherwise, and over when it agrees', async () => {
    const made = await create()
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.work()
    const payment = made.pays('p1', { order: '1', standing: 'unpaid' })
    expect(await made.pass()).toMatchObject({ injected: 0, opened: 1, closed: 0 })
    const [found] = await made.findings()
    expect(found).toMatchObject({
      kind: 'paid_here',
      class: 'contradiction',
      state: 'open',
      order_id: '1',
      evidence: { order: '1', payment: 'p1', here: '49.00 USD', there: 'unpaid' },
      reference: { kind: 'payment', id: 'p1', account: 'acct_1' },
      times: 1,
    })
    await made.pass()
    expect(await made.findings()).toMatchObject([{ state: 'open', times: 2 }])
    payment.standing = 'paid'
    expect(await made.pass()).toMatchObject({ opened: 0, closed: 1 })
    expect(await made.findings()).toMatchObject([
      { state: 'closed', closed_because: 'both sides say the same' },
    ])
    payment.standing = 'failed'
    expect(await made.pass()).toMatchObject({ opened: 1 })
    expect(await made.findings()).toMatchObject([{ state: 'open', times: 3 }])
  })

  it('is asked for by its id where no list shows it, and paid_here where there is none', async () => {
    const made = await create()
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.deliver(probe('pay', { order: '2', payment: 'p2' }))
    await made.work()
    // made long before the window, and still there
    made.pays('p1', { order: '1', agoMs: 100 * 86_400_000 })
    await made.pass()
    expect(made.records.fetched.map(({ id }) => id).sort()).toEqual(['p1', 'p2'])
    expect(await made.findings()).toMatchObject([
      { kind: 'paid_here', order_id: '2', evidence: { payment: 'p2', there: 'no such record' } },
    ])
  })

  it('is not asked for where the provider lists no payments', async () => {
    const made = await create({ kinds: [{ kind: 'event', holds: 'events', reachMs: null }] })
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.work()
    const { pass } = made
    const hourAgo = new Date(Date.now() - 3_600_000)
    expect(await pass({ how: 'range', from: hourAgo })).toMatchObject({ opened: 0 })
    expect(made.records.fetched).toEqual([])
  })

  it('is not asked for where a list confirmed it', async () => {
    const made = await create()
    for (const id of ['1', '2', '3']) {
      await made.deliver(probe('pay', { order: id, payment: `p${id}` }))
      made.pays(`p${id}`, { order: id })
    }
    await made.work()
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 0, opened: 0 })
    expect(made.records.fetched).toEqual([])
  })

  it('is amount_differs where the row says another amount than the workflow would record', async () => {
    const made = await create()
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.work()
    made.pays('p1', { order: '1' })
    await made.rows(`update ledger_payments set amount = amount + 100`)
    await made.pass()
    expect(await made.findings()).toMatchObject([
      {
        kind: 'amount_differs',
        state: 'open',
        order_id: '1',
        evidence: { payment: 'p1', recorded: '50.00 USD', named: '49.00 USD' },
      },
    ])
    await made.rows(`update ledger_payments set amount = amount - 100`)
    await made.pass()
    expect(await made.findings()).toMatchObject([{ kind: 'amount_differs', state: 'closed' }])
  })

  it('is fine where the workflow records another figure of the same payment, fees taken off', async () => {
    const hooks: ProbeHooks = {
      decide: ({ event, order }) =>
        event['type'] === 'pay'
          ? (fulfill({
              to: 'paid',
              payment: { id: String(event['payment']), money: money(4700, 'usd') },
              effects: [{ type: 'grant' }],
              entitle: [{ subject: `user:${order.id}`, entitlement: 'pro' }],
            }) as never)
          : undefined,
    }
    const made = await create({ hooks })
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.work()
    made.pays('p1', { order: '1' })
    expect(await made.pass()).toMatchObject({ injected: 0, opened: 0 })
  })
})

describe('an order that entitles without any payment', () => {
  const hooks: ProbeHooks = {
    decide: ({ event, order }) =>
      event['type'] === 'custom'
        ? (fulfill({
            to: 'paid',
            effects: [{ type: 'grant' }],
            entitle: [{ subject: `user:${order.id}`, entitlement: 'pro' }],
          }) as never)
        : undefined,
  }
  const namedBy = ({ value }: { readonly value: string }): never =>
    ({ kind: 'payment', id: value, account: 'acct_1' }) as never

  it('is paid_here where nothing that it is named by was paid', async () => {
    const made = await create({ hooks, namedBy })
    await made.deliver(probe('custom', { order: '1', learns: 'p1' }))
    await made.work()
    const payment = made.pays('p1', { standing: 'unpaid' })
    expect(await made.pass()).toMatchObject({ opened: 1 })
    expect(await made.findings()).toMatchObject([
      {
        kind: 'paid_here',
        order_id: '1',
        evidence: { order: '1', state: 'paid', there: 'payment p1 unpaid' },
      },
    ])
    await made.pass()
    expect(await made.findings()).toMatchObject([{ state: 'open', times: 2 }])
    payment.standing = 'paid'
    payment.order = '1'
    await made.pass()
    expect(await made.findings()).toMatchObject([
      { kind: 'event_missing', state: 'closed' },
      { kind: 'paid_here', state: 'closed' },
    ])
  })

  it('is left alone where none of its names is a record', async () => {
    const made = await create({ hooks })
    await made.deliver(probe('custom', { order: '1', learns: 'p1' }))
    await made.work()
    expect(await made.pass()).toMatchObject({ state: 'complete', opened: 0 })
  })
})

describe('money that deciding found twice', () => {
  it('is over once one of the payments was given back', async () => {
    const made = await create()
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.work()
    await made.deliver(probe('pay', { order: '1', payment: 'p2' }))
    await made.work()
    made.pays('p1', { order: '1' })
    const second = made.pays('p2', { order: '1' })
    await made.pass()
    expect(await made.findings()).toMatchObject([{ kind: 'paid_twice', state: 'open', times: 2 }])
    second.refunded = 4900
    await made.pass()
    expect(await made.findings()).toMatchObject([
      { kind: 'paid_twice', state: 'closed', closed_because: 'the money was given back' },
    ])
  })
})

describe('a refund or a dispute that only the provider has', () => {
  const passing: ProbeHooks = {
    decide: ({ event }) =>
      ['refund', 'note'].includes(String(event['type']))
        ? { kind: 'skip', reason: 'by mistake' }
        : undefined,
  }

  it('is put in where the workflow has something to say', async () => {
    const made = await create()
    await made.deliver(probe('pay', { order: '1', payment: 'p1' }))
    await made.work()
    made.pays('p1', { order: '1' })
    made.has('refund', 're_1', { payment: 'p1', order: '1' })
    expect(await made.pass()).toMatchObject({ injected: 1, opened: 1, closed: 1 })
    expect(await made.rows(`select state from orders`)).toEqual([{ state: 'refunded' }])
  })

  it('is a contradiction where the order entitles as if there were none', async () => {
    const made = await create({ hooks: passing })
    for (const id of ['1', '2', '3'])
      await made.deliver(probe('pay', { order: id, payment: `p${id}` }))
    await made.work()
    for (const id of ['1', '2', '3']) made.pays(`p${id}`, { order: id })
    made.has('refund', 're_1', { payment: 'p1', order: '1' })
    const dispute = made.has('dispute', 'dp_2', { payment: 'p2', order: '2' })
    // a part given back is the workflow's own business
    made.has('refund', 're_3', { payment: 'p3', order: '3', amount: 100 })
    await made.pass()
    expect(await made.findings()).toMatchObject([
      { kind: 'dispute_unseen', order_id: '2', evidence: { dispute: 'dp_2', there: 'open' } },
      { kind: 'refunded_there', order_id: '1', evidence: { refund: 're_1', payment: 'p1' } },
    ])
    dispute.standing = 'won'
    await made.pass()
    expect(await made.findings()).toMatchObject([
      { kind: 'dispute_unseen', state: 'closed' },
      { kind: 'refunded_there', state: 'open', times: 2 },
    ])
  })
})
