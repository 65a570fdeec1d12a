import { describe, expect, it } from 'vitest'
import { breakerAfter, budgetOf, type DestinationFigures } from '../../src/outbox/budget.ts'
import { defaultContract } from '../../src/outbox/destination.ts'
import type { AttemptOutcome } from '../../src/outbox/next-step.ts'

const figures = (given: Partial<DestinationFigures> = {}): DestinationFigures => ({
  underWay: 0,
  failures: 0,
  closedForMs: null,
  tokens: 0,
  sinceRefillMs: 0,
  ...given,
})
const contract = { ...defaultContract, concurrency: 5 }
const failed: AttemptOutcome = { kind: 'retry', error: 'x' }
const sent: AttemptOutcome = { kind: 'sent', receipt: {} }

describe('budgetOf', () => {
  it('counts what every dispatcher has under way', () => {
    expect(budgetOf(figures({ underWay: 3 }), contract).most).toBe(2)
    expect(budgetOf(figures({ underWay: 9 }), contract).most).toBe(0)
  })

  it('lets nothing through while the breaker is open, and one alone when it is half open', () => {
    expect(budgetOf(figures({ closedForMs: 700 }), contract)).toMatchObject({
      most: 0,
      waitMs: 700,
    })
    expect(budgetOf(figures({ closedForMs: 0 }), contract).most).toBe(1)
    expect(budgetOf(figures({ closedForMs: -9, underWay: 1 }), contract).most).toBe(0)
  })

  it('gathers tokens for a tenth of a second at most, and says when the next one is there', () => {
    const rated = { ...contract, ratePerSecond: 20 }
    expect(budgetOf(figures({ sinceRefillMs: 3_600_000 }), rated).most).toBe(2)
    expect(budgetOf(figures({ tokens: 0.5, sinceRefillMs: 0 }), rated)).toMatchObject({
      most: 0,
      waitMs: 25,
    })
    expect(
      budgetOf(figures({ sinceRefillMs: 60_000 }), { ...contract, ratePerSecond: 0.1 }).most,
    ).toBe(1)
    expect(budgetOf(figures({ tokens: 1, sinceRefillMs: -500 }), rated).most).toBe(1)
  })
})

describe('breakerAfter', () => {
  const limit = { ...contract, breakerFailures: 3, breakerMs: 1000 }
  const shut = { failures: 0, closedForMs: null }

  it('opens after so many failures in a row', () => {
    expect(breakerAfter(shut, [failed, failed], limit)).toEqual({ failures: 2, closedForMs: null })
    expect(breakerAfter(shut, [failed, failed, failed], limit).closedForMs).toBe(1000)
    expect(breakerAfter(shut, [failed, failed, sent, failed], limit)).toEqual({
      failures: 1,
      closedForMs: null,
    })
  })

  it('opens again when the one that was let through fails, and shuts when it does not', () => {
    const half = { failures: 3, closedForMs: -5 }
    expect(breakerAfter(half, [failed], limit).closedForMs).toBe(1000)
    expect(breakerAfter(half, [sent], limit)).toEqual(shut)
  })

  it('is not prolonged by failures that were under way when it opened', () => {
    expect(breakerAfter({ failures: 3, closedForMs: 400 }, [failed], limit).closedForMs).toBe(400)
  })

  it('counts a refusal as an answer, and a dispatcher that died as nothing', () => {
    const refused: AttemptOutcome = { kind: 'refused', error: '4', settlesEarlier: true }
    const died: AttemptOutcome = { kind: 'died', error: 'x' }
    expect(breakerAfter({ failures: 2, closedForMs: null }, [refused], limit)).toEqual(shut)
    expect(breakerAfter({ failures: 2, closedForMs: null }, [died], limit).failures).toBe(2)
  })
})
