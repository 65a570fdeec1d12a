import { describe, it } from 'vitest'
import { dispatchSteps, playKills } from '../support/outbox-kills.ts'

describe('dispatchers that are killed one after the other', () => {
  it('leave every operation to the next one, at every step', async () => {
    await playKills({ seed: 20_260_101, steps: dispatchSteps, orders: 6 })
  })
})
