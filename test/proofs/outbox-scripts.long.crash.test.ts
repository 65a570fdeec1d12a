import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { campaign, noTotals, playScripts } from '../support/outbox-scripts.ts'

const seeds = Array.from({ length: 5 }, (_, at) => 7000 + at)

describe('operations against destinations that behave at random', () => {
  it.each(seeds)('keep every promise, whatever comes of their calls (seed %i)', async (seed) => {
    const totals = noTotals()
    await fc.assert(
      fc.asyncProperty(campaign, (drawn) => playScripts(drawn, 24, totals)),
      { numRuns: 8, seed, endOnFailure: true },
    )
    expect(totals.states.get('sent')).toBeGreaterThan(totals.states.get('dead') ?? 0)
  })
})
