/**
 * Events that have nothing to do with an order: customers who change their address, and types that the
 * shop has never heard of.
 */
import type { Random } from '../stripe-double/random.ts'
import type { StripeVerbs } from '../stripe-double/verbs.ts'
import type { Step } from './order-life.ts'

/** Plans so many pieces of noise, at moments of their own. */
export function planNoise(double: StripeVerbs, count: number, random: Random): Step[] {
  return Array.from({ length: count }, (_, at) => {
    const isCustomer = at % 2 === 0
    const number = double.all('customer').length + at
    return {
      atMs: random.integer(500, 40_000),
      run: () => (isCustomer ? moveCustomer(double, number) : invent(double, at)),
    }
  })
}

function moveCustomer(double: StripeVerbs, number: number): void {
  const customer = double.createCustomer({
    email: `customer.${number}@example.com`,
    name: `Customer ${number}`,
  })
  double.updateCustomer(customer.id, { email: `moved.${number}@example.com` })
}

function invent(double: StripeVerbs, at: number): void {
  const types = ['payout.paid', 'account.application.authorized', 'simulated.invention.announced']
  double.emit(types[at % types.length]!, { id: `obj_${at}`, object: 'invention' })
}
