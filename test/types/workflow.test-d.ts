/**
 * What a user's workflow must compile to, and what must not compile: checked by the compiler alone.
 */
import type Stripe from 'stripe'
import {
  byName,
  contradict,
  defer,
  defineWorkflow,
  effect,
  fulfill,
  handle,
  idOf,
  money,
  move,
  name,
  names,
  notOurs,
  operation,
  orderId,
  reverse,
  skip,
  state,
  waitFor,
  type Decision,
  type Effect,
  type EffectClaim,
  type HandlerOutbox,
  type Money,
  type Operation,
  type OperationState,
} from 'hookledger'
import { check, type Equal } from './expect.ts'

type State = 'pending' | 'paid' | 'disputed'
type EffectType = 'license' | 'refund'

const shop = defineWorkflow('shop', {
  sources: ['stripe'],
  initial: 'pending',
  opens: 'event',
  states: { pending: {}, paid: { entitles: true }, disputed: {} },
  transitions: { pending: ['paid'], paid: ['disputed'], disputed: ['paid'] },
  effects: {
    license: {
      apply: async ({ db, effect: made }) => void (await db.query('select $1', [made.reference])),
    },
    refund: {},
  },
  compare: ({ event, paid, expected }) => {
    const asked: readonly Money[] = [paid, expected]
    if (asked.length === 0) return false
    // the event is any of the source's, and narrows by its type
    if (event.type !== 'checkout.session.completed') return false
    return event.data.object.payment_status === 'no_payment_required'
  },
  accepts: ({ event }) =>
    event.type === 'payment_intent.succeeded' && event.data.object.amount_received > 0,
})

const one = { order: () => '1' }
const money49 = money(4900, 'usd')

// ─── bodies ───

shop.on('checkout.session.completed', {
  order: ({ event }) => orderId(event.data.object.client_reference_id),
  learn: ({ event }) => [
    name('payment_intent', event.data.object.payment_intent),
    name('session', event.data.object.id),
  ],
  decide: ({ event, order, ...given }) => {
    check<Equal<typeof event.data.object, Stripe.Checkout.Session>>()
    check<Equal<typeof event.type, 'checkout.session.completed'>>()
    check<Equal<typeof event.receivedAt, Date>>()
    check<Equal<typeof event.occurredAt, Date | null>>()
    check<Equal<typeof order.state, State>>()
    check<Equal<typeof order.subject, string | null>>()
    check<Equal<typeof given.effects, readonly Effect<EffectType>[]>>()
    check<Equal<(typeof given.payments)[number]['amount'], bigint>>()
    check<Equal<(typeof given.entitlements)[number]['active'], boolean>>()
    check<Equal<ReturnType<typeof given.derive>, string>>()
    // @ts-expect-error a session has no such field
    void event.data.object.amount_totl
    // @ts-expect-error what decide is given is read only
    order.state = 'paid'
    // @ts-expect-error lists too
    given.payments.push()
    return skip('only looked')
  },
})

// a list of types gives any of their bodies, narrowed by the type
shop.on(['refund.created', 'charge.refunded'], {
  order: ({ event }) => byName('payment_intent', event.data.object.payment_intent),
  decide: ({ event }) => {
    check<Equal<typeof event.type, 'refund.created' | 'charge.refunded'>>()
    check<Equal<typeof event.data.object, Stripe.Refund | Stripe.Charge>>()
    if (event.type === 'refund.created') {
      check<Equal<typeof event.data.object, Stripe.Refund>>()
    }
    // @ts-expect-error only a charge has it
    void event.data.object.amount_captured
    return skip('only looked')
  },
})

// ─── names of events ───

// @ts-expect-error Stripe sends no such event
shop.on('checkout.session.complete', { ...one, decide: () => skip('no') })
// @ts-expect-error nor this one, in a list
shop.on(['refund.created', 'refund.create'], { ...one, decide: () => skip('no') })

// ─── which order ───

shop
  .on('invoice.paid', {
    order: ({ event }) => event.data.object.id,
    decide: () => skip('a text is the id'),
  })
  .on('charge.failed', {
    order: ({ event }) => event.data.object.metadata['order_id'],
    decide: () => skip('which may be missing'),
  })
  .on('charge.captured', { order: () => notOurs('captured later'), decide: () => skip('never') })
  .on('charge.expired', {
    order: ({ event }) =>
      waitFor(
        names({ payment_intent: event.data.object.payment_intent, charge: event.data.object.id }),
      ),
    decide: () => skip('never'),
  })
  .on('charge.pending', {
    order: ({ event }) =>
      waitFor([
        name('charge', event.data.object.id),
        name('payment_intent', event.data.object.payment_intent),
      ]),
    decide: () => skip('never'),
  })
// @ts-expect-error an order is not a number
shop.on('charge.updated', { order: () => 5, decide: () => skip('never') })
// @ts-expect-error an order is known at once
shop.on('charge.updated', { order: async () => '1', decide: () => skip('never') })
// @ts-expect-error decide is there
shop.on('charge.updated', one)
// @ts-expect-error a wait ends as a finding, or ignored
shop.on('charge.updated', { ...one, decide: () => skip('never'), unclaimed: 'dead' })
// @ts-expect-error a misspelled part is no part
shop.on('charge.updated', { ...one, decide: () => skip('never'), lern: () => [] })

// ─── decisions ───

const decided = shop.on('charge.succeeded', {
  ...one,
  decide: ({ event, order, effects }) => {
    const charge = event.data.object
    if (charge.status === 'failed') {
      return contradict('it failed', { amount: charge.amount, code: charge.failure_code })
    }
    if (charge.status === 'pending') {
      return defer({ missing: [effect('license'), state('paid', 'disputed')], for: 5000 })
    }
    return charge.amount === 0
      ? skip('nothing was paid')
      : fulfill({
          to: effects.some((each) => each.type === 'refund') ? 'disputed' : 'paid',
          payment: {
            id: idOf(charge.payment_intent) ?? charge.id,
            money: money(charge.amount, charge.currency),
          },
          effects: [{ type: 'license' }, { type: 'refund', reference: charge.id, amount: money49 }],
          entitle: [
            {
              subject: order.subject ?? 'user:1',
              entitlement: 'pro',
              quantity: 2,
              validUntil: new Date(),
            },
          ],
          flag: { kind: 'looked_at', figures: { amount: charge.amount } },
        })
  },
})
decided.on('charge.updated', {
  ...one,
  decide: () => move({ to: 'paid', once: { type: 'license' } }),
})
decided.on('charge.updated', {
  ...one,
  decide: () => reverse({ of: { type: 'refund', reference: 're_1' }, to: 'paid' }),
})
decided.on('charge.updated', { ...one, decide: () => reverse({ of: { type: 'refund' } }) })
decided.on('charge.updated', { ...one, decide: () => fulfill({ effects: [{ type: 'license' }] }) })
decided.on('charge.updated', {
  ...one,
  decide: () => fulfill({ payment: { id: 'pi', money: money49 } }),
})
decided.on('charge.updated', {
  ...one,
  decide: () => defer({ missing: { kind: 'payment', id: 'pi_1' } }),
})

// a decision that was made before it is returned fits as well
decided.on('charge.updated', {
  ...one,
  decide: ({ event }) => {
    const paid = fulfill({ payment: { id: 'pi', money: money49 }, effects: [{ type: 'license' }] })
    const moved = move({ to: 'paid', once: { type: 'license' } })
    return event.livemode ? paid : moved
  },
})

// what follows from nothing, waits or contradicts fits everywhere
const anywhere: Decision<never, never>[] = [
  skip('no'),
  contradict('no'),
  defer({ missing: { kind: 'payment', id: 'pi' } }),
]
const fits: Decision<'a', 'b'>[] = anywhere
void fits

// states and effects of a helper of one's own are held too
const stateOf = (full: boolean): 'paid' | 'disputed' => (full ? 'disputed' : 'paid')
decided.on('charge.updated', {
  ...one,
  decide: () => fulfill({ to: stateOf(true), effects: [{ type: 'license' }] }),
})
const unknownState = (): 'paid' | 'lost' => 'lost'
decided.on('charge.updated', {
  ...one,
  // @ts-expect-error one of its states is not declared
  decide: () => fulfill({ to: unknownState(), effects: [{ type: 'license' }] }),
})

decided.on('charge.updated', {
  ...one,
  // @ts-expect-error no such state
  decide: () => fulfill({ to: 'payed', effects: [{ type: 'license' }] }),
})
decided.on('charge.updated', {
  ...one,
  // @ts-expect-error no such effect: it would be a second fulfillment
  decide: () => fulfill({ to: 'paid', effects: [{ type: 'licence' }] }),
})
decided.on('charge.updated', {
  ...one,
  // @ts-expect-error no such effect among those that are
  decide: () => fulfill({ to: 'paid', effects: [{ type: 'license' }, { type: 'refunds' }] }),
})
decided.on('charge.updated', {
  ...one,
  // @ts-expect-error no such state in one of two answers
  decide: () => (Math.random() < 1 ? skip('no') : move({ to: 'lost', once: { type: 'refund' } })),
})
decided.on('charge.updated', {
  ...one,
  // @ts-expect-error no such effect to reverse
  decide: () => reverse({ of: { type: 'refnd' } }),
})
decided.on('charge.updated', {
  ...one,
  // @ts-expect-error no such effect to wait for
  decide: () => defer({ missing: effect('licence') }),
})
decided.on('charge.updated', {
  ...one,
  // @ts-expect-error no such state to wait for
  decide: () => defer({ missing: state('payed') }),
})
// @ts-expect-error decide is not asynchronous
decided.on('charge.updated', { ...one, decide: async () => skip('no') })
// @ts-expect-error decide decides
decided.on('charge.updated', { ...one, decide: () => undefined })
decided.on('charge.updated', {
  ...one,
  // @ts-expect-error an amount is money, not a number
  decide: () => fulfill({ payment: { id: 'pi', money: 4900 } }),
})
decided.on('charge.updated', {
  ...one,
  // @ts-expect-error a reason is given
  decide: () => skip(),
})
decided.on('charge.updated', {
  ...one,
  // @ts-expect-error a move has its fact
  decide: () => move({ to: 'paid' }),
})
decided.on('charge.updated', {
  ...one,
  decide: ({ order: { subject } }) =>
    // @ts-expect-error an order that an event opened may have no subject
    fulfill({ effects: [{ type: 'license' }], entitle: [{ subject, entitlement: 'pro' }] }),
})
decided.on('charge.updated', {
  ...one,
  // @ts-expect-error figures are plain
  decide: () => contradict('no', { deep: { amount: 1 } }),
})

// ─── the definition ───

const base = {
  sources: ['stripe'],
  initial: 'pending',
  states: { pending: {}, paid: {} },
  transitions: { pending: ['paid'] },
  effects: {},
} as const

defineWorkflow('plain', base)
// @ts-expect-error an initial state is declared
defineWorkflow('plain', { ...base, initial: 'pendng' })
// @ts-expect-error a transition starts at a declared state
defineWorkflow('plain', { ...base, transitions: { payd: ['pending'] } })
// @ts-expect-error a transition ends at a declared state
defineWorkflow('plain', { ...base, transitions: { pending: ['payed'] } })
// @ts-expect-error a misspelled option of a state would entitle nobody
defineWorkflow('plain', { ...base, states: { pending: {}, paid: { entitle: true } } })
// @ts-expect-error orders are opened by the app or by events
defineWorkflow('plain', { ...base, opens: 'both' })
// @ts-expect-error accepts answers at once
defineWorkflow('plain', { ...base, accepts: async () => true })
// @ts-expect-error there are states
defineWorkflow('plain', { ...base, states: undefined })

// orders that only the app opens have a subject
defineWorkflow('bought', { ...base, opens: 'app', effects: { license: {} } }).on(
  'charge.succeeded',
  {
    ...one,
    decide: ({ order }) => {
      check<Equal<typeof order.subject, string>>()
      return fulfill({
        effects: [{ type: 'license' }],
        entitle: [{ subject: order.subject, entitlement: 'pro' }],
      })
    },
  },
)

// a workflow without effects pays, and knows no effect
defineWorkflow('payments', base).on('charge.succeeded', {
  ...one,
  // @ts-expect-error it declares none
  decide: () => fulfill({ effects: [{ type: 'license' }] }),
})

// ─── sources without types, and several ───

defineWorkflow('anything', { ...base, sources: ['acme'] }).on(['order.paid', 'whatever'], {
  order: ({ event }) => {
    check<Equal<typeof event.data, unknown>>()
    check<Equal<typeof event.id, string | undefined>>()
    return event.id
  },
  decide: () => skip('any type goes'),
})
const both = defineWorkflow('both', { ...base, sources: ['stripe', 'acme'] })
both.on('order.paid', { ...one, decide: () => skip('a type that only the other sends') })
both.on('refund.created', {
  ...one,
  decide: ({ event }) => {
    // either source may send it
    check<Equal<typeof event.type, string>>()
    return skip(event.source.name ?? 'none')
  },
})

// ─── what is sent ───

const sender = defineWorkflow('sender', {
  ...base,
  destinations: ['email', 'crm'],
  effects: { license: {}, refund: {} },
})

sender.on('charge.succeeded', {
  ...one,
  decide: ({ operations, ...given }) => {
    check<Equal<typeof operations, readonly Operation<'license' | 'refund', 'email' | 'crm'>[]>>()
    check<Equal<(typeof given.effects)[number]['operations'], typeof operations>>()
    check<Equal<(typeof operations)[number]['state'], OperationState>>()
    check<Equal<(typeof operations)[number]['receipt'], Readonly<Record<string, unknown>> | null>>()
    void [given.effects, operations.find((each) => each.destination === 'email')]
    // @ts-expect-error no such destination
    void operations.find((each) => each.destination === 'emial')
    return fulfill({
      to: 'paid',
      effects: [
        {
          type: 'license',
          send: [
            { to: 'email', name: 'receipt', body: { any: 1 }, while: ['paid'] },
            { to: 'crm', body: null },
          ],
        },
        { type: 'refund', reference: 're_1' },
      ],
    })
  },
})
sender.on('charge.succeeded', {
  ...one,
  decide: () =>
    move({
      to: 'paid',
      once: { type: 'license', send: [{ to: 'crm', body: 1, while: ['pending'] }] },
    }),
})
sender.on('charge.succeeded', {
  ...one,
  decide: () =>
    fulfill({ effects: [{ type: 'license', send: [{ to: 'email', body: 1, while: ['paid'] }] }] }),
})
sender.on('charge.succeeded', {
  ...one,
  decide: () =>
    reverse({
      of: { type: 'refund', reference: 're_1' },
      effects: [{ type: 'license', send: [{ to: 'email', body: 1 }] }],
    }),
})
sender.on('charge.succeeded', {
  ...one,
  decide: ({ event }) =>
    event.livemode
      ? defer({ missing: operation('license', { name: 'receipt', to: 'email' }) })
      : defer({ missing: [operation('refund', { reference: 're_1' }), effect('license')] }),
})

// an effect that is named with its type alone sends nothing, and fits every workflow
const plainEffect: EffectClaim<'license'> = { type: 'license' }
sender.on('charge.succeeded', {
  ...one,
  decide: () => move({ to: 'paid', once: plainEffect }),
})

sender.on('charge.succeeded', {
  ...one,
  // @ts-expect-error no such destination
  decide: () => fulfill({ effects: [{ type: 'license', send: [{ to: 'emial', body: 1 }] }] }),
})
sender.on('charge.succeeded', {
  ...one,
  decide: () =>
    // @ts-expect-error no such state
    fulfill({ effects: [{ type: 'license', send: [{ to: 'crm', body: 1, while: ['payd'] }] }] }),
})
sender.on('charge.succeeded', {
  ...one,
  // @ts-expect-error no such destination to move by
  decide: () => move({ to: 'paid', once: { type: 'license', send: [{ to: 'crn', body: 1 }] } }),
})
sender.on('charge.succeeded', {
  ...one,
  // @ts-expect-error something is sent
  decide: () => fulfill({ effects: [{ type: 'license', send: [{ to: 'crm' }] }] }),
})
sender.on('charge.succeeded', {
  ...one,
  // @ts-expect-error what is reversed sends nothing
  decide: () => reverse({ of: { type: 'refund', send: [{ to: 'crm', body: 1 }] } }),
})
sender.on('charge.succeeded', {
  ...one,
  // @ts-expect-error no such destination to wait for
  decide: () => defer({ missing: operation('license', { to: 'emial' }) }),
})
sender.on('charge.succeeded', {
  ...one,
  // @ts-expect-error no such effect whose operation could be waited for
  decide: () => defer({ missing: operation('licence') }),
})

// a workflow that declares no destinations sends anywhere: the configuration is asked when it decides
decided.on('charge.updated', {
  ...one,
  decide: ({ ...given }) => {
    check<Equal<(typeof given.operations)[number]['destination'], string>>()
    return fulfill({
      to: given.operations.length === 0 ? 'paid' : 'disputed',
      effects: [{ type: 'license', send: [{ to: 'anywhere', body: 1, while: ['paid'] }] }],
    })
  },
})
decided.on('charge.updated', {
  ...one,
  decide: () =>
    // @ts-expect-error its states are held all the same
    fulfill({ effects: [{ type: 'license', send: [{ to: 'any', body: 1, while: ['lost'] }] }] }),
})

handle('stripe', 'account.updated', async ({ event, outbox }) => {
  check<Equal<typeof outbox, HandlerOutbox>>()
  check<Equal<ReturnType<typeof outbox.add>, Promise<'added' | 'existed'>>>()
  await outbox.add({ to: 'email', key: event.id, body: {}, order: '1' })
  // @ts-expect-error an operation has a key
  await outbox.add({ to: 'email', body: {} })
})
