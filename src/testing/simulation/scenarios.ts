/**
 * The scenarios of the simulated shop, with how often each is played in 300 orders. Together they hold
 * every situation that the shop has to answer for; what they leave are plain paid orders.
 */
import type { Random } from '../stripe-double/random.ts'
import type { OrderLife } from './order-life.ts'
import { listPrice, type Naming, type Opening, type Scenario } from './simulated-order.ts'

interface ScenarioPlan {
  /** Of 300 orders. */
  share: number
  /** The list price is paid, or nothing: then the shop may have opened the order itself. */
  regular: boolean
  /** Without a checkout session only the intent can name the order. */
  intentOnly?: boolean
  plan: (life: OrderLife) => OrderLife
}

const plans: Readonly<Record<Exclude<Scenario, 'paid'>, ScenarioPlan>> = {
  intent_only: { share: 20, regular: true, intentOnly: true, plan: (life) => life.payIntent() },
  declined_then_paid: {
    share: 6,
    regular: true,
    intentOnly: true,
    plan: (life) => life.declineIntent().payIntent(),
  },
  refunded: {
    share: 14,
    regular: true,
    plan: (life) => life.pay().refund().refundEnds('gets_its_reference'),
  },
  refunded_in_parts: {
    share: 12,
    regular: true,
    plan: (life) => life.pay().refund({ amount: life.part() }).refund({ amount: 490 }).refund(),
  },
  partly_refunded: {
    share: 16,
    regular: true,
    plan: (life) => life.pay().refund({ amount: life.part() }),
  },
  refund_pending: {
    share: 8,
    regular: true,
    plan: (life) => life.pay().refund({ pending: true }).refundEnds('succeeds'),
  },
  refund_failed: {
    share: 8,
    regular: true,
    plan: (life) => life.pay().refund({ pending: true }).refundEnds('fails'),
  },
  refund_returned: {
    share: 4,
    regular: true,
    plan: (life) => life.pay().refund().refundEnds('fails'),
  },
  dispute_won: { share: 6, regular: true, plan: (life) => life.pay().dispute().disputeEnds('won') },
  dispute_lost: {
    share: 6,
    regular: true,
    plan: (life) => life.pay().dispute().disputeEnds('lost'),
  },
  dispute_open: { share: 4, regular: true, plan: (life) => life.pay().dispute() },
  inquiry_closed: {
    share: 3,
    regular: true,
    plan: (life) => life.pay().dispute({ inquiry: true }).disputeEnds('warning_closed'),
  },
  partly_refunded_dispute_won: {
    share: 3,
    regular: true,
    plan: (life) => life.pay().refund({ amount: life.part() }).dispute().disputeEnds('won'),
  },
  partly_refunded_dispute_lost: {
    share: 2,
    regular: true,
    plan: (life) => life.pay().refund({ amount: life.part() }).dispute().disputeEnds('lost'),
  },
  refunded_dispute_won: {
    share: 2,
    regular: true,
    plan: (life) => life.pay().refund().dispute().disputeEnds('won'),
  },
  paid_twice: { share: 10, regular: true, plan: (life) => life.pay().pay() },
  paid_twice_one_refunded: { share: 5, regular: true, plan: (life) => life.pay().pay().refund() },
  paid_twice_both_refunded: {
    share: 2,
    regular: true,
    plan: (life) => life.pay().pay().refund().refund({ payment: 0 }),
  },
  underpaid: { share: 8, regular: false, plan: (life) => life.pay({ amount: 1900 }) },
  underpaid_then_paid: {
    share: 3,
    regular: false,
    plan: (life) => life.pay({ amount: 1900 }).pay(),
  },
  wrong_currency: { share: 3, regular: false, plan: (life) => life.pay({ currency: 'eur' }) },
  expired: { share: 12, regular: true, plan: (life) => life.expire() },
  expired_then_paid: { share: 5, regular: true, plan: (life) => life.expire().pay() },
  async_paid: {
    share: 12,
    regular: true,
    plan: (life) => life.pay({ outcome: 'unpaid' }).settle('succeeded'),
  },
  async_failed: {
    share: 3,
    regular: true,
    plan: (life) => life.pay({ outcome: 'unpaid' }).settle('failed'),
  },
  free: { share: 8, regular: false, plan: (life) => life.pay({ discount: listPrice.amount }) },
}

/** The scenarios of so many orders, in random order: each at least once when there is room. */
export function dealScenarios(orders: number, random: Random): Scenario[] {
  const dealt: Scenario[] = Object.entries(plans).flatMap(([name, { share }]) =>
    Array.from({ length: Math.max(1, Math.round((share * orders) / 300)) }, () => name as Scenario),
  )
  const chosen = random.shuffle(dealt).slice(0, orders)
  while (chosen.length < orders) chosen.push('paid')
  return random.shuffle(chosen)
}

/** Plans the scenario's steps. */
export function planScenario(scenario: Scenario, life: OrderLife): OrderLife {
  return scenario === 'paid' ? life.pay() : plans[scenario].plan(life)
}

/** How the provider's objects name an order of the scenario. */
export function dealNaming(scenario: Scenario, random: Random): Naming {
  if (scenario !== 'paid' && plans[scenario].intentOnly) return 'intent_order_and_email'
  return random.pick([
    'reference',
    'reference',
    'reference',
    'session_metadata',
    'intent_order',
    'intent_order_and_email',
    'intent_other_email',
  ] as const)
}

/**
 * Who opens an order of the scenario. The shop expects its list price and the address of its own form:
 * orders of which something else is true are opened by their events, so that no finding is made of it.
 */
export function dealOpening(scenario: Scenario, naming: Naming, random: Random): Opening {
  const isRegular = scenario === 'paid' || plans[scenario].regular
  if (!isRegular || naming === 'intent_other_email') return 'event'
  return random.pick(['event', 'event', 'event', 'shop_first', 'shop_late'] as const)
}
