/** The demo shop over a test's own database, and deliveries to it as Stripe would make them. */
import { handle, stripe } from 'hookledger'
import { credits } from '../../examples/shop/credits.ts'
import { license } from '../../examples/shop/license.ts'
import { partsOf } from '../../src/hookledger.ts'
import { custom } from '../../src/outbox/destinations/custom.ts'
import { signStripe } from '../../src/testing/sign.ts'
import { stripeBody } from '../../src/testing/stripe-events.ts'
import { createBench, type Bench } from './hookledger-database.ts'

/** The secret that the shop of the tests signs with. */
export const shopSecret = 'whsec_test_0123456789abcdef'

/** The shop's options, without a database. */
export const shopOptions = {
  environment: 'test' as const,
  sources: { stripe: stripe({ environment: 'test', signingSecrets: [shopSecret] }) },
  // a mail service that takes everything and keeps nothing
  destinations: {
    email: custom({ contract: { idempotency: 'key' }, call: async () => ({ id: 'email_1' }) }),
  },
  workflows: [license, credits],
  handlers: [
    handle('stripe', 'customer.updated', async ({ event, db }) => {
      await db.query(
        `insert into shop.customers values ($1, $2, null, now()) on conflict do nothing`,
        [event.data.object.id, event.data.object.email],
      )
    }),
  ],
}

/** A shop to deliver to. */
export interface Shop extends Bench {
  /** Delivers one event over the library's own door; resolves with the status. */
  deliver(event: object, source?: string): Promise<number>
  /** Works until nothing is left to do. */
  work(): Promise<number>
}

/** Creates a registered shop. */
export async function createShop(
  options: Partial<Parameters<typeof createBench>[0]> = {},
): Promise<Shop> {
  const bench = await createBench({ ...shopOptions, ...options })
  await partsOf(bench.hookledger).register()
  return {
    ...bench,
    deliver: async (event, source = 'stripe') => {
      const body = stripeBody(event)
      const outcome = await bench.hookledger.ingest({
        source,
        headers: signStripe(body, shopSecret),
        rawBody: Buffer.from(body),
      })
      return outcome.status
    },
    work: async () => {
      let events = 0
      for (;;) {
        const done = await bench.hookledger.runOnce({ budgetMs: 10_000 })
        events += done.events
        if (done.events === 0) return events
      }
    },
  }
}
