/** The shop and its subscriptions: one object, used by the app and by the command line alike. */
import { createHookledger, handle, stripe } from 'hookledger'
import { saas } from '../saas/saas.ts'
import { credits } from './credits.ts'
import { emailDestination } from './email-destination.ts'
import { license } from './license.ts'

const env = process.env

// The simulated provider lists what it made after a second, not after minutes: nobody waits that long to see it.
const quickly = { everyMs: 5_000, lagMs: 5_000, overlapMs: 60_000, callsPerSecond: 100 }

// nor is it as strict as Stripe about how often it is asked
const hastily = { callsPerSecond: 200, callsPerSecondPerAccount: 200 }

export const hookledger = createHookledger({
  environment: 'test',
  sources: {
    stripe: stripe({
      environment: 'test',
      signingSecrets: [env['STRIPE_WEBHOOK_SECRET'] || 'whsec_development_only_0123456789'],
      apiKey: env['STRIPE_API_KEY'] || 'sk_test_development_only',
      ...(env['STRIPE_API_BASE'] ? { apiBase: env['STRIPE_API_BASE'] } : {}),
    }),
  },
  destinations: { email: emailDestination(env['SHOP_EMAIL_URL']) },
  workflows: [license, credits, saas],
  // an organization with two team subscriptions has the seats of both
  entitlements: { team: 'sum' },
  ...(env['STRIPE_API_BASE'] && { reconcile: quickly, gather: hastily }),
  handlers: [
    // the plain form: an event that concerns no order, handled once, in Hookledger's transaction
    handle('stripe', 'customer.updated', async ({ event, db }) => {
      const { id, email, name } = event.data.object
      await db.query(
        `insert into shop.customers as c (customer_id, email, name, changed_at)
         values ($1, $2, $3, to_timestamp($4))
         on conflict (customer_id) do update
         set email = excluded.email, name = excluded.name, changed_at = excluded.changed_at
         where c.changed_at <= excluded.changed_at`,
        [id, email, name ?? null, event.created],
      )
    }),
  ],
})

export { routes } from './routes.ts'
export { setup } from './setup.ts'
