/**
 * The broken examples: each is drilled as its user would, and the drill ends with exit 3 and names what is broken. Those
 * whose fault only processes show are drilled by `npm run test:crash`.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { broken, drill } from '../support/drilled-examples.ts'

/** Kinds of case that are quick: those in memory, and the first ones that need a database. */
const quick = broken.filter(([name, , , only]) => only === 'pure' || name === 'no-unique-index')

describe('a broken example', () => {
  it.each(quick)('%s is caught as %s', async (name, fault, promise, only) => {
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

  it('has a test, and there are at least twelve', () => {
    const files = readdirSync(join(import.meta.dirname, '../../examples/broken'))
      .filter((file) => file.endsWith('.config.ts') && file !== 'right.config.ts')
      .map((file) => file.replace('.config.ts', ''))
    expect(files.sort()).toEqual(broken.map(([name]) => name).sort())
    expect(files.length).toBeGreaterThanOrEqual(12)
  })
})

describe('the same shop with nothing broken', () => {
  it('passes what catches the others in memory', async () => {
    const { code, report } = await drill('right', 'pure')
    expect(report.faults).toEqual([])
    expect(code).toBe(0)
  })
})
