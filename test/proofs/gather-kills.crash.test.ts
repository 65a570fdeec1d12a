import { describe, it } from 'vitest'
import { gatherSteps, playGatherKills } from '../support/gather-kills.ts'

describe('workers and gatherers that are killed one after the other', () => {
  it('leave every look to the next one, at every step of asking', async () => {
    await playGatherKills({ seed: 20_260_105, steps: gatherSteps, objects: 12 })
  })
})
