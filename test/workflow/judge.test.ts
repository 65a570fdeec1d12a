import { describe, expect, test } from 'vitest'
import { money } from '../../src/core/money.ts'
import { contradict, fulfill, move, type EffectClaim } from '../../src/workflow/decision.ts'
import { play, type Play } from '../../src/testing/play.ts'
import { pay, usd } from '../support/pay-events.ts'
import { scripted, type Script, type ScriptedOptions } from '../support/scripted-workflow.ts'

const paid: Script = ({ event }) =>
  fulfill({
    to: 'paid',
    payment: { id: event.payment ?? 'pi_1', money: usd(event.amount ?? 4900) },
    effects: [{ type: 'license' }],
    entitle: [{ subject: 'user:1', entitlement: 'pro' }],
  })
const refunded: Script = ({ event }) =>
  fulfill({ to: 'refunded', effects: [refundOf(event.reference, event.payment, event.amount)] })

function refundOf(reference = 're_1', payment = 'pi_1', amount = 4900): EffectClaim<'refund'> {
  return { type: 'refund', reference, amount: usd(amount), payment }
}

function shop(options: ScriptedOptions = {}, scripts: Record<string, Script> = {}): Play {
  return play([scripted({ paid, refunded, ...scripts }, options)])
}

function kinds(app: Play, order = '1'): string[] {
  return app.order(order).decisions.map((each) => each.kind)
}

describe('check 3: effects that exist', () => {
  test('another event for an order already fulfilled is absorbed: no transition, no set', () => {
    const app = shop(
      {},
      {
        again: () =>
          fulfill({
            to: 'canceled',
            payment: { id: 'pi_1', money: usd(4900) },
            effects: [{ type: 'license' }],
            entitle: [{ subject: 'user:2', entitlement: 'pro' }],
          }),
      },
    )
    app.deliver(pay('paid', { order: '1' }))
    app.deliver(pay('again', { order: '1' }))
    expect(kinds(app)).toEqual(['fulfilled', 'absorbed'])
    expect(app.order('1')).toMatchObject({ state: 'paid', entitlements: [{ subject: 'user:1' }] })
    expect(app.order('1').decisions[1]?.reason).toBe('already recorded: payment pi_1, license')
  })

  test('effects are absorbed one by one: the new one is made, the old one stays', () => {
    const app = shop(
      {},
      {
        more: () => fulfill({ effects: [{ type: 'license' }, { type: 'seat', reference: 's1' }] }),
      },
    )
    app.deliver(pay('paid', { order: '1' }))
    app.deliver(pay('more', { order: '1' }))
    expect(kinds(app)).toEqual(['fulfilled', 'fulfilled'])
    expect(app.order('1').decisions[1]?.effects).toEqual(['seat s1'])
    expect(app.order('1').effects.map((each) => each.type)).toEqual(['license', 'seat'])
  })

  test('the same effect twice in one decision is one effect', () => {
    const app = shop(
      {},
      {
        twice: () =>
          fulfill({ effects: [{ type: 'license' }, { type: 'license', reference: '' }] }),
      },
    )
    app.deliver(pay('twice', { order: '1' }))
    expect(app.order('1').effects).toHaveLength(1)
  })

  test('another reference is another effect', () => {
    const app = shop(
      {},
      { seat: ({ event }) => fulfill({ effects: [{ type: 'seat', reference: event.reference }] }) },
    )
    app.deliver([
      pay('seat', { order: '1', reference: 'a' }),
      pay('seat', { order: '1', reference: 'b' }),
    ])
    expect(app.order('1').effects.map((each) => each.reference)).toEqual(['a', 'b'])
  })

  test('names of an absorbed event are learned', () => {
    const app = shop({}, { again: () => fulfill({ effects: [{ type: 'license' }] }) })
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
    app.deliver(pay('again', { order: '1', payment: 'pi_alias' }))
    app.deliver(pay('again', { payment: 'pi_alias' }))
    expect(kinds(app)).toEqual(['fulfilled', 'absorbed', 'absorbed'])
  })

  test('a new payment for something already fulfilled is paid_twice, and the decision goes on', () => {
    const app = shop()
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
    app.deliver(pay('refunded', { order: '1', payment: 'pi_1' }))
    app.deliver(pay('paid', { order: '1', payment: 'pi_2' }))
    expect(app.findings()).toMatchObject([
      {
        kind: 'paid_twice',
        severity: 'high',
        about: 'order:1',
        figures: { payments: 'pi_1, pi_2' },
      },
    ])
    expect(app.order('1').payments.map((each) => [each.id, each.applied])).toEqual([
      ['pi_1', true],
      ['pi_2', true],
    ])
    expect(app.order('1').state).toBe('paid')
  })

  test('a second payment that makes something new is not paid twice', () => {
    const app = shop(
      {},
      {
        seat: ({ event }) =>
          fulfill({
            payment: { id: event.payment ?? '', money: usd(900) },
            effects: [{ type: 'seat', reference: event.payment }],
          }),
      },
    )
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
    app.deliver(pay('seat', { order: '1', payment: 'pi_2' }))
    expect(app.findings()).toEqual([])
  })

  test('a change without payment or effect has no key, and is refused', () => {
    const app = shop({}, { keyless: () => fulfill({ to: 'canceled' }) })
    app.deliver(pay('keyless', { order: '1' }))
    expect(app.inbox()[0]).toMatchObject({
      state: 'dead',
      reason: 'workflow scripted, keyless: a change needs a key: a payment or an effect',
    })
  })
})

describe('check 4: money', () => {
  const expecting = (cents: number, options: ScriptedOptions = {}): Play => {
    const app = shop(options)
    app.open({ id: '1', subject: 'user:1', expected: usd(cents) })
    return app
  }

  test('exactly what was expected is granted without a finding', () => {
    const app = expecting(4900)
    app.deliver(pay('paid', { order: '1' }))
    expect(app.order('1').state).toBe('paid')
    expect(app.findings()).toEqual([])
  })

  test('less is a contradiction: nothing is granted', () => {
    const app = expecting(5000)
    app.deliver(pay('paid', { order: '1' }))
    expect(app.order('1')).toMatchObject({ state: 'pending', effects: [], entitlements: [] })
    expect(kinds(app)).toEqual(['contradicted'])
    expect(app.findings()).toMatchObject([
      { kind: 'underpaid', figures: { paid: '49.00 USD', expected: '50.00 USD' } },
    ])
  })

  test('more is granted, with a finding', () => {
    const app = expecting(4000)
    app.deliver(pay('paid', { order: '1' }))
    expect(app.order('1').state).toBe('paid')
    expect(app.findings()).toMatchObject([{ kind: 'overpaid', severity: 'low' }])
  })

  test('another currency is a contradiction, whatever the amount', () => {
    const app = shop()
    app.open({ id: '1', subject: 'user:1', expected: money(1, 'eur') })
    app.deliver(pay('paid', { order: '1' }))
    expect(app.order('1').state).toBe('pending')
    expect(app.findings()).toMatchObject([{ kind: 'currency_differs' }])
  })

  test('compare says otherwise: tax and discounts', () => {
    const app = expecting(5000, {
      compare: ({ paid, expected }) => paid.amount * 100n >= expected.amount * 95n,
    })
    app.deliver(pay('paid', { order: '1' }))
    expect(app.order('1').state).toBe('paid')
    const strict = expecting(5000, { compare: () => false })
    strict.deliver(pay('paid', { order: '1' }))
    expect(strict.findings()).toMatchObject([{ kind: 'underpaid' }])
  })

  test('without an expected amount, accepts is asked of every paying event', () => {
    const asked: unknown[] = []
    const app = shop({
      accepts: ({ event, paid }) => {
        asked.push([event['order'], paid.amount])
        return paid.amount >= 4900n
      },
    })
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
    app.deliver(pay('paid', { order: '2', payment: 'pi_2', amount: 4899 }))
    expect(asked).toEqual([
      ['1', 4900n],
      ['2', 4899n],
    ])
    expect(app.order('1').state).toBe('paid')
    expect(app.order('2').state).toBe('pending')
    expect(app.findings()).toMatchObject([
      { kind: 'not_accepted', figures: { order: '2', paid: '48.99 USD' } },
    ])
  })

  test.each(['accepts', 'compare'] as const)(
    '%s that answers with a promise lets nothing pass',
    (asked) => {
      const app = shop({ [asked]: (async () => false) as never })
      if (asked === 'compare') app.open({ id: '1', subject: 'user:1', expected: usd(1) })
      app.deliver(pay('paid', { order: '1' }))
      expect(app.inbox()[0]).toMatchObject({
        state: 'dead',
        reason: expect.stringContaining('synchronously'),
      })
      expect(app.entitlements('user:1')).toEqual([])
    },
  )

  test('an order opened later with more than was captured is a finding in its commit', () => {
    const app = shop()
    app.deliver(pay('paid', { order: '1', amount: 4900 }))
    expect(app.open({ id: '1', subject: 'user:1', expected: usd(6000) })).toBe('existed')
    expect(app.findings()).toMatchObject([
      { kind: 'underpaid', figures: { captured: '49.00 USD' } },
    ])
  })

  test('a payment that comes again with other figures is a finding, and the first stays', () => {
    const app = shop(
      {},
      {
        seat: () =>
          fulfill({ payment: { id: 'pi_1', money: usd(5000) }, effects: [{ type: 'seat' }] }),
      },
    )
    app.deliver(pay('paid', { order: '1' }))
    app.deliver(pay('seat', { order: '1' }))
    expect(app.findings()).toMatchObject([
      { kind: 'amount_differs', figures: { recorded: '49.00 USD', named: '50.00 USD' } },
    ])
    expect(app.order('1').payments).toMatchObject([{ amount: 4900n }])
  })

  test('a second order that names a payment is a contradiction', () => {
    const app = play([
      scripted({ paid: () => fulfill({ to: 'paid', payment: { id: 'pi_same', money: usd(1) } }) }),
    ])
    app.deliver(pay('paid', { order: '1' }))
    app.deliver(pay('paid', { order: '2' }))
    expect(app.order('2')).toMatchObject({ state: 'pending', payments: [] })
    expect(app.findings()).toMatchObject([
      { kind: 'fulfilled_twice', figures: { order: '2', other_order: '1' } },
    ])
  })
})

describe('refunds', () => {
  test('partial refunds add up against the payment that they name', () => {
    const app = shop()
    app.deliver(pay('paid', { order: '1' }))
    app.deliver(pay('refunded', { order: '1', reference: 're_1', amount: 900 }))
    app.deliver(pay('refunded', { order: '1', reference: 're_2', amount: 4000 }))
    expect(kinds(app)).toEqual(['fulfilled', 'fulfilled', 'fulfilled'])
    app.deliver(pay('refunded', { order: '1', reference: 're_3', amount: 1 }))
    expect(kinds(app).at(-1)).toBe('contradicted')
    expect(app.findings()).toMatchObject([
      {
        kind: 'over_refunded',
        figures: { payment: 'pi_1', captured: '49.00 USD', refunded: '49.01 USD' },
      },
    ])
    expect(app.order('1').effects.map((each) => each.reference)).toEqual(['', 're_1', 're_2'])
  })

  test('another payment of the order does not count', () => {
    const app = shop()
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
    app.deliver(pay('paid', { order: '1', payment: 'pi_2' }))
    app.deliver(pay('refunded', { order: '1', payment: 'pi_1', amount: 5000 }))
    expect(kinds(app).at(-1)).toBe('contradicted')
  })

  test('a refund in another currency than its payment is a contradiction', () => {
    const app = shop(
      {},
      {
        yen: () => fulfill({ effects: [{ ...refundOf(), amount: money(1, 'jpy') }] }),
      },
    )
    app.deliver(pay('paid', { order: '1' }))
    app.deliver(pay('yen', { order: '1' }))
    expect(kinds(app).at(-1)).toBe('contradicted')
  })

  test('a refund waits for a payment that is not known yet', () => {
    const app = shop()
    app.deliver(pay('refunded', { order: '1', payment: 'pi_1' }))
    expect(app.inbox()[0]).toMatchObject({ state: 'deferred', waitsFor: 'payment pi_1 of order 1' })
    app.deliver(pay('paid', { order: '1', payment: 'pi_1' }))
    expect(app.order('1').state).toBe('refunded')
  })

  test('reversed refunds no longer count', () => {
    const app = shop(
      {},
      {
        failed: ({ event }) => ({
          kind: 'reverse',
          of: { type: 'refund', reference: event.reference },
          to: 'paid',
        }),
      },
    )
    app.deliver(pay('paid', { order: '1' }))
    app.deliver(pay('refunded', { order: '1', reference: 're_1' }))
    app.deliver(pay('failed', { order: '1', reference: 're_1' }))
    app.deliver(pay('refunded', { order: '1', reference: 're_2' }))
    expect(app.order('1').state).toBe('refunded')
    expect(app.findings()).toEqual([])
  })
})

describe('check 5: the transition', () => {
  const transitions = {
    pending: ['paid'],
    paid: ['disputed'],
    disputed: ['refunded'],
    refunded: [],
    canceled: [],
  }
  const to =
    (target: string): Script =>
    ({ event }) =>
      move({ to: target, once: { type: 'seat', reference: event.id } })
  const line = (): Play =>
    play([
      scripted(
        {
          paid: to('paid'),
          disputed: to('disputed'),
          refunded: to('refunded'),
          canceled: to('canceled'),
        },
        { transitions },
      ),
    ])

  test('a permitted transition is applied', () => {
    const app = line()
    app.deliver(pay('paid', { order: '1' }))
    expect(app.order('1').decisions).toMatchObject([{ kind: 'moved', from: 'pending', to: 'paid' }])
  })

  test('into the same state is applied', () => {
    const app = line()
    app.deliver(pay('paid', { order: '1' }))
    app.deliver(pay('paid', { order: '1' }))
    expect(app.order('1').decisions[1]).toMatchObject({ kind: 'moved', from: 'paid', to: 'paid' })
    expect(app.order('1').effects).toHaveLength(2)
  })

  test('a target that is still reachable defers, and comes in its turn', () => {
    const app = line()
    app.deliver(pay('refunded', { order: '1' }))
    expect(app.inbox()[0]).toMatchObject({
      state: 'deferred',
      waitsFor: expect.stringContaining('refunded'),
    })
    app.deliver(pay('paid', { order: '1' }))
    expect(app.order('1').state).toBe('paid')
    app.deliver(pay('disputed', { order: '1' }))
    expect(app.order('1').state).toBe('refunded')
    expect(app.inbox().map((each) => each.state)).toEqual(['processed', 'processed', 'processed'])
  })

  test('a target that can no longer be reached is a contradiction', () => {
    const app = line()
    app.deliver(pay('paid', { order: '1' }))
    app.deliver(pay('canceled', { order: '1' }))
    expect(app.findings()).toMatchObject([
      { kind: 'transition_refused', figures: { from: 'paid', to: 'canceled' } },
    ])
    expect(app.order('1')).toMatchObject({
      state: 'paid',
      effects: [{ reference: expect.any(String) }],
    })
  })

  test('without a target the order stays in its state', () => {
    const app = play([scripted({ seat: () => fulfill({ effects: [{ type: 'seat' }] }) })])
    app.deliver(pay('seat', { order: '1' }))
    expect(app.order('1')).toMatchObject({ state: 'pending', effects: [{ type: 'seat' }] })
  })
})

describe('what is kept of a contradicted decision', () => {
  const accepts: ScriptedOptions['accepts'] = ({ paid }) => paid.amount >= 4900n

  test('its payment, as not applied, and its names, so that its refund finds it', () => {
    const app = shop({ accepts })
    app.deliver(pay('paid', { order: '1', payment: 'pi_1', amount: 100 }))
    expect(app.order('1').payments).toEqual([
      { id: 'pi_1', amount: 100n, currency: 'USD', applied: false },
    ])
    app.deliver(pay('refunded', { payment: 'pi_1', amount: 100 }))
    expect(app.order('1').effects).toMatchObject([{ type: 'refund', reference: 're_1' }])
  })

  test('a refund in the same batch finds it too, and one that waits for it is woken', () => {
    const events = [
      pay('paid', { order: '1', payment: 'pi_1', amount: 100 }),
      pay('refunded', { order: '1', payment: 'pi_1', amount: 100 }),
    ]
    for (const order of [events, [...events].reverse()]) {
      const together = shop({ accepts })
      together.deliver(order)
      expect(together.order('1').effects).toMatchObject([{ type: 'refund' }])
      const apart = shop({ accepts })
      for (const event of order) apart.deliver(event)
      expect(apart.order('1').effects).toMatchObject([{ type: 'refund' }])
    }
  })

  test('a payment kept as not applied is applied by a later event that is accepted', () => {
    const app = shop({ accepts: ({ event }) => event['reference'] === 'ok' })
    app.deliver(pay('paid', { order: '1', payment: 'pi_1', reference: 'no' }))
    expect(app.order('1').payments).toMatchObject([{ applied: false }])
    app.deliver(pay('paid', { order: '1', payment: 'pi_1', reference: 'ok' }))
    expect(app.order('1').payments).toEqual([
      { id: 'pi_1', amount: 4900n, currency: 'USD', applied: true },
    ])
    expect(app.order('1').state).toBe('paid')
  })

  test('a payment that is not applied never counts as paid twice', () => {
    const app = shop({ accepts })
    app.deliver(pay('paid', { order: '1', payment: 'pi_1', amount: 100 }))
    app.deliver(pay('paid', { order: '1', payment: 'pi_2' }))
    expect(app.findings().map((each) => each.kind)).toEqual(['not_accepted'])
  })

  test('contradict of a workflow grants nothing and makes a finding with its figures', () => {
    const app = shop(
      {},
      { odd: () => contradict('the prices differ', { listed: 4900n, seen: 100 }) },
    )
    app.deliver(pay('odd', { order: '1' }))
    expect(app.findings()).toMatchObject([
      { kind: 'contradicted', figures: { reason: 'the prices differ', listed: 4900n } },
    ])
    expect(app.order('1')).toMatchObject({
      state: 'pending',
      decisions: [{ kind: 'contradicted', final: true }],
    })
  })
})

describe('flag', () => {
  const flagged: Script = () =>
    fulfill({
      to: 'paid',
      effects: [{ type: 'license' }],
      flag: { kind: 'price_is_old', figures: { price: 'p_1' } },
    })

  test('serves the customer and makes a finding', () => {
    const app = shop({}, { flagged })
    app.deliver(pay('flagged', { order: '1' }))
    expect(app.order('1').state).toBe('paid')
    expect(app.findings()).toMatchObject([
      { kind: 'price_is_old', class: 'contradiction', figures: { order: '1', price: 'p_1' } },
    ])
  })

  test('of an absorbed decision says nothing again', () => {
    const app = shop({}, { flagged })
    app.deliver(pay('flagged', { order: '1' }))
    app.deliver(pay('flagged', { order: '1' }))
    expect(app.findings()).toMatchObject([{ timesSeen: 1 }])
  })

  test('of a kind called like a part of every object is an ordinary kind', () => {
    const app = shop(
      {},
      { odd: () => fulfill({ effects: [{ type: 'seat' }], flag: { kind: 'constructor' } }) },
    )
    app.deliver(pay('odd', { order: '1' }))
    expect(app.findings()).toMatchObject([
      { kind: 'constructor', class: 'contradiction', severity: 'medium' },
    ])
  })
})
