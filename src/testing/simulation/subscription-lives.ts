/**
 * Subscriptions of the simulated shop: prices in several currencies, renewals, failed renewals that are
 * paid later. Their paid invoices add credits to the account that the metadata names; some name none.
 */
import type Stripe from 'stripe'
import type { Random } from '../stripe-double/random.ts'
import type { StripeVerbs } from '../stripe-double/verbs.ts'
import type { Step } from './order-life.ts'

/** Minor units a month; `99` and `0` make less than one whole unit, the other currencies have no cents or three decimals. */
const monthly = [
  { lookupKey: 'credits_20', currency: 'usd', unitAmount: 2000 },
  { lookupKey: 'credits_20_50', currency: 'usd', unitAmount: 2050 },
  { lookupKey: 'credits_99_cents', currency: 'usd', unitAmount: 99 },
  { lookupKey: 'credits_trial', currency: 'usd', unitAmount: 0 },
  { lookupKey: 'credits_yen', currency: 'jpy', unitAmount: 3000 },
  { lookupKey: 'credits_dinar', currency: 'kwd', unitAmount: 5500 },
] as const

/** The prices that subscriptions are sold at: those that an earlier run made, and the missing ones. */
export function prepareCatalog(double: StripeVerbs): Stripe.Price[] {
  const known = new Map(double.all('price').map((price) => [price.lookup_key, price]))
  const product =
    double.all('product').find(({ name }) => name === 'Credits') ??
    double.createProduct({ name: 'Credits' })
  return monthly.map(
    (price) =>
      known.get(price.lookupKey) ??
      double.createPrice({ product: product.id, interval: 'month', nickname: 'Credits', ...price }),
  )
}

/**
 * Plans the life of one subscription. `accountId` is the shop's account; where the metadata stands, or
 * whether it stands anywhere, is drawn.
 */
export function planSubscription(
  double: StripeVerbs,
  accountId: string,
  prices: readonly Stripe.Price[],
  random: Random,
): Step[] {
  const price = random.pick(prices)
  const place = random.pick([
    'subscription',
    'subscription',
    'subscription',
    'invoice',
    'nowhere',
  ] as const)
  const metadata = place === 'subscription' ? { account_id: accountId } : {}
  const invoiceMetadata = place === 'invoice' ? { account_id: accountId } : {}
  const quantity = random.integer(1, 3)
  let id = ''

  const steps: Step[] = [
    {
      atMs: 0,
      run: () => {
        const customer = double.createCustomer({
          email: `${accountId}@example.com`,
          name: accountId,
        })
        id = double.createSubscription({
          customer: customer.id,
          price: price.id,
          quantity,
          metadata,
          invoiceMetadata,
        }).id
      },
    },
  ]
  const renewals = random.integer(0, 2)
  for (let renewal = 1; renewal <= renewals; renewal++) {
    const atMs = steps.at(-1)!.atMs + random.integer(2000, 6000)
    const fails = random.chance(0.25)
    steps.push({
      atMs,
      run: () =>
        void double.renewSubscription(id, { outcome: fails ? 'failed' : 'paid', invoiceMetadata }),
    })
    if (fails)
      steps.push({ atMs: atMs + random.integer(1000, 3000), run: () => payOpenInvoice(double, id) })
  }
  return steps
}

function payOpenInvoice(double: StripeVerbs, subscription: string): void {
  const invoice = double.find('subscription', subscription)?.latest_invoice as string
  // An invoice over nothing is paid by itself, also when the card would have been declined.
  if (double.find('invoice', invoice)?.status === 'open') double.payInvoice(invoice)
}
