import { describe, expect, it } from 'vitest'
import { arrivals, playSubscriptions } from '../support/subscription-campaign.ts'
import { stripeWorkflow } from '../support/subscription-workflow.ts'

describe('20,000 histories of subscriptions of which a shop hears late, twice, or never', () => {
  it('end as the provider has them, and never give access that nothing justified', async () => {
    const startedAt = performance.now()
    const campaign = await playSubscriptions(
      { histories: 20_000, livesPerWorld: 500, withinMs: 1_700_000 },
      { workflow: stripeWorkflow() },
    )
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    const { histories, events, calls, healed } = campaign
    process.stdout.write(`${JSON.stringify({ histories, events, calls, healed, seconds })}\n`)
    expect(campaign.wrong).toEqual([])
    expect(histories).toBeGreaterThanOrEqual(20_000)
    for (const kind of Object.keys(arrivals))
      expect(campaign.arrivals.get(kind), kind).toBeGreaterThan(3000)
    expect(healed).toBeGreaterThan(1000)
    // a request for nearly each event would be no coalescing
    expect(calls).toBeLessThan(events / 2)
  }, 1_800_000)
})
