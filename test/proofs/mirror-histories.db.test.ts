import { describe, expect, it } from 'vitest'
import { playSubscriptions } from '../support/subscription-campaign.ts'
import { stripeWorkflow, subscriptionWorkflow } from '../support/subscription-workflow.ts'

const workflows = {
  'a workflow of their own': subscriptionWorkflow(),
  'the parts for Stripe': stripeWorkflow(),
}

describe('histories of subscriptions of which a shop hears late, twice, or never', () => {
  it.each(Object.entries(workflows))(
    'end as the provider has them under %s, and never give access that nothing justified',
    async (_, workflow) => {
      const campaign = await playSubscriptions(
        { histories: 300, livesPerWorld: 60, withinMs: 9_000 },
        { workflow },
      )
      expect(campaign.wrong).toEqual([])
      // the machine decides how many are played: at least those of one world
      expect(campaign.histories).toBeGreaterThanOrEqual(60)
      expect(campaign.calls).toBeGreaterThan(60)
    },
    60_000,
  )
})
