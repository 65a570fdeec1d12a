import { describe, it } from 'vitest'
import { dispatchSteps, playKills } from '../support/outbox-kills.ts'
import { seededRandom } from '../support/seeded-random.ts'

const campaigns = Array.from({ length: 12 }, (_, at) => 1000 + at)

describe('dispatchers that are killed one after the other', () => {
  it.each(campaigns)('leave every operation to the next one (seed %i)', async (seed) => {
    const random = seededRandom(seed)
    const steps = Array.from(
      { length: 10 },
      () => dispatchSteps[Math.floor(random() * dispatchSteps.length)] ?? 'D0',
    )
    await playKills({ seed, steps, orders: 8 })
  })
})
