/**
 * The broken examples whose fault shows only between processes. The same shop with nothing broken passes the same
 * cases, so that none of them is caught for what the shop is.
 */
import { describe, expect, it } from 'vitest'
import { broken, drill } from '../support/drilled-examples.ts'

const slow = broken.filter(([, , , only]) => only !== 'pure')

describe('a broken example', () => {
  it.each(slow)('%s is caught as %s', async (name, fault, promise, only) => {
    const { code, report } = await drill(name, only)
    const found = report.faults.find((each) => each.fault === fault)
    expect(report.faults.map((each) => each.fault)).toContain(fault)
    expect(found?.promise).toBe(promise)
    expect(found?.detail).not.toBe('')
    // what memory shows has no schedule of processes to play again
    if (only !== 'pure') expect(found?.replay).toContain(`examples/broken/${name}.config.ts`)
    expect(report.go).toBe(false)
    expect(code).toBe(3)
  })
})

describe('the same shop with nothing broken', () => {
  const kinds = [...new Set(slow.map(([, , , only]) => only))]

  it.each(kinds)('passes what catches the others (%s)', async (only) => {
    const { code, report } = await drill('right', only)
    expect(report.faults).toEqual([])
    if (only !== 'pure') expect(report.cases.some(({ exercised }) => exercised)).toBe(true)
    expect(code).toBe(0)
  })
})
