import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { behaviors } from '../support/adversarial-destination.ts'
import { campaign, noTotals, playScripts } from '../support/outbox-scripts.ts'

const rare = new Set(['works_and_floods', 'answers_200_with_an_error'])

describe('operations against destinations that behave at random', () => {
  it('keep every promise, whatever comes of their calls', async () => {
    const totals = noTotals()
    await fc.assert(
      fc.asyncProperty(campaign, (drawn) => playScripts(drawn, 16, totals)),
      { numRuns: 4, seed: 20_260_101, endOnFailure: true },
    )
    // every fault was met, and every kind of end was reached
    expect(behaviors.filter((each) => !rare.has(each) && !totals.behaviors.has(each))).toEqual([])
    for (const state of ['sent', 'dead', 'uncertain'])
      expect([state, totals.states.get(state) ?? 0]).not.toEqual([state, 0])
    for (const outcome of ['sent', 'retry', 'refused', 'uncertain', 'present', 'absent'])
      expect([outcome, totals.outcomes.get(outcome) ?? 0]).not.toEqual([outcome, 0])
    // new keys are rare in so few campaigns: outbox-forgetting and the long run see to them
  }, 120_000)
})
