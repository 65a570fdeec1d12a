/**
 * Deals the orders of a run: what happens to each, who opens it, and how the provider names it.
 */
import type { Random } from '../stripe-double/random.ts'
import type { StripeVerbs } from '../stripe-double/verbs.ts'
import { dealNaming, dealOpening, dealScenarios } from './scenarios.ts'
import { listPrice, type SimulatedOrder } from './simulated-order.ts'

/** So many orders with ids after the highest that the provider has heard of; the first is `1001`. */
export function dealOrders(double: StripeVerbs, count: number, random: Random): SimulatedOrder[] {
  const first = nextOrderId(double)
  return dealScenarios(count, random).map((scenario, at) => {
    const id = String(first + at)
    const naming = dealNaming(scenario, random)
    const email = random.chance(0.25) ? `Buyer.${id}@Example.com` : `buyer.${id}@example.com`
    return {
      id,
      email,
      subject: `email:${email.toLowerCase()}`,
      ...listPrice,
      scenario,
      naming,
      opening: dealOpening(scenario, naming, random),
    }
  })
}

/** One more than the highest number that any of the provider's objects names as an order. */
function nextOrderId(double: StripeVerbs): number {
  const named = [
    ...double
      .all('checkout.session')
      .flatMap((session) => [session.client_reference_id, session.metadata?.['order_id']]),
    ...double.all('payment_intent').map((intent) => intent.metadata['order_id']),
  ]
  const numbers = named.map((id) => (/^\d{1,9}$/.test(id ?? '') ? Number(id) : 0))
  return numbers.reduce((highest, number) => Math.max(highest, number), 1000) + 1
}
