/**
 * A small shop that is right: credits for a payment, in a table of its own, an email, and all of it back with a refund.
 * Each configuration beside this file breaks one thing of it, and `hookledger drill` says which.
 */
import {
  createHookledger,
  custom,
  defineWorkflow,
  fulfill,
  idOf,
  money,
  names,
  orderId,
  stripe,
  waitFor,
  type ApplyInput,
  type Decision,
  type Effect,
  type Hookledger,
  type HookledgerOptions,
  type Workflow,
} from 'hookledger'
import { checkoutSessionCompleted, paymentIntentSucceeded, refundCreated } from 'hookledger/testing'
import type Stripe from 'stripe'

type State = 'pending' | 'paid' | 'refunded'
type Known = readonly Pick<Effect, 'type' | 'reference' | 'data'>[]

/** What is known when a payment is decided. */
export interface Paid {
  readonly event: Stripe.CheckoutSessionCompletedEvent
  readonly order: { readonly id: string }
  readonly effects: Known
}

/** What is known when a refund is decided. */
export interface Refunded {
  readonly event: Stripe.RefundCreatedEvent
  readonly effects: Known
}

type Answer = Decision<State, 'credit' | 'refund', 'email'>

/** The right decision about a payment: its one effect has no reference, since an order is paid once. */
export function paid(
  { event, order, effects }: Paid,
  { reference = '', data = {} }: { reference?: string; data?: Record<string, string> } = {},
): Answer {
  const session = event.data.object
  return fulfill({
    to: effects.some(({ type }) => type === 'refund') ? 'refunded' : 'paid',
    payment: {
      id: idOf(session.payment_intent) ?? session.id,
      money: money(session.amount_total ?? 0, session.currency ?? ''),
    },
    effects: [
      {
        type: 'credit',
        reference,
        data: { ...data, order: order.id },
        send: [{ to: 'email', body: { subject: 'thank you', order: order.id } }],
      },
    ],
    entitle: [{ subject: `user:${order.id}`, entitlement: 'wallet' }],
  })
}

/** The right decision about a refund: the refund's id is the reference of its effect. */
export function refunded({ event }: Refunded): Answer {
  const { id, amount, currency, payment_intent: intent } = event.data.object
  const payment = idOf(intent) ?? ''
  return fulfill({
    to: 'refunded',
    effects: [{ type: 'refund', reference: id, amount: money(amount, currency), payment }],
  })
}

/** The right place for the shop's own rows: the transaction of the effect. */
export async function addCredits({ db, effect }: ApplyInput): Promise<void> {
  await db.query('insert into app.credits (order_id, reference) values ($1, $2)', [
    String(effect.data['order']),
    effect.reference,
  ])
}

/** What a configuration does otherwise. */
export interface SaleParts {
  readonly paid?: (input: Paid) => Answer
  readonly refunded?: (input: Refunded) => Answer
  readonly apply?: (input: ApplyInput) => Promise<void>
}

const order = 'w-1'
const bought = [paymentIntentSucceeded({ order }), checkoutSessionCompleted({ order })]

/** The workflow, with what a configuration does otherwise. */
export function sale(parts: SaleParts = {}): Workflow {
  const decide = { paid, refunded, apply: addCredits, ...parts }
  return defineWorkflow('sale', {
    sources: ['stripe'],
    initial: 'pending',
    opens: 'event',
    accepts: () => true,
    states: { pending: {}, paid: { entitles: true }, refunded: {} },
    transitions: { pending: ['paid', 'refunded'], paid: ['refunded'], refunded: [] },
    destinations: ['email'],
    effects: { credit: { apply: decide.apply }, refund: {} },
    histories: [
      { name: 'bought', events: bought },
      { name: 'bought and paid back', events: [...bought, refundCreated({ order })] },
    ],
  })
    .on('checkout.session.completed', {
      order: ({ event }) => orderId(event.data.object.client_reference_id),
      learn: ({ event }) => names({ payment_intent: event.data.object.payment_intent }),
      decide: ({ event, order, effects }) => decide.paid({ event, order, effects }),
    })
    .on('refund.created', {
      order: ({ event }) => waitFor(names({ payment_intent: event.data.object.payment_intent })),
      decide: ({ event, effects }) => decide.refunded({ event, effects }),
    })
}

/** The shop around a workflow. */
export function shop(
  workflow: Workflow,
  options: Pick<HookledgerOptions, 'database' | 'handlers'> = {},
): Hookledger {
  return createHookledger({
    environment: 'test',
    sources: { stripe: stripe({ signingSecrets: [process.env['STRIPE_WEBHOOK_SECRET']] }) },
    // what it does with an email is the drill's, or a configuration's own `drill.destinations`
    destinations: {
      email: custom({ contract: { idempotency: 'key' }, call: () => Promise.resolve({}) }),
    },
    workflows: [workflow],
    ...options,
  })
}

/** Makes the shop's own tables in the drill's database. */
export async function setup(db: { query(text: string): Promise<unknown> }): Promise<void> {
  await db.query('create schema app')
  await db.query(
    'create table app.credits (id bigint generated always as identity, order_id text, reference text)',
  )
  await db.query('create table app.balances (account text primary key, credits bigint not null)')
  await db.query(`insert into app.balances values ('w-1', 0)`)
}

/** One email to the mail service, under the id that is given. */
export async function postEmail(url: string, id: string, body: unknown): Promise<void> {
  const answer = await fetch(url, {
    method: 'POST',
    headers: { 'idempotency-key': id, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (!answer.ok) throw new Error(`the mail service answered ${answer.status}`)
}
