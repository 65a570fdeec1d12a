import { describe, expect, it } from 'vitest'
import {
  accountResult,
  afterResult,
  afterTaking,
  allowanceOf,
  sourceResult,
  type BudgetFigures,
  type BudgetResult,
  type BudgetRules,
} from '../../../src/inbox/gather/budget.ts'
import type { FetchOutcome } from '../../../src/inbox/gather/gather-context.ts'

const rules: BudgetRules = {
  ratePerSecond: 10,
  breakerFailures: 3,
  breakerMs: 1000,
  maxBreakerMs: 60_000,
  leaseMs: 30_000,
}
const full: BudgetFigures = { tokens: 5, sinceRefillMs: 0, failures: 0, closedForMs: null }
const bad: BudgetResult = { counts: 'bad', restMs: null, isProbe: false }
const good: BudgetResult = { counts: 'good', restMs: null, isProbe: false }
const failed = (failure: Extract<FetchOutcome, { kind: 'failed' }>['failure']): FetchOutcome => ({
  kind: 'failed',
  failure,
  text: 'failed',
})
const away = failed({ kind: 'later', retryAfterMs: null, isRateLimit: false })

/** The figures after outcomes, one after the other. */
function after(figures: BudgetFigures, ...results: BudgetResult[]): BudgetFigures {
  return results.reduce((now, result) => afterResult(now, result, rules), figures)
}

describe('allowanceOf', () => {
  it('allows half a second of requests at once, and then as many as the rate', () => {
    expect(allowanceOf(full, rules)).toMatchObject({ most: 5, waitMs: null })
    const spent = afterTaking(full, allowanceOf(full, rules), 5, rules)
    expect(allowanceOf(spent, rules)).toMatchObject({ most: 0, waitMs: 100 })
    expect(allowanceOf({ ...spent, sinceRefillMs: 250 }, rules)).toMatchObject({ most: 2 })
    expect(allowanceOf({ ...spent, sinceRefillMs: 3_600_000 }, rules)).toMatchObject({ most: 5 })
  })

  it('keeps to a rate below one in a second', () => {
    const slow = { ...rules, ratePerSecond: 0.1 }
    expect(allowanceOf({ ...full, tokens: 1 }, slow)).toMatchObject({ most: 1 })
    expect(allowanceOf({ ...full, tokens: 0, sinceRefillMs: 4000 }, slow)).toMatchObject({
      most: 0,
      waitMs: 6000,
    })
  })

  it('takes no time back that a clock went backwards', () => {
    expect(allowanceOf({ ...full, tokens: 1, sinceRefillMs: -5000 }, rules).tokens).toBe(1)
  })
})

describe('the breaker', () => {
  it('opens after failures in a row, and one success in between starts the count anew', () => {
    expect(after(full, bad, bad, good, bad, bad)).toMatchObject({ failures: 2, closedForMs: null })
    expect(after(full, bad, bad, bad)).toMatchObject({ failures: 3, closedForMs: 1000 })
  })

  it('lets one request through at a time, and twice as late after each that fails, up to the longest pause', () => {
    let now = after(full, bad, bad, bad)
    const pauses: (number | null)[] = []
    for (let probe = 0; probe < 9; probe++) {
      const open = { ...now, closedForMs: 0, tokens: 5 }
      const allowance = allowanceOf(open, rules)
      expect(allowance).toMatchObject({ most: 1, isProbe: true })
      const taken = afterTaking(open, allowance, 1, rules)
      expect(allowanceOf({ ...taken, tokens: 5 }, rules).most).toBe(0)
      now = after(taken, { ...bad, isProbe: true })
      pauses.push(now.closedForMs)
    }
    expect(pauses).toEqual([2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000, 60_000, 60_000])
    expect(after(now, { ...good, isProbe: true })).toMatchObject({ failures: 0, closedForMs: null })
  })

  it('is not prolonged by requests that were under way when it opened', () => {
    const opened = after(full, bad, bad, bad)
    expect(after(opened, bad, bad, bad, bad)).toEqual(opened)
  })

  it('lets the next one try where the lone request never left its process', () => {
    const waiting = { ...after(full, bad, bad, bad), closedForMs: 30_000 }
    const released = accountResult({ kind: 'released' }, true)
    expect(after(waiting, released)).toMatchObject({ failures: 3, closedForMs: null })
  })

  it('rests as long as a provider asks to that is asked too much', () => {
    const limited = failed({ kind: 'later', retryAfterMs: 7000, isRateLimit: true })
    const now = after(full, accountResult(limited, false))
    expect(now).toMatchObject({ failures: 1, closedForMs: 7000 })
    expect(after(now, good)).toMatchObject({ failures: 0, closedForMs: 7000 })
  })
})

describe('what an outcome says of a source as a whole', () => {
  const calm = { isProbe: false, isAccountTroubled: false }
  it('is nothing where only one account is refused, limited or in trouble', () => {
    expect(sourceResult(failed({ kind: 'refused' }), calm).counts).toBe('nothing')
    const limited = failed({ kind: 'later', retryAfterMs: null, isRateLimit: true })
    expect(sourceResult(limited, calm).counts).toBe('nothing')
    expect(sourceResult(away, { ...calm, isAccountTroubled: true }).counts).toBe('nothing')
    expect(sourceResult(away, calm).counts).toBe('bad')
    expect(sourceResult(away, { isProbe: true, isAccountTroubled: true }).counts).toBe('bad')
  })

  it('is nothing where the fault is in the code that asks', () => {
    expect(accountResult(failed({ kind: 'unknown' }), false).counts).toBe('nothing')
    expect(accountResult(failed({ kind: 'refused' }), false).counts).toBe('bad')
  })
})
