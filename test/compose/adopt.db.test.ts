import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { handle } from 'hookledger'
import { Adoption, type AdoptCheck } from '../../src/compose/adopt.ts'
import type { AdoptReport } from '../../src/compose/adopt-run.ts'
import { planReplay } from '../../src/inbox/replay-many.ts'
import { partsOf } from '../../src/hookledger.ts'
import { audit } from '../../src/report/audit.ts'
import {
  checkoutSessionCompleted,
  customerUpdated,
  paymentIntentSucceeded,
  refundCreated,
} from '../../src/testing/stripe-events.ts'
import { createShop, shopOptions, type Shop } from '../support/shop.ts'

const directory = mkdtempSync(join(tmpdir(), 'adopt-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

let shop: Shop
beforeEach(async () => {
  shop = await createShop()
})
afterEach(() => shop.close())

let files = 0

/** A file of these lines, as an adoption over the shop. */
function adoptionOf(lines: readonly unknown[]): Adoption {
  const file = join(directory, `${++files}.jsonl`)
  const text = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)))
  writeFileSync(file, `${text.join('\n')}\n`)
  return new Adoption(shop.db, partsOf(shop.hookledger).config, file)
}

const check = (...lines: readonly unknown[]): Promise<AdoptCheck> => adoptionOf(lines).check()

async function adopt(...lines: readonly unknown[]): Promise<AdoptReport> {
  const adoption = adoptionOf(lines)
  const checked = await adoption.check()
  expect(checked.problems).toEqual([])
  return adoption.write(checked, { reason: 'moving in', actor: 'ada' })
}

const session = checkoutSessionCompleted({ order: '1001' })
const intent = paymentIntentSucceeded({ order: '1001' })
const {
  id: sessionId,
  amount_total: amount,
  currency,
  payment_intent: intentId,
} = session.data.object
const subject = 'email:ada@example.com'

/** The order as an app would write it that had handled its events. */
const paid = {
  order: '1001',
  workflow: 'license',
  state: 'paid',
  subject,
  names: [
    { kind: 'session', value: sessionId },
    { kind: 'payment_intent', value: intentId },
  ],
  payments: [{ id: intentId, amount, currency }],
  effects: [
    { type: 'license' },
    { type: 'buyer', reference: sessionId, data: { by: 'session', subject } },
  ],
  entitlements: [{ subject, entitlement: 'pro' }],
}

async function requireAudit(): Promise<void> {
  const report = await audit(shop.db)
  expect(report.checks.filter((each) => !each.holds)).toEqual([])
}

describe('adopting', () => {
  it('records an order with what it knows, entitles, and sends nothing', async () => {
    expect(await adopt(paid)).toEqual({
      orders: { adopted: 1, same: 0, differing: 0 },
      events: { adopted: 0, known: 0 },
      differing: [],
      complete: true,
    })
    expect(await shop.hookledger.entitlements(subject)).toEqual([
      { entitlement: 'pro', quantity: 1, validUntil: null },
    ])
    expect(
      await shop.rows(
        `select kind, final, from_state, to_state, reason, actor, event_key from decisions`,
      ),
    ).toEqual([
      {
        kind: 'adopted',
        final: false,
        from_state: null,
        to_state: 'paid',
        reason: 'moving in',
        actor: 'ada',
        event_key: null,
      },
    ])
    expect(await shop.rows(`select * from outbox_operations`)).toEqual([])
    expect(await shop.rows(`select act, actor, reason from operator_acts`)).toEqual([
      { act: 'adopt', actor: 'ada', reason: 'moving in' },
    ])
    await requireAudit()
  })

  it('fulfills nothing twice when the same events come after all, in any form', async () => {
    await adopt(paid)
    for (const event of [session, intent, session]) expect(await shop.deliver(event)).toBe(200)
    await shop.work()
    expect(
      await shop.rows(
        `select effect_type, count(*)::int as n from fulfillment_effects group by effect_type order by 1`,
      ),
    ).toEqual(expect.arrayContaining([{ effect_type: 'license', n: 1 }]))
    expect(await shop.rows(`select * from ledger_payments`)).toHaveLength(1)
    expect(await shop.rows(`select * from outbox_operations`)).toEqual([])
    expect(await shop.rows(`select * from findings`)).toEqual([])
    expect(
      await shop.rows(`select kind from decisions where event_type = 'checkout.session.completed'`),
    ).toEqual([{ kind: 'absorbed' }])
    await requireAudit()
  })

  it('changes nothing the second time, and adds what a later file knows more', async () => {
    await adopt(paid)
    const snapshot = (): Promise<unknown> =>
      shop.rows(
        `select (select jsonb_agg(d order by decision_id) from ledger_decisions d) as d,
          (select jsonb_agg(o) from orders o) as o, (select jsonb_agg(e) from entitlements e) as e,
          (select jsonb_agg(a) from operator_acts a) as a`,
      )
    const before = await snapshot()
    expect(await adopt(paid)).toMatchObject({ orders: { adopted: 0, same: 1 } })
    expect(await snapshot()).toEqual(before)
    const refund = { type: 'refund', reference: 're_1', amount, currency, payment: intentId }
    const later = { ...paid, state: 'refunded', effects: [...paid.effects, refund] }
    expect(await adopt(later)).toMatchObject({ orders: { adopted: 1, same: 0 } })
    expect(await shop.hookledger.entitlements(subject)).toEqual([])
    expect(
      await shop.rows(
        `select from_state, to_state, evidence from ledger_decisions order by decision_id desc limit 1`,
      ),
    ).toEqual([
      {
        from_state: 'paid',
        to_state: 'refunded',
        evidence: { line: 1, effects: [['refund', 're_1']], revoked: [`${subject} pro`] },
      },
    ])
    await requireAudit()
  })

  it('wakes what waited for the order, which is decided by what was adopted', async () => {
    await shop.deliver(refundCreated({ order: '1001', amount: 100, id: 're_1' }))
    await shop.work()
    expect(await shop.rows(`select state from webhook_inbox`)).toEqual([{ state: 'deferred' }])
    await adopt(paid)
    await shop.work()
    expect(await shop.rows(`select state from webhook_inbox`)).toEqual([{ state: 'processed' }])
    expect(
      await shop.rows(
        `select effect_reference from fulfillment_effects where effect_type = 'refund'`,
      ),
    ).toEqual([{ effect_reference: 're_1' }])
    await requireAudit()
  })

  it('takes over an order that the app opened, and leaves alone what events have decided', async () => {
    const client = await shop.pool.connect()
    await shop.hookledger.openOrder(client, { id: '1001', workflow: 'license', subject })
    client.release()
    expect(await adopt(paid)).toMatchObject({ orders: { adopted: 1 } })
    await shop.deliver(refundCreated({ order: '1001', amount: amount ?? 0, id: 're_1' }))
    await shop.work()
    expect(await adopt(paid)).toMatchObject({ orders: { adopted: 0, same: 1 } })
    expect(await shop.rows(`select state from orders`)).toEqual([{ state: 'refunded' }])
    expect(await shop.hookledger.entitlements(subject)).toEqual([])
    const { problems } = await check({
      ...paid,
      effects: [...paid.effects, { type: 'buyer', reference: 'cs_other' }],
    })
    expect(problems).toMatchObject([
      { line: 1, message: expect.stringContaining('moved order 1001 to refunded') as string },
    ])
    await requireAudit()
  })

  it('counts and names apart what it says otherwise about an order that events decided', async () => {
    for (const order of ['1001', '1002'])
      await shop.deliver(checkoutSessionCompleted({ order, email: 'ada@example.com' }))
    await shop.work()
    const line = { order: '1001', workflow: 'license' }
    const lines = [
      { ...line, state: 'refunded' },
      { ...line, order: '1002', state: 'paid', entitlements: [{ subject, entitlement: 'max' }] },
    ]
    const differing = [
      { line: 1, message: expect.stringMatching(/made order 1001 paid.* says refunded/) as string },
      { line: 2, message: expect.stringContaining('order 1002 entitles') as string },
    ]
    expect(await check(...lines)).toMatchObject({ problems: [], differingCount: 2, differing })
    expect(await adopt(...lines)).toMatchObject({
      orders: { adopted: 0, same: 0, differing: 2 },
      differing,
    })
    expect(await shop.rows(`select distinct state from orders`)).toEqual([{ state: 'paid' }])
    const older = { ...line, state: 'pending' }
    expect(await adopt(older, { ...line, order: '1002', state: 'paid' })).toMatchObject({
      orders: { adopted: 0, same: 2, differing: 0 },
    })
    await requireAudit()
  })

  it('keeps an entitlement dormant where the state does not entitle', async () => {
    await adopt({ ...paid, state: 'disputed' })
    expect(await shop.hookledger.entitlements(subject)).toEqual([])
    expect(await shop.rows(`select stated, active from entitlements`)).toEqual([
      { stated: true, active: false },
    ])
    await requireAudit()
  })

  it('makes a payment count that a contradicted decision had kept', async () => {
    const foreign = checkoutSessionCompleted({ order: '1001', amount: 1 })
    await shop.deliver(foreign)
    await shop.work()
    const kept = await shop.rows<{ payment_id: string; applied: boolean }>(
      `select payment_id, applied from ledger_payments`,
    )
    const { amount_total: less } = foreign.data.object
    await adopt({ ...paid, payments: [{ id: intentId, amount: less, currency }] })
    expect(kept.every((each) => !each.applied)).toBe(true)
    expect(await shop.rows(`select payment_id, applied from ledger_payments`)).toEqual([
      { payment_id: intentId, applied: true },
    ])
    await requireAudit()
  })

  it('adopts a grant of the app, under the built-in workflow', async () => {
    await adopt({
      order: 'gift-7',
      workflow: 'grant',
      state: 'granted',
      subject: 'user:7',
      entitlements: [{ subject: 'user:7', entitlement: 'pro', validUntil: '2999-01-31T00:00:00Z' }],
    })
    expect(await shop.hookledger.entitlements('user:7')).toEqual([
      { entitlement: 'pro', quantity: 1, validUntil: new Date('2999-01-31T00:00:00Z') },
    ])
    const client = await shop.pool.connect()
    const end = { id: 'gift-7', reason: 'over', actor: 'ada' }
    expect(await shop.hookledger.endGrant(client, end)).toBe('ended')
    client.release()
    await requireAudit()
  })

  it('adopts thousands of lines in batches', async () => {
    const lines = Array.from({ length: 1203 }, (_, n) => ({
      ...paid,
      order: `o-${n}`,
      names: [{ kind: 'payment_intent', value: `pi_${n}` }],
      payments: [{ id: `pi_${n}`, amount, currency }],
    }))
    expect(await adopt(...lines)).toMatchObject({ orders: { adopted: 1203, same: 0 } })
    expect(await adopt(...lines)).toMatchObject({ orders: { adopted: 0, same: 1203 } })
    expect(await shop.rows(`select 1 from operator_acts`)).toHaveLength(1)
    await requireAudit()
  })

  it('goes on after an interruption', async () => {
    const lines = Array.from({ length: 1100 }, (_, n) => ({
      order: `o-${n}`,
      workflow: 'license',
      state: 'paid',
      effects: [{ type: 'license' }],
    }))
    const adoption = adoptionOf(lines)
    const checked = await adoption.check()
    const interruption = new AbortController()
    const by = { reason: 'moving in', actor: 'ada' }
    const first = await adoption.write(checked, {
      ...by,
      signal: interruption.signal,
      onProgress: () => interruption.abort(),
    })
    expect(first).toMatchObject({ orders: { adopted: 500 }, complete: false })
    const second = await adoption.write(checked, by)
    expect(second).toMatchObject({ orders: { adopted: 600, same: 500 }, complete: true })
    await requireAudit()
  })

  it('agrees with workers that decide about the same orders meanwhile', async () => {
    const lines: object[] = []
    for (let n = 0; n < 120; n++) {
      const event = checkoutSessionCompleted({ order: `r-${n}`, email: `c${n}@example.com` })
      const { id, payment_intent: pi, amount_total: cents, currency: code } = event.data.object
      const owner = `email:c${n}@example.com`
      lines.push({
        ...paid,
        order: `r-${n}`,
        subject: owner,
        names: [
          { kind: 'session', value: id },
          { kind: 'payment_intent', value: pi },
        ],
        payments: [{ id: pi, amount: cents, currency: code }],
        effects: [
          { type: 'license' },
          { type: 'buyer', reference: id, data: { by: 'session', subject: owner } },
        ],
        entitlements: [{ subject: owner, entitlement: 'pro' }],
      })
      await shop.deliver(event)
    }
    const [report] = await Promise.all([adopt(...lines), shop.work(), shop.work()])
    expect(report.orders.adopted + report.orders.same).toBe(120)
    await shop.work()
    expect(
      await shop.rows(
        `select effect_type, count(*)::int as n from fulfillment_effects group by 1 order by 1`,
      ),
    ).toEqual([
      { effect_type: 'buyer', n: 120 },
      { effect_type: 'license', n: 120 },
    ])
    expect(await shop.rows(`select 1 from current_entitlements`)).toHaveLength(120)
    expect(await shop.rows(`select 1 from findings`)).toEqual([])
    await requireAudit()
  })

  it('waits for an order in somebody’s hands', async () => {
    await adopt(paid)
    const holder = await shop.pool.connect()
    await holder.query('begin')
    await holder.query(`select 1 from orders where order_id = '1001' for update`)
    const adopting = adopt({ ...paid, names: [...paid.names, { kind: 'charge', value: 'ch_1' }] })
    await holder.query('select pg_sleep(0.3)')
    await holder.query('commit')
    holder.release()
    expect(await adopting).toMatchObject({ orders: { adopted: 1 } })
  })
})

describe('handled events', () => {
  const event = customerUpdated({})
  const handled = { event: event.id, source: 'stripe', type: event.type }

  it('are ignored as adopted, and a late delivery is not handled again', async () => {
    expect(await adopt(handled)).toMatchObject({ events: { adopted: 1, known: 0 } })
    expect(await shop.deliver(event)).toBe(200)
    await shop.work()
    expect(await shop.rows(`select state, event_type from webhook_inbox`)).toEqual([
      { state: 'ignored', event_type: 'customer.updated' },
    ])
    expect(await shop.rows(`select kind, reason, actor from decisions`)).toEqual([
      { kind: 'ignored', reason: 'adopted', actor: 'ada' },
    ])
    expect(await shop.rows(`select 1 from shop.customers`)).toEqual([])
    expect(await adopt(handled)).toMatchObject({ events: { adopted: 0, known: 1 } })
    await requireAudit()
  })

  it('are not among those that a replay by type takes', async () => {
    await adopt(handled)
    expect(await planReplay(shop.db, { types: [event.type] }, ['ignored'])).toMatchObject({
      matched: { ignored: 0 },
    })
  })

  it('that have arrived already stay what they are', async () => {
    await shop.deliver(event)
    expect(await adopt(handled)).toMatchObject({ events: { adopted: 0, known: 1 } })
    await shop.work()
    expect(await shop.rows(`select state from webhook_inbox`)).toEqual([{ state: 'processed' }])
  })

  it('are not offered for a replay when a handler of their type is added', async () => {
    await adopt({ event: 'evt_old', source: 'stripe', type: 'account.updated' })
    const later = await createShopLike(shop, {
      handlers: [...shopOptions.handlers, handle('stripe', 'account.updated', async () => {})],
    })
    const { warnings } = await partsOf(later).register()
    expect(warnings.filter((each) => each.includes('account.updated'))).toEqual([])
  })
})

async function createShopLike(
  { pool }: Shop,
  options: Partial<typeof shopOptions>,
): Promise<Shop['hookledger']> {
  const { createHookledger } = await import('hookledger')
  return createHookledger({ ...shopOptions, ...options, database: pool })
}

describe('what cannot be adopted', () => {
  it.each<[string, unknown]>([
    ['it is not JSON', '{"order":'],
    ['neither an "order" nor an "event"', { id: '1' }],
    [
      'unknown field of an order "entitlement", did you mean "entitlements"',
      { ...paid, entitlement: [] },
    ],
    ['unknown workflow "licence", did you mean "license"', { ...paid, workflow: 'licence' }],
    ['declares no state "payd", did it mean "paid"', { ...paid, state: 'payd' }],
    ['declares no effect "licence"', { ...paid, effects: [{ type: 'licence' }] }],
    ['unknown source "strip", did you mean "stripe"', { ...paid, source: 'strip' }],
    ['does not allow account', { ...paid, account: 'acct_other' }],
    ['not an exact integer', { ...paid, payments: [{ id: 'pi', amount: 1.5, currency: 'USD' }] }],
    ['three-letter', { ...paid, payments: [{ id: 'pi', amount: 1, currency: 'US' }] }],
    ['must not be negative', { ...paid, payments: [{ id: 'pi', amount: -1, currency: 'USD' }] }],
    ['order id is empty', { ...paid, order: '' }],
    ['stands there twice', { ...paid, effects: [{ type: 'license' }, { type: 'license' }] }],
    [
      'not among its payments',
      {
        ...paid,
        effects: [{ type: 'refund', reference: 'r', amount: 1, currency, payment: 'pi_9' }],
      },
    ],
    [
      'more than payment',
      {
        ...paid,
        effects: [
          { type: 'refund', reference: 'r', amount, currency, payment: intentId },
          { type: 'refund', reference: 's', amount: 1, currency, payment: intentId },
        ],
      },
    ],
    [
      'must be a time',
      { ...paid, entitlements: [{ subject, entitlement: 'pro', validUntil: 'tomorrow' }] },
    ],
    [
      'must be a time',
      {
        ...paid,
        entitlements: [{ subject, entitlement: 'pro', validUntil: '2027-02-31T00:00:00Z' }],
      },
    ],
    ['must be a time', { event: 'evt_1', source: 'stripe', occurredAt: '1' }],
    [
      'the field "state" stands there twice',
      '{"order":"1009","workflow":"license","state":"paid","state":"refunded"}',
    ],
    [
      'the field "amount" stands there twice',
      '{"order":"1009","workflow":"license","state":"paid","payments":[{"id":"pi","amount":1,"currency":"USD","amount":2}]}',
    ],
    [
      'workflow grant takes nothing from a source',
      {
        order: 'gift-1',
        workflow: 'grant',
        state: 'granted',
        payments: [{ id: 'pi', amount: 1, currency: 'USD', source: 'stripe' }],
      },
    ],
  ])('is told by line before anything is written: %s', async (message, line) => {
    const { problems } = await check(paid, line)
    expect(problems).toEqual([{ line: 2, message: expect.stringContaining(message) as string }])
    expect(await shop.rows(`select 1 from orders union all select 1 from sources`)).toEqual([])
  })

  it('is what stands in two lines', async () => {
    const { problems, problemCount } = await check(
      paid,
      { ...paid, names: [], payments: [] },
      '',
      { ...paid, order: '1002', payments: [] },
      { event: 'evt_1', source: 'stripe' },
      { event: 'evt_1', source: 'stripe' },
    )
    expect(problemCount).toBe(3)
    expect(problems).toEqual([
      { line: 2, message: 'order 1001 stands in line 1 too' },
      { line: 4, message: `session ${sessionId} stands in line 1 too` },
      { line: 6, message: 'event evt_1 stands in line 5 too' },
    ])
  })

  it('is what contradicts the ledger', async () => {
    await adopt(paid)
    const { problems } = await check(
      { ...paid, subject: 'email:bob@example.com', names: [], payments: [] },
      { ...paid, order: '1002', names: [paid.names[0]], payments: [] },
      { ...paid, order: '1003', names: [] },
    )
    expect(problems).toEqual([
      { line: 1, message: 'order 1001 has another subject here' },
      { line: 2, message: `session ${sessionId} is a name of order 1001` },
      { line: 3, message: `payment ${intentId} is recorded for order 1001` },
    ])
    expect(
      (await check({ ...paid, payments: [{ id: intentId, amount: 1, currency }] })).problems,
    ).toMatchObject([{ line: 1, message: expect.stringContaining('is recorded with') as string }])
  })

  it('is a file that changed between the look and the writing', async () => {
    const adoption = adoptionOf([paid])
    const checked = await adoption.check()
    writeFileSync(join(directory, `${files}.jsonl`), '{"order":"1001"}\n')
    await expect(
      adoption.write(checked, { reason: 'moving in', actor: 'ada' }),
    ).rejects.toMatchObject({ code: 'HKL_ADOPT_INVALID' })
    expect(await shop.rows(`select 1 from orders`)).toEqual([])
  })

  it('is a file that is not there, or not text', async () => {
    const { config } = partsOf(shop.hookledger)
    const missing = new Adoption(shop.db, config, join(directory, 'nothing.jsonl'))
    await expect(missing.check()).rejects.toMatchObject({ code: 'HKL_ADOPT_INVALID' })
    const binary = join(directory, 'binary.jsonl')
    writeFileSync(binary, Buffer.from([0xff, 0xfe, 0x0a]))
    await expect(new Adoption(shop.db, config, binary).check()).rejects.toThrow('not UTF-8')
  })
})
