import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { page, root, section, tableRows } from './pages.ts'

interface Rule {
  readonly name: string
  readonly comment?: string
}
const { forbidden } = createRequire(import.meta.url)(join(root, '.dependency-cruiser.cjs')) as {
  readonly forbidden: readonly Rule[]
}
const { text } = page('ARCHITECTURE.md')

/** A floor that exists already; the rule also names those that are still to come. */
function exists(floor: string): boolean {
  return existsSync(join(root, 'src', floor))
}

/** `core, workflow` as a sorted list of floors. */
function floors(list: string): string[] {
  return list
    .split(/,\s*/)
    .filter((name) => exists(name))
    .sort()
}

describe('ARCHITECTURE.md', () => {
  it('tells the dependency rule as it is linted', () => {
    const linted = forbidden.flatMap(({ name, comment = '' }) => {
      const floor = /^floor-(.+)$/.exec(name)?.[1]
      if (floor === undefined || !exists(floor)) return []
      return [[floor, floors(/may import only: (.*)$/.exec(comment)?.[1] ?? '')] as const]
    })
    const told = tableRows(section(text, 'The house')).flatMap(([names = '', allowed = '']) =>
      floors(names).map((floor) => [floor, floors(allowed.replace(/, not even .*/, ''))] as const),
    )
    expect(Object.fromEntries(told)).toEqual({
      ...Object.fromEntries(linted),
      'hookledger.ts': expect.any(Array) as string[],
    })
  })

  it('has a row for every step at which a process can be killed', () => {
    const steps = tableRows(section(text, 'What a kill leaves')).map(([step]) => step)
    const receiver = Array.from({ length: 11 }, (_, step) => `R${step}`)
    const worker = Array.from({ length: 8 }, (_, step) => `W${step}`)
    const dispatcher = Array.from({ length: 7 }, (_, step) => `D${step}`)
    const reconciler = Array.from({ length: 8 }, (_, step) => `C${step}`)
    const gatherer = Array.from({ length: 8 }, (_, step) => `G${step}`)
    const bulk = Array.from({ length: 4 }, (_, step) => `B${step}`)
    const repair = Array.from({ length: 7 }, (_, step) => `P${step}`)
    expect(steps).toEqual([
      ...receiver,
      ...worker,
      ...dispatcher,
      ...reconciler,
      ...gatherer,
      ...bulk,
      ...repair,
    ])
  })
})
