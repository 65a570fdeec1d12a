/**
 * What workflows that mirror and gather must compile to, and what must not compile: checked by the compiler
 * alone.
 */
import type Stripe from 'stripe'
import {
  defer,
  defineWorkflow,
  effect,
  fulfill,
  linkedCustomer,
  mirrored,
  move,
  name,
  skip,
  type MirrorDecision,
} from 'hookledger'
import { everyOrder, play, subscriptionUpdated, type InboxEntry } from 'hookledger/testing'
import { check, type Equal } from './expect.ts'

const base = {
  initial: 'incomplete',
  opens: 'event',
  states: { incomplete: {}, active: { entitles: true }, canceled: {} },
  transitions: {},
  effects: { credits: {}, reminder: {} },
} as const

const saas = defineWorkflow('saas', { ...base, sources: ['stripe'] })
const own = defineWorkflow('own', { ...base, sources: ['own'] })

const look = {
  order: () => 'sub_1',
  object: () => name('subscription', 'sub_1') ?? { kind: 'subscription', value: 'sub_1' },
  fetch: (): Promise<null> => Promise.resolve(null),
}

// ─── the API is the source's, the object is what fetch finds, and null ───

saas.mirror(['customer.subscription.updated', 'customer.subscription.deleted'], {
  order: ({ event }) => event.data.object.id,
  object: ({ event }) => {
    check<Equal<typeof event.data.object, Stripe.Subscription>>()
    return { kind: 'subscription', value: event.data.object.id }
  },
  fetch: async ({ api, object, account, signal }) => {
    check<Equal<typeof api, Stripe>>()
    check<Equal<typeof object.value, string>>()
    check<Equal<typeof account, string>>()
    check<Equal<typeof signal, AbortSignal>>()
    void [account, signal]
    const found: Stripe.Subscription = await api.subscriptions.retrieve(object.value)
    return found
  },
  customer: ({ event, current }) => {
    check<Equal<typeof current, Stripe.Subscription | null>>()
    check<Equal<typeof event.data.object, Stripe.Subscription>>()
    void event
    return typeof current?.customer === 'string' ? current.customer : null
  },
  decide: ({ current, event, order, customer, evidence }) => {
    check<Equal<typeof current, Stripe.Subscription | null>>()
    check<Equal<typeof order.state, 'incomplete' | 'active' | 'canceled'>>()
    check<Equal<typeof evidence, undefined>>()
    void [order, evidence]
    if (current === null) return mirrored({ to: 'canceled', settles: ['unknown_price'] })
    if (customer?.subject == null) return defer({ missing: linkedCustomer(customer?.id ?? '') })
    if (event.type === 'customer.subscription.deleted') return skip('only looked')
    return mirrored({
      to: 'active',
      entitle: [{ subject: customer.subject, entitlement: 'team', quantity: 3 }],
      effects: [{ type: 'reminder', reference: current.id }],
    })
  },
})

// a source without known types gives an API that must be narrowed
own.mirror('changed', {
  ...look,
  fetch: ({ api }) => {
    check<Equal<typeof api, unknown>>()
    void api
    return Promise.resolve({ status: 'active' })
  },
  decide: ({ current }) => {
    check<Equal<typeof current, { status: string } | null>>()
    void current
    return skip('only looked')
  },
})

// ─── what counts once is not for a mirror, and the other way round ───

saas.mirror('customer.subscription.paused', {
  ...look,
  // @ts-expect-error a mirror fulfills nothing
  decide: () => fulfill({ to: 'active', effects: [{ type: 'credits' }] }),
})
saas.mirror('customer.subscription.paused', {
  ...look,
  // @ts-expect-error nor moves once
  decide: () => move({ to: 'active', once: { type: 'credits' } }),
})
saas.on('invoice.paid', {
  order: () => 'sub_1',
  // @ts-expect-error an event that counts once follows nothing
  decide: () => mirrored({ to: 'active' }),
})
saas.mirror('customer.subscription.paused', {
  ...look,
  // @ts-expect-error it has no such state
  decide: () => mirrored({ to: 'activ' }),
})
saas.mirror('customer.subscription.paused', {
  ...look,
  // @ts-expect-error nor such an effect
  decide: () => mirrored({ to: 'active', effects: [{ type: 'credit' }] }),
})
saas.mirror('customer.subscription.paused', {
  ...look,
  // @ts-expect-error it records no payment
  decide: () => mirrored({ payment: { id: 'pi_1', money: { amount: 1n, currency: 'USD' } } }),
})
// @ts-expect-error Stripe sends no such event
saas.mirror('customer.subscription.changed', { ...look, decide: () => skip('no') })
// @ts-expect-error without a fetch there is nothing to follow
saas.mirror('customer.subscription.paused', {
  order: look.order,
  object: look.object,
  decide: () => skip('no'),
})
saas.mirror('customer.subscription.paused', {
  ...look,
  // @ts-expect-error it is asked, and not just there
  fetch: () => null,
  decide: () => skip('no'),
})
saas.mirror('customer.subscription.paused', {
  ...look,
  // @ts-expect-error what is looked at has a kind and an id
  object: () => 'sub_1',
  decide: () => skip('no'),
})

const either: MirrorDecision<'active', 'credits'>[] = [
  mirrored({ to: 'active', effects: [{ type: 'credits' }] }),
  mirrored({}),
  skip('no'),
  defer({ missing: effect('credits') }),
]
void either

// ─── evidence is what gather finds out ───

saas.on('invoice.paid', {
  order: ({ event }) => event.data.object.id,
  gather: async ({ api, event, order, signal }) => {
    check<Equal<typeof api, Stripe>>()
    check<Equal<typeof event.data.object, Stripe.Invoice>>()
    check<Equal<typeof signal, AbortSignal>>()
    void signal
    const payments = await api.invoicePayments.list({ invoice: event.data.object.id ?? '' })
    return { state: order?.state ?? null, payments: payments.data.length }
  },
  decide: ({ evidence }) => {
    check<Equal<typeof evidence.payments, number>>()
    check<Equal<typeof evidence.state, 'incomplete' | 'active' | 'canceled' | null>>()
    return skip(`${evidence.payments} payments`)
  },
})
saas.on('invoice.paid', {
  order: () => 'sub_1',
  decide: ({ evidence, ...rest }) => {
    check<Equal<typeof evidence, undefined>>()
    void evidence
    // @ts-expect-error only a mirror looks at an object
    void rest.current
    return skip('nothing was gathered')
  },
})

// ─── in memory ───

const app = play([saas], {
  sources: {
    stripe: {
      present: ({ kind, value }, account) => ({ object: kind, id: value, account }),
      gathered: (event) => ({ of: event.source.account }),
    },
  },
})
check<Equal<ReturnType<typeof app.deliver>, readonly InboxEntry[]>>()
check<Equal<ReturnType<typeof app.linkCustomer>, 'linked' | 'existed'>>()
app.linkCustomer({ customer: 'cus_1', subject: 'org:1' })
app.linkCustomer({ customer: 'cus_1', subject: 'org:2', source: 'stripe', replace: true })
// @ts-expect-error a customer is linked with somebody
app.linkCustomer({ customer: 'cus_1' })
// @ts-expect-error it answers at once
play([saas], { sources: { stripe: { present: () => 'sub_1' } } })
export const looked = () =>
  everyOrder([subscriptionUpdated({ id: 'sub_1' })], saas, {
    present: { 'subscription sub_1': null },
    gathered: { evt_1: [] },
    customers: { cus_1: 'org:1' },
  })
