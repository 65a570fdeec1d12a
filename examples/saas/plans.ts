/** What is sold by subscription, and whom it serves: organizations, named by the subscription's metadata. */
import { stripeSubscription } from 'hookledger'

export const subscription = stripeSubscription({
  // by the price's lookup key: a seat each, or just there
  plans: {
    team_monthly: ({ quantity }) => ({ entitlement: 'team', quantity }),
    pro_monthly: 'pro',
  },
  // while Stripe tries to collect; counted from the start of the period that is unpaid
  grace: { days: 3 },
  claims: ({ metadata }) => metadata['org'] !== undefined,
  subject: ({ subscription: { metadata } }) => metadata['org'] && `org:${metadata['org']}`,
})
