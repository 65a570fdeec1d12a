import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import {
  chargeDisputeClosed,
  chargeDisputeCreated,
  checkoutSessionAsyncPaymentSucceeded,
  checkoutSessionCompleted,
  checkoutSessionExpired,
  paymentIntentSucceeded,
  refundCreated,
  refundFailed,
} from '../../src/testing/stripe-events.ts'
import { paymentIntentId } from '../../src/testing/stripe-ids.ts'
import { expireDeferrals } from '../../src/inbox/sweep.ts'
import { partsOf } from '../../src/hookledger.ts'
import { emptyTables } from '../support/probe.ts'
import { createShop, type Shop } from '../support/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await createShop()
})
afterAll(() => shop.close())
beforeEach(() => emptyTables(shop.pool))

async function happens(...events: readonly object[]): Promise<void> {
  for (const event of events) expect(await shop.deliver(event)).toBe(200)
  await shop.work()
}

const kinds = async (): Promise<unknown> =>
  (await shop.rows(`select kind from decisions order by decision_id`)).map((row) => row['kind'])
const state = async (order = '1'): Promise<unknown> =>
  (await shop.rows(`select state from orders where order_id = $1`, [order]))[0]?.['state']
const holders = async (): Promise<unknown> =>
  (
    await shop.rows(
      `select subject || ' ' || entitlement as e from current_entitlements order by 1`,
    )
  ).map((row) => row['e'])
const key = { order: '1' }
const ada = ['email:ada@example.com pro']

describe('the situations of the second article', () => {
  it('same event again: the recorded result stands, and the delivery is counted with its hash', async () => {
    const event = checkoutSessionCompleted(key)
    await happens(event)
    const before = await shop.rows(`select decision_id, kind from decisions`)
    await happens(event, event)
    expect(await shop.rows(`select decision_id, kind from decisions`)).toEqual(before)
    expect(await shop.rows(`select deliveries::int, state from webhook_inbox`)).toEqual([
      { deliveries: 3, state: 'processed' },
    ])
    expect(
      await shop.rows(
        `select count(*)::int as n, count(distinct body_sha256)::int as hashes from deliveries`,
      ),
    ).toEqual([{ n: 3, hashes: 1 }])
  })

  it('another event for an order already fulfilled: the effect is absorbed, and named with its key', async () => {
    await happens(checkoutSessionCompleted(key))
    await happens(checkoutSessionAsyncPaymentSucceeded(key))
    expect(await kinds()).toEqual(['fulfilled', 'absorbed'])
    expect(
      await shop.rows(
        `select f.effect_type, d.event_type from fulfillment_effects f join decisions d using (decision_id) where f.effect_type = 'license'`,
      ),
    ).toEqual([{ effect_type: 'license', event_type: 'checkout.session.completed' }])
    expect(await shop.rows(`select reason from decisions where kind = 'absorbed'`)).toEqual([
      { reason: expect.stringContaining('license') as unknown },
    ])
  })

  it('cancellation before creation: deferred with what is missing and until when, past it a finding, and woken all the same', async () => {
    await happens(
      checkoutSessionCompleted(key),
      chargeDisputeClosed({ ...key, id: 'du_1', status: 'lost' }),
    )
    expect(await state()).toBe('paid')
    expect(
      await shop.rows(
        `select waits_for, extract(epoch from deadline_at - received_at)::int / 3600 as hours from webhook_inbox where state = 'deferred'`,
      ),
    ).toEqual([{ waits_for: 'effect disputeOpened du_1', hours: 24 }])
    await shop.rows(`update inbox_deferred set deadline_at = now() - interval '1 second'`)
    const { sweep } = await partsOf(shop.hookledger).contexts()
    expect(await expireDeferrals(sweep)).toBe(1)
    expect(await expireDeferrals(sweep)).toBe(0)
    expect(
      await shop.rows(`select kind, class, state, owner, due_at > now() as later from findings`),
    ).toEqual([
      { kind: 'wait_overdue', class: 'lag', state: 'open', owner: 'operations', later: true },
    ])
    await happens(chargeDisputeCreated({ ...key, id: 'du_1' }))
    expect(await state()).toBe('lost')
    expect(await holders()).toEqual([])
    expect(await shop.rows(`select kind, state from findings`)).toEqual([
      { kind: 'wait_overdue', state: 'closed' },
    ])
  })

  it('refund after payment: its own transition and effect, under its id, against its payment', async () => {
    await happens(
      checkoutSessionCompleted(key),
      refundCreated({ ...key, id: 're_1', amount: 1900 }),
    )
    expect([await state(), await holders()]).toEqual(['paid', ada])
    await happens(refundCreated({ ...key, id: 're_2', amount: 3000 }))
    expect([await state(), await holders()]).toEqual(['refunded', []])
    expect(
      await shop.rows(
        `select effect_reference as id, amount::int, currency, payment_id from fulfillment_effects where effect_type = 'refund' order by 1`,
      ),
    ).toEqual([
      { id: 're_1', amount: 1900, currency: 'USD', payment_id: paymentIntentId(key) },
      { id: 're_2', amount: 3000, currency: 'USD', payment_id: paymentIntentId(key) },
    ])
    expect(
      await shop.rows(
        `select evidence -> 'revoked' as revoked from decisions where to_state = 'refunded'`,
      ),
    ).toEqual([{ revoked: ada }])
  })

  it('a refund that failed: reversed, and the license is back', async () => {
    await happens(checkoutSessionCompleted(key), refundCreated({ ...key, id: 're_1' }))
    expect(await state()).toBe('refunded')
    await happens(refundFailed({ ...key, id: 're_1' }))
    expect([await state(), await holders()]).toEqual(['paid', ada])
  })

  it('more refunded than paid: a contradiction, and nothing is taken', async () => {
    await happens(
      checkoutSessionCompleted(key),
      refundCreated({ ...key, id: 're_1', amount: 1900 }),
      refundCreated({ ...key, id: 're_2', amount: 4900 }),
    )
    expect([await state(), await holders()]).toEqual(['paid', ada])
    expect(await shop.rows(`select kind, severity from findings`)).toEqual([
      { kind: 'over_refunded', severity: 'high' },
    ])
  })

  it('refund before payment: waits for it, and ends the same', async () => {
    await happens(refundCreated({ ...key, id: 're_1' }))
    expect(await shop.rows(`select state from webhook_inbox`)).toEqual([{ state: 'deferred' }])
    expect(await shop.rows(`select 1 from orders`)).toEqual([])
    await happens(checkoutSessionCompleted(key))
    expect([await state(), await holders()]).toEqual(['refunded', []])
  })

  it('dispute won after refund: the refund stands', async () => {
    await happens(checkoutSessionCompleted(key), chargeDisputeCreated({ ...key, id: 'du_1' }))
    expect([await state(), await holders()]).toEqual(['disputed', []])
    await happens(
      refundCreated({ ...key, id: 're_1' }),
      chargeDisputeClosed({ ...key, id: 'du_1', status: 'won' }),
    )
    expect([await state(), await holders()]).toEqual(['refunded', []])
  })

  it('failure then success: an expired checkout, then a payment', async () => {
    await happens(checkoutSessionExpired({ ...key, attempt: 1 }))
    expect(await state()).toBe('canceled')
    await happens(
      paymentIntentSucceeded({ ...key, attempt: 2 }),
      checkoutSessionCompleted({ ...key, attempt: 2 }),
    )
    expect([await state(), await holders()]).toEqual(['paid', ada])
  })

  it('success then a late failure: what was paid stays', async () => {
    await happens(
      checkoutSessionCompleted({ ...key, attempt: 2 }),
      checkoutSessionExpired({ ...key, attempt: 1 }),
    )
    expect([await state(), await holders()]).toEqual(['paid', ada])
  })

  it('same-second updates: the end does not depend on which came first', async () => {
    const created = 1_767_300_000
    const [a, b] = [
      refundCreated({ ...key, id: 're_1', created }),
      refundFailed({ ...key, id: 're_1', created }),
    ]
    await happens(checkoutSessionCompleted(key), b, a)
    const first = [await state(), await holders()]
    await emptyTables(shop.pool)
    await happens(checkoutSessionCompleted(key), a, b)
    expect([await state(), await holders()]).toEqual(first)
  })

  it('paid twice: recorded, granted once, and a finding in the same commit', async () => {
    await happens(checkoutSessionCompleted({ ...key, attempt: 1 }))
    await happens(checkoutSessionCompleted({ ...key, attempt: 2 }))
    expect(
      await shop.rows(
        `select count(*)::int as n from fulfillment_effects where effect_type = 'license'`,
      ),
    ).toEqual([{ n: 1 }])
    expect(await shop.rows(`select count(*)::int as n from payments where applied`)).toEqual([
      { n: 2 },
    ])
    expect(await shop.rows(`select kind, order_id from findings`)).toEqual([
      { kind: 'paid_twice', order_id: '1' },
    ])
  })

  it('paid too little: a contradiction that grants nothing, whose refund still finds its way', async () => {
    await happens(
      checkoutSessionCompleted({ ...key, amount: 1000 }),
      refundCreated({ ...key, id: 're_1', amount: 1000 }),
    )
    expect([await state(), await holders()]).toEqual(['pending', []])
    expect(await shop.rows(`select applied, amount::int from payments`)).toEqual([
      { applied: false, amount: 1000 },
    ])
    expect(await shop.rows(`select effect_type from fulfillment_effects`)).toEqual([
      { effect_type: 'refund' },
    ])
    expect(await shop.rows(`select kind from findings`)).toEqual([{ kind: 'not_accepted' }])
  })
})
