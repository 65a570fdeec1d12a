/** What the guide to testing shows is what the example projects run. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { blocks, page, root, section } from '../docs/pages.ts'

const guide = page('docs/guides/testing.md')
const files = [
  'sale.ts',
  'sale.spec.ts',
  'shop.ts',
  'shop.spec.ts',
  'provider.ts',
  'provider.spec.ts',
]

describe('the guide to testing', () => {
  it.each(files)('shows %s as the example runs it', (file) => {
    const shown = blocks(guide).find((block) => block.file === file)
    const text = readFileSync(join(root, 'examples/testing/vitest', file), 'utf8')
    expect(shown?.text.trimEnd()).toBe(text.trimEnd())
  })

  it('names every broken example with the fault that its test expects', () => {
    const tests = readFileSync(join(root, 'test/support/drilled-examples.ts'), 'utf8')
    const tested = [...tests.matchAll(/\['([a-z-]+)', '([a-z_]+)', 'P\d+', '\w+'\]/g)]
    const shown = [
      ...section(guide.text, 'What a drill finds').matchAll(
        /^\| `([a-z-]+)` +\| `([a-z_]+)` +\|$/gm,
      ),
    ]
    const pairs = (found: RegExpExecArray[]): string[][] =>
      found.map(([, a = '', b = '']) => [a, b])
    expect(tested.length).toBeGreaterThanOrEqual(12)
    expect(pairs(shown).sort()).toEqual(pairs(tested).sort())
  })

  it('names every export of the testing kit that is called', () => {
    const index = readFileSync(join(root, 'src/testing/index.ts'), 'utf8')
    const called = [...index.matchAll(/^export \{ ([^}]+) \}/gm)]
      .flatMap(([, names = '']) => names.split(', '))
      .filter((name) => !name.startsWith('type ') && /^[a-z]/.test(name))
    expect(called.length).toBeGreaterThan(10)
    expect(called.filter((name) => !guide.text.includes(name))).toEqual([])
  })
})
