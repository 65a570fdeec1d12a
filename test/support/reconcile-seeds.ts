/**
 * The contradictions that a proof seeds, one to an order: what is done to it, at the provider, in the
 * workflow or in its rows, and which finding must say so. Nothing here knows how any of it is found.
 */
import type pg from 'pg'
import type Stripe from 'stripe'
import type { Step } from '../../src/testing/simulation/order-life.ts'
import type { SimulatedOrder } from '../../src/testing/simulation/simulated-order.ts'
import { listPrice } from '../../src/testing/simulation/simulated-order.ts'
import type { Random } from '../../src/testing/stripe-double/random.ts'
import type { StripeDouble } from '../../src/testing/stripe-double/stripe-double.ts'
import { paymentIntentSucceeded } from '../../src/testing/stripe-events.ts'

/** What a seed works with, once the world has been delivered and decided. */
export interface SeedContext {
  readonly pool: pg.Pool
  readonly double: StripeDouble
  readonly order: SimulatedOrder
  readonly events: readonly Stripe.Event[]
  /** Delivers an event over the shop's door, signed, whoever made it. */
  deliver(event: object): Promise<void>
}

/** A contradiction that came to something. */
export interface Sown extends Expectation {
  readonly name: SeedName
  /** The order of the world that it was sown into. */
  readonly into: string
}

/** What must be found. */
export interface Expectation {
  /** Any of these says it rightly. */
  readonly kinds: readonly string[]
  readonly class: 'lag' | 'contradiction'
  /** The order that it is about; null: none of the shop's. */
  readonly order: string | null
  /** Or the provider's record. */
  readonly record?: string
  /** An event that is not in the inbox any more, although it was delivered. */
  readonly deleted?: string
  /** What the same thing may be called besides, where it breaks more than one rule. */
  readonly besides?: readonly string[]
}

/** One contradiction, for one order. */
export interface Seed {
  readonly name: SeedName
  /** The order's life at the provider, where the scenario's own will not do. */
  readonly live?: (double: StripeDouble, random: Random) => Step[]
  /** Who opens the order in the shop before any event comes; undefined: as the order says. */
  readonly opens?: 'shop' | 'nobody'
  /** Objects whose events the workflow passes over, as one with a mistake in it would. */
  readonly unhandled?: (context: Pick<SeedContext, 'events'>) => readonly string[]
  /** Done when everything that was delivered is decided; resolves with what must be found, or null when it came to nothing. */
  sow(context: SeedContext): Promise<Expectation | null>
}

/** The names of all seeds. */
export type SeedName =
  | 'state changed'
  | 'entitlement withheld'
  | 'entitlement given'
  | 'quantity changed'
  | 'amount changed'
  | 'payment invented'
  | 'refund passed over'
  | 'dispute passed over'
  | 'payment passed over'
  | 'order abandoned'
  | 'payment of nobody'
  | 'one payment of two orders'
  | 'event deleted'

type Plan = (order: SimulatedOrder, random: Random) => Seed

const plans: Readonly<Record<SeedName, Plan>> = {
  'state changed': (order, random) =>
    byRows('state changed', order, async ({ pool }) => {
      const states = ['pending', 'paid', 'disputed', 'refunded', 'lost', 'canceled']
      const { rows } = await pool.query<{ state: string }>(
        `select state from orders where order_id = $1`,
        [order.id],
      )
      const state = random.pick(states.filter((each) => each !== rows[0]?.state))
      const done = await pool.query(`update orders set state = $2 where order_id = $1`, [
        order.id,
        state,
      ])
      return done.rowCount === 0
        ? null
        : { kinds: ['tampered'], besides: ['entitlement_without_state'] }
    }),
  'entitlement withheld': (order) =>
    byRows('entitlement withheld', order, async ({ pool }) => {
      const done = await pool.query(
        `update entitlements set active = false where order_id = $1 and active`,
        [order.id],
      )
      return done.rowCount === 0 ? null : { kinds: ['tampered'] }
    }),
  'entitlement given': (order) =>
    byRows('entitlement given', order, async ({ pool }) => {
      const done = await pool.query(
        `update entitlements set active = true, stated = true where order_id = $1 and not active and granted_by is not null`,
        [order.id],
      )
      return done.rowCount === 0
        ? null
        : {
            kinds: ['entitlement_without_state', 'tampered'],
            besides: ['entitlement_without_state', 'tampered'],
          }
    }),
  'quantity changed': (order) =>
    byRows('quantity changed', order, async ({ pool }) => {
      const done = await pool.query(
        `update entitlements set quantity = quantity + 4 where order_id = $1 and active`,
        [order.id],
      )
      return done.rowCount === 0 ? null : { kinds: ['tampered'] }
    }),
  'amount changed': (order) =>
    byRows('amount changed', order, async ({ pool }) => {
      const done = await pool.query(
        `update ledger_payments set amount = amount + 100
       where order_id = $1 and applied and amount > 0
         and payment_id = (select min(payment_id) from ledger_payments where order_id = $1 and applied and amount > 0)`,
        [order.id],
      )
      return done.rowCount === 0 ? null : { kinds: ['amount_differs'] }
    }),
  'payment invented': (order) => ({
    name: 'payment invented',
    opens: 'nobody',
    // asked for, and never paid
    live: (double) => [
      {
        atMs: 0,
        run: () =>
          void double.createPaymentIntent({ ...listPrice, metadata: { order_id: order.id } }),
      },
    ],
    sow: async ({ double, deliver }) => {
      const intent = double
        .all('payment_intent')
        .find(({ metadata }) => metadata['order_id'] === order.id)
      if (intent === undefined) return null
      await deliver(
        paymentIntentSucceeded({
          order: order.id,
          id: intent.id,
          eventId: `evt_invented_${order.id}`,
          created: intent.created,
          email: order.email,
          metadata: { order_id: order.id, email: order.email },
        }),
      )
      return { kinds: ['paid_here'], class: 'contradiction', order: order.id, record: intent.id }
    },
  }),
  'refund passed over': (order) =>
    passedOver('refund passed over', order, {
      kinds: ['refunded_there'],
      objects: 'refund',
      live: (life) => [life.pay, life.refund],
    }),
  'dispute passed over': (order) =>
    passedOver('dispute passed over', order, {
      kinds: ['dispute_unseen'],
      objects: 'dispute',
      live: (life) => [life.pay, life.dispute],
    }),
  'payment passed over': (order) =>
    passedOver('payment passed over', order, {
      kinds: ['paid_there'],
      objects: 'checkout.session payment_intent',
      live: (life) => [life.pay],
    }),
  'order abandoned': (order) => ({
    name: 'order abandoned',
    opens: 'shop',
    live: () => [],
    sow: async ({ pool }) => {
      await pool.query(
        `update orders set opened_at = now() - interval '3 days', updated_at = now() - interval '3 days' where order_id = $1`,
        [order.id],
      )
      return { kinds: ['order_stuck'], class: 'lag', order: order.id }
    },
  }),
  'payment of nobody': (order) => ({
    name: 'payment of nobody',
    opens: 'nobody',
    live: (double) => [
      {
        atMs: 0,
        run: () => {
          const intent = double.createPaymentIntent({
            ...listPrice,
            description: `nobody ${order.id}`,
          })
          double.payPaymentIntent(intent.id, { email: order.email })
        },
      },
    ],
    sow: async ({ events }) => {
      const paid = events.find(({ type }) => type === 'payment_intent.succeeded')
      if (paid === undefined) return null
      return {
        kinds: ['payment_without_order'],
        class: 'contradiction',
        order: null,
        record: (paid.data.object as Stripe.PaymentIntent).id,
      }
    },
  }),
  'one payment of two orders': (order) => ({
    name: 'one payment of two orders',
    opens: 'nobody',
    live: (double) => [
      {
        atMs: 0,
        run: () => {
          const session = double.createSession({
            clientReferenceId: order.id,
            paymentIntentMetadata: { order_id: `${order.id}-b`, email: order.email },
          })
          double.completeSession(session.id, { email: order.email })
        },
      },
    ],
    sow: async ({ pool, events }) => {
      const paid = events.find(({ type }) => type === 'payment_intent.succeeded')
      const { rows } = await pool.query<{ order_id: string }>(
        `select order_id from findings where order_id in ($1, $1 || '-b')`,
        [order.id],
      )
      return {
        kinds: ['fulfilled_twice', 'two_claims', 'name_of_other_order'],
        besides: ['fulfilled_twice', 'two_claims', 'name_of_other_order'],
        class: 'contradiction',
        order: rows[0]?.order_id ?? order.id,
        ...(paid !== undefined && { record: (paid.data.object as Stripe.PaymentIntent).id }),
      }
    },
  }),
  'event deleted': (order) =>
    byRows('event deleted', order, async ({ pool }) => {
      const { rows } = await pool.query<{ key: string; id: string }>(
        `select d.event_key as key, e.event_id as id from fulfillment_effects f join ledger_decisions d using (decision_id)
         join inbox_events e using (event_key) where f.order_id = $1 order by 1 limit 1`,
        [order.id],
      )
      const { key, id } = rows[0] ?? {}
      if (key === undefined || id === undefined) return null
      await pool.query(`delete from inbox_events where event_key = $1`, [key])
      await pool.query(`delete from payloads where event_key = $1`, [key])
      return { kinds: ['effect_without_event'], besides: ['event_missing'], deleted: id }
    }),
}

/** A contradiction for this order, one that its scenario leaves room for. */
export function planSeed(order: SimulatedOrder, random: Random): Seed {
  return plans[random.pick(Object.keys(plans) as SeedName[])](order, random)
}

/** The names of all seeds, for proofs that none was left out. */
export const seedNames: readonly SeedName[] = Object.keys(plans) as SeedName[]

type Changed = Pick<Expectation, 'kinds' | 'besides' | 'deleted'> | null

/** A seed that changes the rows of an order, whatever its life was. */
function byRows(
  name: SeedName,
  order: SimulatedOrder,
  change: (context: SeedContext) => Promise<Changed>,
): Seed {
  return {
    name,
    sow: async (context) => {
      // as somebody with psql and all rights does it
      const sown = await change(context)
      return sown === null ? null : { class: 'contradiction', order: order.id, ...sown }
    },
  }
}

interface PassedOver {
  readonly kinds: readonly string[]
  /** The kinds of object that the workflow does not see. */
  readonly objects: string
  readonly live: (
    steps: Readonly<Record<'pay' | 'refund' | 'dispute', () => void>>,
  ) => (() => void)[]
}

/** A seed whose events come, and of which the workflow takes no notice. */
function passedOver(name: SeedName, order: SimulatedOrder, how: PassedOver): Seed {
  return {
    name,
    opens: 'shop',
    live: (double) => {
      let intent = ''
      const steps = {
        pay: () => {
          const session = double.createSession({ clientReferenceId: order.id })
          const done = double.completeSession(session.id, { email: order.email })
          intent = done.payment_intent as string
        },
        refund: () => void double.refund({ paymentIntent: intent }),
        dispute: () => void double.openDispute({ paymentIntent: intent }),
      }
      return how.live(steps).map((run, at) => ({ atMs: at * 3000, run }))
    },
    unhandled: ({ events }) =>
      events
        .map((event) => event.data.object as { id: string; object: string })
        .filter(({ object }) => how.objects.split(' ').includes(object))
        .map(({ id }) => id),
    sow: () => Promise.resolve({ kinds: how.kinds, class: 'contradiction', order: order.id }),
  }
}
