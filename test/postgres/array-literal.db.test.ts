import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase } from '../../src/postgres/pool.ts'
import type { Database } from '../../src/postgres/executor.ts'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'

let database: TestDatabase
let db: Database
beforeAll(async () => {
  database = await createTestDatabase()
  db = createDatabase(database.pool({ max: 2 }), 'public')
})
afterAll(() => database.drop())

describe('arrays as bound values', () => {
  it('arrive as they were sent, whatever is in the texts', async () => {
    const texts = [
      '',
      'NULL',
      'null',
      ' ',
      '{a}',
      '"',
      '\\',
      '\\"',
      'a,b',
      '\t\n\r\v\f',
      'nulls',
      'ä€😀',
      '\u2028',
      "'",
      '$1',
      null,
    ]
    const [row] = await db.query<{ texts: (string | null)[] }>({
      text: 'select $1::text[] as texts',
      values: [texts],
    })
    expect(row?.texts).toEqual(texts)
  })

  it('keep numbers, booleans, times and empty arrays', async () => {
    const [row] = await db.query<Record<string, unknown>>({
      text: `select $1::bigint[]::text[] as keys, $2::boolean[] as flags, $3::timestamptz[]::text[] as times, $4::integer[] as none`,
      values: [
        ['9007199254740993', null],
        [true, false, null],
        ['2026-01-02T03:04:05.678Z', null],
        [],
      ],
    })
    expect(row).toEqual({
      keys: ['9007199254740993', null],
      flags: [true, false, null],
      times: [expect.stringContaining('2026-01-02'), null],
      none: [],
    })
  })
})
