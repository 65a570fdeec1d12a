import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const docs = join(import.meta.dirname, '../../docs')
const page = readFileSync(join(docs, 'reliability.md'), 'utf8')

/** Rows of the tables: an id, and what it says it is done by. */
const rows = [...page.matchAll(/^\| (F\d\d|SEC-\d\d) +\| .*? \| (.*?) \|$/gm)].map(
  ([, id = '', by = '']) => ({ id, by: by.trim() }),
)
const numbers = (prefix: string, last: number): string[] =>
  Array.from({ length: last }, (_, at) => `${prefix}${String(at + 1).padStart(2, '0')}`)

describe('docs/reliability.md', () => {
  it('has a row for each fault of the catalog and each threat to receiver, ledger and console', () => {
    expect(rows.map(({ id }) => id)).toEqual([...numbers('F', 68), ...numbers('SEC-', 21)])
  })

  it.each(rows)('$id names tests that there are, or says that there are none', ({ by }) => {
    const files = [...by.matchAll(/\]\(([^)]+)\)/g)].map(([, file = '']) => join(docs, file))
    if (files.length === 0) {
      expect(by).toMatch(/^no: .{10,}/)
      return
    }
    for (const file of files) {
      expect([file, existsSync(file)]).toEqual([file, true])
      expect(readFileSync(file, 'utf8')).toMatch(/^\s*(it|test)\b[.(]/m)
    }
  })
})
