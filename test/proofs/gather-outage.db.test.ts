import { describe, expect, it } from 'vitest'
import { playOutage } from '../support/gather-outage.ts'

describe('a provider that is away for an hour', () => {
  it('is hardly asked meanwhile, and then once about each object, whatever has piled up', async () => {
    const report = await playOutage({ events: 1000, objects: 200, accounts: 1, gatherers: 2 })
    expect(report).toMatchObject({ undecided: 0, wrong: 0, mostCallsAfter: 1, callsAfter: 200 })
    expect(report.callsMeanwhile).toBeGreaterThan(50)
    // those that are under way when the breaker opens, and one a minute from then on
    expect(report.callsMeanwhile).toBeLessThan(110)
  })

  it('is asked no more often where it has many accounts', async () => {
    const report = await playOutage({ events: 400, objects: 200, accounts: 40, gatherers: 2 })
    expect(report).toMatchObject({ undecided: 0, wrong: 0, mostCallsAfter: 1, callsAfter: 200 })
    expect(report.callsMeanwhile).toBeLessThan(110)
  })
})
