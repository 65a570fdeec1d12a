/** A small shop, right as it stands; WALLET_FAULT names one thing that is wrong with it. */
import pg from 'pg'
import {
  createHookledger,
  custom,
  defineWorkflow,
  fulfill,
  handle,
  idOf,
  money,
  names,
  orderId,
  stripe,
  waitFor,
  type Hookledger,
} from 'hookledger'
import { checkoutSessionCompleted, refundCreated } from 'hookledger/testing'

const wrong = process.env['WALLET_FAULT'] ?? 'nothing'
let decided = 0
// one that is not Hookledger's transaction
const ownPool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 2 })
ownPool.on('error', () => {})

const wallet = defineWorkflow('wallet', {
  sources: ['stripe'],
  initial: 'pending',
  opens: 'event',
  accepts: () => true,
  states: { pending: {}, paid: { entitles: true }, refunded: {} },
  transitions: { pending: ['paid', 'refunded'], paid: ['refunded'], refunded: [] },
  destinations: ['email'],
  effects: {
    credit: {
      apply: async ({ db, effect }) => {
        const text = 'insert into app.credits (order_id, reference) values ($1, $2)'
        const values = [String(effect.data['order']), effect.reference]
        await (wrong === 'own connection' ? ownPool.query(text, values) : db.query(text, values))
      },
    },
    refund: {},
  },
  ...(wrong !== 'no histories' && {
    histories: [
      { name: 'bought', events: [checkoutSessionCompleted({ order: 'w-1' })] },
      {
        name: 'bought and paid back',
        events: [
          checkoutSessionCompleted({ order: 'w-1' }),
          refundCreated({ order: 'w-1', amount: 4900 }),
        ],
      },
    ],
  }),
})
  .on('checkout.session.completed', {
    order: ({ event }) => orderId(event.data.object.client_reference_id),
    learn: ({ event }) => names({ payment_intent: event.data.object.payment_intent }),
    decide: ({ event, order, effects }) => {
      const session = event.data.object
      decided += 1
      if (wrong === 'sends') void fetch(process.env['SHOP_EMAIL_URL'] ?? '', { method: 'POST' })
      const reference = wrong === 'memory' ? `no ${decided}` : wrong === 'event key' ? event.id : ''
      const isPaidBack = effects.some(({ type }) => type === 'refund')
      return fulfill({
        to: isPaidBack ? 'refunded' : 'paid',
        payment: {
          id: idOf(session.payment_intent) ?? session.id,
          money: money(session.amount_total ?? 0, session.currency ?? ''),
        },
        effects: [
          {
            type: 'credit',
            reference,
            data: { order: order.id },
            send: [{ to: 'email', body: { subject: 'thank you', order: order.id } }],
          },
        ],
        entitle: [{ subject: `user:${order.id}`, entitlement: 'wallet' }],
      })
    },
  })
  .on('refund.created', {
    order: ({ event }) => waitFor(names({ payment_intent: event.data.object.payment_intent })),
    decide: ({ event }) => {
      const { id, amount, currency, payment_intent: intent } = event.data.object
      return fulfill({
        to: wrong === 'keeps after refund' ? 'paid' : 'refunded',
        effects: [
          {
            type: 'refund',
            reference: id,
            amount: money(amount, currency),
            payment: idOf(intent) ?? '',
          },
        ],
      })
    },
  })

export const hookledger = createHookledger({
  sources: { stripe: stripe({ signingSecrets: [process.env['STRIPE_WEBHOOK_SECRET']] }) },
  destinations: {
    email: custom({ contract: { idempotency: 'key' }, call: () => Promise.resolve({}) }),
  },
  workflows: [wallet],
  handlers: [
    handle('stripe', 'customer.updated', async ({ event, db }) => {
      await db.query('insert into app.customers values ($1) on conflict do nothing', [
        event.data.object.id,
      ])
    }),
  ],
})

let calls = 0

export const drill = {
  async setup(db: { query(text: string): Promise<unknown> }) {
    await db.query('create schema app')
    await db.query('create table app.customers (id text primary key)')
    await db.query(
      'create table app.credits (id bigint generated always as identity, order_id text, reference text)',
    )
    if (wrong === 'no index')
      await db.query(
        'alter table hookledger.fulfillment_effects drop constraint fulfillment_effects_pkey',
      )
  },
  ...(wrong === 'early answer' && {
    ingest: (product: Hookledger, request: Parameters<Hookledger['ingest']>[0]) => {
      void product.ingest(request).catch(() => {})
      return Promise.resolve({ status: 200 })
    },
  }),
  ...((wrong === 'new id' || wrong === 'swallows') && {
    destinations: (urls: Readonly<Record<string, string>>) => ({
      email: custom({
        contract: { idempotency: 'key' },
        call: async ({ body, key }) => {
          const id =
            wrong === 'new id' ? `${key.slice(0, -6)}${String(calls++).padStart(6, '0')}` : key
          try {
            const answer = await fetch(urls['email'] ?? '', {
              method: 'POST',
              headers: { 'idempotency-key': id, 'content-type': 'application/json' },
              body: JSON.stringify(body),
            })
            if (!answer.ok) throw new Error(`it answered ${answer.status}`)
          } catch (error) {
            if (wrong !== 'swallows') throw error
          }
          return {}
        },
      }),
    }),
  }),
}
