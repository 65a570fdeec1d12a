/**
 * The situations that every integration meets, by name, over the demo shop's own workflow: what is
 * decided, and what is kept as evidence.
 */
import { describe, expect, test } from 'vitest'
import {
  chargeDisputeClosed,
  chargeDisputeCreated,
  checkoutSessionCompleted,
  checkoutSessionExpired,
  everyOrder,
  paymentIntentSucceeded,
  play,
  refundCreated,
  refundFailed,
  refundUpdated,
  type Play,
} from 'hookledger/testing'
import { license } from '../../examples/shop/license.ts'

const order = '1001'
const buyer = 'email:ada@example.com'
const session = checkoutSessionCompleted({ order })
const intent = paymentIntentSucceeded({
  order,
  metadata: { order_id: order, email: 'ada@example.com' },
})

function after(...events: readonly object[]): Play {
  const app = play([license])
  for (const event of events) app.deliver(event)
  return app
}

function effects(app: Play, type: string): number {
  return app.order(order).effects.filter((effect) => effect.type === type).length
}

describe('situations', () => {
  test('same event again: the recorded result, and the delivery is counted', () => {
    const app = after(session, session, session)
    expect(app.inbox()).toMatchObject([{ deliveries: 3, state: 'processed' }])
    expect(app.order(order).decisions).toHaveLength(1)
    expect(effects(app, 'license')).toBe(1)
  })

  test('another event for an order already fulfilled: the effect is absorbed', () => {
    const app = after(session, intent)
    expect(effects(app, 'license')).toBe(1)
    expect(app.order(order).payments).toHaveLength(1)
    expect(app.entitlements(buyer)).toHaveLength(1)
  })

  test('cancellation before creation: it waits for what is missing, until its deadline', () => {
    const app = after(refundCreated({ order }))
    expect(app.inbox()).toMatchObject([
      {
        state: 'deferred',
        waitsFor: expect.stringContaining('payment_intent'),
        until: expect.any(Date),
      },
    ])
    app.advance(86_400_000)
    expect(app.findings()).toMatchObject([{ kind: 'wait_overdue', class: 'lag' }])
  })

  test("refund after payment: its own transition and effect, under the refund's id, against its payment", () => {
    const app = after(session, refundCreated({ order, id: 're_1', amount: 900 }))
    expect(app.order(order).state).toBe('paid')
    app.deliver(refundCreated({ order, id: 're_2', amount: 4000 }))
    expect(app.order(order)).toMatchObject({ state: 'refunded' })
    expect(app.order(order).effects).toContainEqual(
      expect.objectContaining({
        type: 'refund',
        reference: 're_2',
        amount: 4000n,
        payment: app.order(order).payments[0]?.id,
      }),
    )
    expect(app.entitlements(buyer)).toEqual([])
  })

  test('a failed refund is reversed', () => {
    const app = after(
      session,
      refundCreated({ order, id: 're_1' }),
      refundFailed({ order, id: 're_1' }),
    )
    expect(app.order(order).state).toBe('paid')
    expect(app.order(order).effects).toContainEqual(
      expect.objectContaining({ reference: 're_1', reversed: true }),
    )
    expect(app.entitlements(buyer)).toHaveLength(1)
  })

  test('refund before payment: the same end as after it', () => {
    const app = after(refundCreated({ order }), session)
    expect(app.order(order)).toMatchObject({ state: 'refunded', findings: [] })
    expect(app.inbox().map((entry) => entry.state)).toEqual(['processed', 'processed'])
  })

  test('dispute won after refund: the order stays refunded', () => {
    const app = after(
      session,
      chargeDisputeCreated({ order }),
      refundCreated({ order }),
      chargeDisputeClosed({ order }),
    )
    expect(app.order(order).state).toBe('refunded')
    expect(app.entitlements(buyer)).toEqual([])
  })

  test('failure then success: an expired checkout that was paid after all is paid', () => {
    for (const events of [
      [checkoutSessionExpired({ order }), session],
      [session, checkoutSessionExpired({ order })],
    ]) {
      expect(after(...events).order(order).state).toBe('paid')
    }
  })

  test('same-second updates: what is pending is skipped, whichever of them comes first', () => {
    const pending = refundCreated({ order, id: 're_1', status: 'pending', created: 1_767_225_600 })
    const succeeded = refundUpdated({ order, id: 're_1', created: 1_767_225_600 })
    for (const events of [
      [pending, succeeded],
      [succeeded, pending],
    ]) {
      expect(after(session, ...events).order(order)).toMatchObject({ state: 'refunded' })
    }
  })

  test.each([undefined, 'ada@example.com'])(
    'paid twice: found in every order (address of the intent: %s)',
    (email) => {
      const metadata = { order_id: order, ...(email !== undefined && { email }) }
      const attempts = [1, 2].flatMap((attempt) => [
        checkoutSessionCompleted({ order, attempt }),
        paymentIntentSucceeded({ order, attempt, metadata }),
      ])
      for (const events of orderings(attempts)) {
        const found = after(...events)
          .findings()
          .map(({ kind }) => kind)
        expect(found).toEqual(['paid_twice'])
      }
    },
  )

  test('all of them together end the same in every order', () => {
    const events = [
      session,
      intent,
      refundCreated({ order, id: 're_1', amount: 900 }),
      chargeDisputeCreated({ order }),
      chargeDisputeClosed({ order, status: 'lost' }),
    ]
    expect(everyOrder(events, license)).toEqual({ orders: 120, sampled: false })
  })
})

/** Every order of a few events. */
function orderings<T>(of: readonly T[]): T[][] {
  if (of.length < 2) return [[...of]]
  return of.flatMap((first, at) =>
    orderings(of.filter((_, index) => index !== at)).map((rest) => [first, ...rest]),
  )
}
