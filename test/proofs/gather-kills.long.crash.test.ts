import { describe, expect, it } from 'vitest'
import type { Step } from '../../src/core/failpoints.ts'
import { playOutage } from '../support/gather-outage.ts'
import { gatherSteps, playGatherKills } from '../support/gather-kills.ts'
import { seededRandom } from '../support/seeded-random.ts'

describe('long campaigns against the gatherer', () => {
  it.each([1, 2, 3, 4])('kills three beside each other at random steps (seed %i)', async (seed) => {
    const random = seededRandom(seed)
    const all: readonly Step[] = [...gatherSteps, 'W2', 'W5', 'W6', 'W7']
    const steps = Array.from({ length: 16 }, () => all[Math.floor(random() * all.length)] as Step)
    await playGatherKills({ seed, steps, objects: 40, beside: 3 })
  })

  it('asks a provider that is away for an hour hardly at all with 10,000 events waiting', async () => {
    const report = await playOutage({ events: 10_000, objects: 5000, accounts: 1, gatherers: 3 })
    expect(report).toMatchObject({ undecided: 0, wrong: 0, mostCallsAfter: 1, callsAfter: 5000 })
    expect(report.callsMeanwhile).toBeLessThan(130)
  })
})
