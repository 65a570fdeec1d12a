import { describe, expect, it } from 'vitest'
import { allowedMs, longestPauseMs } from '../../../src/reconciliation/local-checks/silence.ts'

const hour = 3_600_000

/** Newest first, so far apart. */
const every = (ms: number, count: number): number[] =>
  Array.from({ length: count }, (_, at) => 1_000 * hour - at * ms)

describe('longestPauseMs', () => {
  it('is the longest pause between two deliveries', () => {
    const received = every(hour, 120)
    expect(longestPauseMs(received)).toBe(hour)
    expect(longestPauseMs(received.filter((_, at) => at !== 5 && at !== 6))).toBe(3 * hour)
  })

  it('calls nothing usual of few deliveries, or of less than a day', () => {
    expect(longestPauseMs(every(hour, 99))).toBeNull()
    expect(longestPauseMs(every(hour / 60, 200))).toBeNull()
    expect(longestPauseMs([])).toBeNull()
  })
})

describe('allowedMs', () => {
  it('is three times the longest pause, and never less than six hours', () => {
    expect(allowedMs(hour)).toBe(6 * hour)
    expect(allowedMs(10 * hour)).toBe(30 * hour)
  })
})
