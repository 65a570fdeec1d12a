import { describe, expect, it } from 'vitest'
import { caseOf, nameOf, promisesOf, slugOf, type DrillCase } from '../../src/drill/drill-case.ts'

const drillCase: DrillCase = {
  kind: 'kill',
  detail: 'W6.kill',
  workflow: 'license',
  history: 'expired-then-paid-twice',
  steps: [2, 0, 1],
}

describe('the name of a case', () => {
  it('makes the same case again', () => {
    expect(nameOf(drillCase)).toBe('kill/W6.kill/license/expired-then-paid-twice/2.0.1')
    expect(caseOf(nameOf(drillCase))).toEqual(drillCase)
  })

  it.each([
    '',
    'kill',
    'kill/W6.kill/license/bought',
    'kill/W6.kill/license/bought/0.x',
    'kill/W6.kill/license/bought/0/1',
    'other/-/license/bought/0',
    'constructor/-/license/bought/0',
    'kill//license/bought/0',
  ])('is not "%s"', (name) => {
    expect(caseOf(name)).toBeNull()
  })

  it('names histories without what a shell would need quotes for', () => {
    expect(slugOf('Expired, then paid "twice"!')).toBe('expired-then-paid-twice')
    expect(slugOf('…')).toBe('history')
  })
})

describe('the promises that a case puts to the test', () => {
  it('are those of its step, and what everything must keep', () => {
    expect([...promisesOf(drillCase)].sort()).toEqual(['P2', 'P3', 'P5', 'P8', 'P9'])
    expect(promisesOf({ ...drillCase, detail: 'R7.kill' })).toContain('P1')
    expect(promisesOf({ ...drillCase, detail: 'D3.stop' })).toContain('P6')
    expect(promisesOf({ ...drillCase, kind: 'commit', detail: 'receive.drop-after' })).toContain(
      'P1',
    )
    expect(promisesOf({ ...drillCase, kind: 'reconcile', detail: 'lost' })).toContain('P7')
  })
})
