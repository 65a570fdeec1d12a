import { describe, expect, test } from 'vitest'
import {
  byName,
  defineWorkflow,
  fulfill,
  idOf,
  money,
  move,
  names,
  orderId,
  stripe,
} from 'hookledger'
import {
  checkoutSessionCompleted,
  checkoutSessionExpired,
  play,
  refundCreated,
  signStandardWebhook,
  signStripe,
  stripeBody,
} from 'hookledger/testing'
import { pay, usd } from '../support/pay-events.ts'
import { scripted, type Script } from '../support/scripted-workflow.ts'

const license = defineWorkflow('license', {
  sources: ['stripe'],
  initial: 'pending',
  opens: 'event',
  states: { pending: {}, paid: { entitles: true }, refunded: {}, canceled: {} },
  transitions: {
    pending: ['paid', 'canceled'],
    canceled: ['paid'],
    paid: ['refunded'],
    refunded: [],
  },
  effects: { license: {}, refund: {}, expired: {} },
  accepts: ({ paid }) => paid.currency === 'USD' && paid.amount >= 4900n,
})
  .on('checkout.session.completed', {
    order: ({ event }) => orderId(event.data.object.client_reference_id),
    learn: ({ event }) => names({ payment_intent: event.data.object.payment_intent }),
    decide: ({ event, order }) => {
      const session = event.data.object
      return fulfill({
        to: 'paid',
        payment: {
          id: idOf(session.payment_intent) ?? session.id,
          money: money(session.amount_total ?? 0, session.currency ?? ''),
        },
        effects: [{ type: 'license' }],
        entitle: [
          {
            subject: order.subject ?? `email:${session.customer_details?.email}`,
            entitlement: 'pro',
          },
        ],
      })
    },
  })
  .on('refund.created', {
    order: ({ event }) => byName('payment_intent', event.data.object.payment_intent),
    decide: ({ event }) => {
      const { id, amount, currency, payment_intent: intent } = event.data.object
      return fulfill({
        to: 'refunded',
        effects: [
          {
            type: 'refund',
            reference: id,
            amount: money(amount, currency),
            payment: idOf(intent) ?? undefined,
          },
        ],
      })
    },
  })
  .on('checkout.session.expired', {
    order: ({ event }) => orderId(event.data.object.client_reference_id),
    decide: ({ order }) =>
      move({ to: order.state === 'pending' ? 'canceled' : order.state, once: { type: 'expired' } }),
  })

const paid: Script = ({ order }) =>
  fulfill({
    to: 'paid',
    effects: [{ type: 'license' }],
    entitle: [{ subject: order.subject ?? 'user:1', entitlement: 'seats', quantity: 2 }],
  })

describe('play', () => {
  test("runs a workflow over a provider's events in memory", () => {
    const app = play([license])
    app.deliver(checkoutSessionCompleted({ order: '1001', email: 'ada@example.com' }))
    expect(app.order('1001')).toMatchObject({
      id: '1001',
      workflow: 'license',
      state: 'paid',
      payments: [{ amount: 4900n, currency: 'USD', applied: true }],
      effects: [{ type: 'license', reference: '', reversed: false }],
      entitlements: [{ subject: 'email:ada@example.com', entitlement: 'pro', active: true }],
      findings: [],
    })
    expect(app.entitlements('email:ada@example.com')).toEqual([
      { entitlement: 'pro', quantity: 1, validUntil: null },
    ])
  })

  test('explains each decision in one line', () => {
    const app = play([license])
    app.deliver(refundCreated({ order: '1001', eventId: 'evt_r' }))
    app.deliver(checkoutSessionCompleted({ order: '1001', eventId: 'evt_s' }))
    const [first, second] = app.order('1001').decisions
    expect(first).toMatchObject({
      eventId: 'evt_s',
      kind: 'fulfilled',
      from: 'pending',
      to: 'paid',
      effects: ['license'],
      granted: ['email:ada@example.com pro'],
      final: true,
    })
    expect(first?.text).toMatch(
      /^checkout\.session\.completed evt_s: fulfilled, pending to paid: license; payment pi_\w+ of 49\.00 USD; made license; granted email:ada@example\.com pro$/,
    )
    expect(second).toMatchObject({
      kind: 'fulfilled',
      to: 'refunded',
      revoked: ['email:ada@example.com pro'],
    })
  })

  test('shows what waits, for what and until when', () => {
    const app = play([license], { now: new Date('2026-03-01T00:00:00Z') })
    const [entry] = app.deliver(refundCreated({ order: '1001' }))
    expect(entry).toMatchObject({
      state: 'deferred',
      source: 'stripe',
      waitsFor: expect.stringMatching(/^payment_intent pi_/),
      until: new Date('2026-03-02T00:00:00Z'),
    })
    expect(app.inbox()).toEqual([entry])
  })

  test('delivers a list as one batch, whichever comes first', () => {
    const app = play([license])
    const entries = app.deliver([
      refundCreated({ order: '1' }),
      checkoutSessionCompleted({ order: '1' }),
    ])
    expect(entries.map((entry) => entry.state)).toEqual(['processed', 'processed'])
    expect(app.order('1').state).toBe('refunded')
  })

  test('takes bodies as text, as bytes and with the headers they were signed with', () => {
    const app = play([license])
    const body = stripeBody(checkoutSessionCompleted({ order: '1' }))
    app.deliver(body)
    app.deliver(new TextEncoder().encode(body))
    app.deliver({ body, headers: signStripe(body, 'whsec_0123456789abcdef') })
    expect(app.inbox()).toMatchObject([{ deliveries: 3, state: 'processed' }])
  })

  test('names an event of Standard Webhooks by its header', () => {
    const app = play([scripted({ paid })])
    const body = JSON.stringify({ type: 'paid', order: '1' })
    const headers = signStandardWebhook(body, 'whsec_c2VjcmV0', { id: 'msg_1', timestamp: 1 })
    expect(app.deliver({ body, headers })).toMatchObject([{ eventId: 'msg_1', state: 'processed' }])
  })

  test('names a body without an id after its content', () => {
    const app = play([scripted({ paid })])
    const { id: _, ...body } = pay('paid', { order: '1' })
    app.deliver(body)
    app.deliver({ ...body })
    app.deliver({ ...body, order: '2' })
    expect(app.inbox().map((entry) => entry.deliveries)).toEqual([2, 1])
  })

  test.each(['', 'not json', '[]', '"text"', 'null'])(
    'a body that is %j is dead with the reason',
    (body) => {
      const app = play([license])
      expect(app.deliver(body)).toMatchObject([{ state: 'dead', eventType: 'unknown' }])
      expect(app.findings()).toMatchObject([{ kind: 'dead_event' }])
    },
  )

  test("does not touch the caller's bodies", () => {
    const event = checkoutSessionCompleted({ order: '1' })
    play([license]).deliver(event)
    expect(Object.isFrozen(event.data.object)).toBe(false)
  })

  test('an event of the other environment is ignored', () => {
    const live = checkoutSessionCompleted({ order: '1', livemode: true })
    expect(play([license]).deliver(live)).toMatchObject([
      { state: 'ignored', reason: expect.stringContaining('live environment') },
    ])
    expect(play([license], { environment: 'live' }).deliver(live)).toMatchObject([
      { state: 'processed' },
    ])
  })

  test("configured sources lend their account's rule", () => {
    const event = checkoutSessionCompleted({ order: '1', account: 'acct_connected' })
    const secrets = { signingSecrets: ['whsec_0123456789abcdef'] }
    const closed = play([license], {
      sources: { stripe: stripe({ account: 'acct_1', ...secrets }) },
    })
    closed.deliver(event)
    expect(closed.findings()).toMatchObject([{ kind: 'foreign_account' }])
    const open = play([license], {
      sources: { stripe: stripe({ account: 'acct_1', connect: ['acct_connected'], ...secrets }) },
    })
    open.deliver(event)
    expect(open.order('1').state).toBe('paid')
  })

  test("the source is the workflow's first, or the one that is named", () => {
    const app = play([license])
    const event = checkoutSessionCompleted({ order: '1' })
    expect(app.deliver(event, { source: 'stripe' })).toMatchObject([{ source: 'stripe' }])
    expect(() => app.deliver(event, { source: 'strip' })).toThrow(
      expect.objectContaining({
        code: 'HKL_CONFIG_UNKNOWN_NAME',
        message: expect.stringContaining('"stripe"'),
      }),
    )
  })
})

describe('play, opening orders', () => {
  const waiting = scripted({ paid }, { opens: 'app', name: 'waiting' })

  test('opens an order that its events wait for', () => {
    const app = play([waiting])
    app.deliver(pay('paid', { order: '7' }))
    expect(app.open({ id: '7', subject: 'user:7', expected: usd(100) })).toBe('created')
    expect(app.order('7')).toMatchObject({ state: 'paid', subject: 'user:7', expected: usd(100) })
    expect(app.open({ id: '7', subject: 'user:8' })).toBe('mismatch')
    expect(app.findings()).toMatchObject([{ kind: 'order_differs' }])
  })

  test('needs the name of the workflow where there are several', () => {
    const app = play([waiting, scripted({ topup: paid }, { name: 'topups' })])
    expect(() => app.open({ id: '1' })).toThrow(/workflow: 'waiting' or 'topups'/)
    expect(() => app.open({ id: '1', workflow: 'topup' })).toThrow(
      /no workflow is named "topup", did you mean "topups"/,
    )
    expect(app.open({ id: '1', workflow: 'topups' })).toBe('created')
    expect(app.order('1').workflow).toBe('topups')
  })

  test.each([[''], ['x'.repeat(256)], ['a\u0000']])('refuses an id that cannot be a key', (id) => {
    expect(() => play([waiting]).open({ id })).toThrow(Error)
  })
})

describe('play, reading', () => {
  test('an order that nobody opened is an error that tells what there is instead', () => {
    const app = play([license])
    app.deliver(checkoutSessionCompleted({ order: '1' }))
    app.deliver(refundCreated({ order: '2', eventId: 'evt_waits' }))
    expect(() => app.order('3')).toThrow(
      expect.objectContaining({
        code: 'HKL_NOT_FOUND',
        message: expect.stringMatching(
          /no order "3".*orders: "1"\n.*evt_waits is deferred: waits for payment_intent/,
        ),
      }),
    )
  })

  test('entitlements of several orders are combined as declared', () => {
    const two = (rules?: { seats: 'sum' | 'max' }) => {
      const app = play([scripted({ paid })], { entitlements: rules })
      app.deliver([pay('paid', { order: '1' }), pay('paid', { order: '2' })])
      return app.entitlements('user:1')
    }
    expect(two()).toEqual([{ entitlement: 'seats', quantity: 2, validUntil: null }])
    expect(two({ seats: 'max' })).toMatchObject([{ quantity: 2 }])
    expect(two({ seats: 'sum' })).toMatchObject([{ quantity: 4 }])
  })

  test('an end holds only where no other order is without one', () => {
    const until =
      (date: string | null): Script =>
      () =>
        fulfill({
          to: 'paid',
          effects: [{ type: 'license' }],
          entitle: [
            {
              subject: 'user:1',
              entitlement: 'pro',
              validUntil: date === null ? null : new Date(date),
            },
          ],
        })
    const app = play([
      scripted({ short: until('2026-02-01'), long: until('2026-03-01'), ever: until(null) }),
    ])
    app.deliver([pay('long', { order: '1' }), pay('short', { order: '2' })])
    expect(app.entitlements('user:1')[0]?.validUntil).toEqual(new Date('2026-03-01'))
    app.deliver(pay('ever', { order: '3' }))
    expect(app.entitlements('user:1')[0]?.validUntil).toBeNull()
  })

  test('findings of an order stand with it', () => {
    const app = play([license])
    app.deliver(checkoutSessionCompleted({ order: '1', amount: 100 }))
    expect(app.order('1').findings).toMatchObject([{ kind: 'not_accepted', timesSeen: 1 }])
    expect(app.order('1').decisions[0]?.text).toContain('not applied; found not_accepted')
  })

  test('what a function threw is at hand', () => {
    const broken: Script = () => {
      throw new TypeError('cannot read that')
    }
    const [entry] = play([scripted({ broken })]).deliver(pay('broken', { order: '1' }))
    expect(entry).toMatchObject({
      state: 'dead',
      reason: 'it failed each time: TypeError: cannot read that',
    })
    expect(entry?.error).toBeInstanceOf(TypeError)
  })

  test('a dead event is tried again when it is delivered again', () => {
    let broken = true
    const flaky: Script = () => {
      if (broken) throw new Error('not yet')
      return fulfill({ effects: [{ type: 'license' }] })
    }
    const app = play([scripted({ flaky })])
    const event = pay('flaky', { order: '1' })
    app.deliver(event)
    broken = false
    expect(app.deliver(event)).toMatchObject([{ state: 'processed', deliveries: 2, error: null }])
  })

  test('time passes only when the test says so', () => {
    const app = play([license], { deferralMs: 1000 })
    app.deliver(refundCreated({ order: '1' }))
    app.advance(999)
    expect(app.inbox()).toMatchObject([{ overdue: false }])
    app.advance(1)
    expect(app.inbox()).toMatchObject([{ overdue: true }])
    app.advance(1000)
    expect(app.findings()).toMatchObject([{ kind: 'wait_overdue', timesSeen: 1 }])
  })

  test('an expiry before the payment and after it end the same', () => {
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const app = play([license])
      const events = [
        checkoutSessionCompleted({ order: '1' }),
        checkoutSessionExpired({ order: '1' }),
      ]
      for (const index of order) app.deliver(events[index] ?? {})
      expect(app.order('1').state).toBe('paid')
    }
  })
})

describe('destinations of a run in memory', () => {
  test('are refused by name where they could send nothing', () => {
    for (const email of [{}, null, 'email', { encode: 'json' }]) {
      expect(() => play([license], { destinations: { email: email as never } })).toThrow(
        'destination "email" has no encode function',
      )
    }
  })

  test('may be objects with a state of their own', () => {
    class Prefixed {
      readonly #prefix = '>'
      encode({ body }: { readonly body: unknown }): Uint8Array {
        return new TextEncoder().encode(`${this.#prefix}${JSON.stringify(body)}`)
      }
    }
    const greeting = { to: 'email', name: 'hello', body: { a: 1 } }
    const greet = (): unknown => fulfill({ effects: [{ type: 'license', send: [greeting] }] })
    const workflow = scripted({ greet }, { destinations: ['email'] })
    const app = play([workflow], { destinations: { email: new Prefixed() } })
    app.deliver(pay('greet', { order: '1' }))
    expect(app.inbox()).toMatchObject([{ state: 'processed' }])
    expect(app.sent()).toHaveLength(1)
  })
})
