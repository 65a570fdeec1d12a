import { describe, expect, it } from 'vitest'
import { playCampaign } from '../support/reconcile-campaign.ts'
import { seedNames } from '../support/reconcile-seeds.ts'

describe('a thousand histories of which a shop was told only a part', () => {
  it('have everything found by one pass, nothing invented, nothing changed by a second one, and are mended by repairs', async () => {
    const { histories, sown, fates } = await playCampaign({ histories: 1000, withinMs: 550_000 })
    expect(histories).toBeGreaterThanOrEqual(1000)
    expect([...sown].sort()).toEqual([...seedNames].sort())
    expect(fates.get('dropped')).toBeGreaterThan(500)
    expect(fates.get('hidden')).toBeGreaterThan(500)
  }, 600_000)
})
