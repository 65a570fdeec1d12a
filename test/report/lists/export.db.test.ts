/** Lists as CSV: the rows of the list, in a file that no spreadsheet runs anything of. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { cell } from '../../../src/api/csv.ts'
import { createConsoleHistory, type ConsoleHistory } from '../../support/console-history.ts'
import { startApi, type TestApi } from '../../support/console-api.ts'

let history: ConsoleHistory
let api: TestApi
beforeAll(async () => {
  history = await createConsoleHistory()
  api = await startApi(history.hookledger)
})
afterAll(() => history.close())

/** Rows of a file by RFC 4180. */
function rowsOf(text: string): string[][] {
  const rows: string[][] = [[]]
  const cells = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n|$)/gy
  for (let at = cells.exec(text); at !== null && at[0] !== ''; at = cells.exec(text)) {
    const [, raw = '', end] = at
    rows.at(-1)?.push(raw.startsWith('"') ? raw.slice(1, -1).replaceAll('""', '"') : raw)
    if (end === '\r\n') rows.push([])
  }
  return rows.filter((row) => row.length > 1 || (row[0] ?? '') !== '')
}

const formulas = [
  '=1+1',
  '+1',
  '-1+1',
  '@sum',
  '\t=1',
  '\r=1',
  ' =1',
  '=cmd|" /C calc"!A0',
  '-',
  '\0=1',
]

describe('a cell', () => {
  it.each(formulas)('that begins a formula (%j) is text', (text) => {
    expect(cell(text).replace(/^"/, '')).toMatch(/^'/)
  })

  it.each([
    ['plain', 'plain'],
    ['a,b', '"a,b"'],
    ['say "x"', '"say ""x"""'],
    ['two\nlines', '"two\nlines"'],
    [-12, '-12'],
    ['-12.50', '-12.50'],
    [9007199254740993n, '9007199254740993'],
    [null, ''],
    [undefined, ''],
    [true, 'true'],
    [{ a: 1 }, '"{""a"":1}"'],
  ])('of %s is %s', (value, text) => {
    expect(cell(value)).toBe(text)
  })
})

describe('an export', () => {
  it.each(['events', 'orders', 'decisions', 'findings', 'operations', 'acts', 'deliveries'])(
    'of %s has the rows of the list, with names above them',
    async (list) => {
      const answer = await api.ask('GET', `/export/${list}.csv`)
      expect(answer.headers.get('content-type')).toMatch(/^text\/csv; charset=utf-8/)
      expect(answer.headers.get('content-disposition')).toBe(`attachment; filename="${list}.csv"`)
      const { items } = await api.get<{ items: Record<string, unknown>[] }>(`/${list}`, {
        limit: '200',
      })
      const [head = [], ...rows] = rowsOf(answer.text)
      expect(head.sort()).toEqual(Object.keys(items[0] ?? {}).sort())
      expect(rows).toHaveLength(items.length)
    },
  )

  it('takes the filters of the list, and nothing of pages', async () => {
    const { text } = await api.ask('GET', '/export/events.csv', { query: { state: 'dead' } })
    const [head = [], ...rows] = rowsOf(text)
    expect(rows.map((row) => row[head.indexOf('state')])).toEqual(['dead'])
    for (const name of ['limit', 'cursor'])
      expect((await api.ask('GET', '/export/events.csv', { query: { [name]: '1' } })).status).toBe(
        400,
      )
  })

  it('makes text of what somebody named like a formula', async () => {
    await history.pool.query(
      `insert into hookledger.orders (order_id, workflow, state, subject) values ('=HYPERLINK("http://evil.test","x")', 'license', 'pending', '@sum(1+1)')`,
    )
    const { text } = await api.ask('GET', '/export/orders.csv', { query: { state: 'pending' } })
    const [head = [], ...rows] = rowsOf(text)
    expect(
      rows.map((row) => [row[head.indexOf('order_id')], row[head.indexOf('subject')]]),
    ).toEqual([[`'=HYPERLINK("http://evil.test","x")`, `'@sum(1+1)`]])
  })

  it('ends at 10,000 rows', async () => {
    await history.pool.query(
      `insert into hookledger.orders (order_id, workflow, state) select 'many-' || n, 'license', 'canceled' from generate_series(1, 10050) n`,
    )
    const { text } = await api.ask('GET', '/export/orders.csv', { query: { state: 'canceled' } })
    expect(rowsOf(text)).toHaveLength(10_001)
  })
})
