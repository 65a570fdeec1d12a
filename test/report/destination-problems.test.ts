import { describe, expect, it } from 'vitest'
import { destinationProblems } from '../../src/report/destination-problems.ts'
import type { DestinationStatus } from '../../src/report/destinations.ts'

function present(given: Partial<DestinationStatus> & { destination: string }): DestinationStatus {
  return {
    promise: 'once',
    pending: 0,
    due: 0,
    oldest_due_age_ms: null,
    sending: 0,
    uncertain: 0,
    dead: 0,
    asking: 0,
    failures: 0,
    closed_until: null,
    ...given,
  }
}

describe('destinationProblems', () => {
  it('finds nothing where destinations are configured, used and answer', () => {
    const configured = new Map([['email', {}]])
    expect(
      destinationProblems(configured, [present({ destination: 'email', pending: 7 })]),
    ).toEqual([])
  })

  it('names one that cannot be used as configured, used or not', () => {
    const configured = new Map([['email', { problem: 'url must be https' }]])
    expect(destinationProblems(configured, [])).toEqual([
      'destination "email" cannot be used: url must be https',
    ])
  })

  it('names one that nobody configures only while something waits for it', () => {
    const waiting = present({ destination: 'fax', pending: 1, sending: 1, uncertain: 1, dead: 5 })
    expect(destinationProblems(new Map(), [waiting])).toEqual([
      'destination "fax" is not configured, and operations to it are not sent (3): configure it again',
    ])
    expect(destinationProblems(new Map(), [present({ destination: 'fax' })])).toEqual([])
  })

  it('names one that is left alone since it fails', () => {
    const closed = present({
      destination: 'email',
      failures: 20,
      closed_until: '2026-01-01T00:00:00.000Z',
    })
    expect(destinationProblems(new Map([['email', {}]]), [closed])).toEqual([
      'destination "email" is left alone until 2026-01-01T00:00:00.000Z: it failed 20 times in a row',
    ])
  })
})
