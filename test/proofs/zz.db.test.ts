import { it, expect } from 'vitest'
import { playSubscriptions } from '../support/subscription-campaign.ts'
import { stripeWorkflow } from '../support/subscription-workflow.ts'
it('x', async () => {
  const campaign = await playSubscriptions({ histories: 1000, livesPerWorld: 100, withinMs: 40_000 }, { workflow: stripeWorkflow() })
  console.log(campaign)
  expect(campaign.wrong).toEqual([])
}, 100000)
