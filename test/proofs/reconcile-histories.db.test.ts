import { describe, expect, it } from 'vitest'
import { playCampaign } from '../support/reconcile-campaign.ts'

describe('histories of which a shop was told only a part', () => {
  it('have everything found by one pass, nothing invented, nothing changed by a second one, and are mended by repairs', async () => {
    const { histories, sown, fates } = await playCampaign({ histories: 70, withinMs: 6_000 })
    // the machine decides how many are played: at least those of one world
    expect(histories).toBeGreaterThanOrEqual(30)
    expect(sown.size).toBeGreaterThan(2)
    expect([...fates.keys()].sort()).toEqual(['delivered', 'dropped', 'hidden', 'racing'])
  }, 60_000)
})
