/** Statements that run again and again are prepared; where connections do not keep that, they go on without. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase } from '../../src/postgres/pool.ts'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const kept = `select name from pg_prepared_statements where statement like '%marked %' and name <> ''`

describe('a repeated statement', () => {
  it('is prepared from its third run on, under one name for one text', async () => {
    const db = createDatabase(database.pool({ max: 1 }), 'hookledger')
    const run = (text: string): Promise<{ n: number }[]> =>
      db.query<{ n: number }>({ text, repeated: true, values: [1] })
    const names = async (): Promise<number> => (await db.query({ text: kept })).length
    for (const expected of [0, 0, 1, 1]) {
      expect(await run('select $1::integer as n /* marked one */')).toEqual([{ n: 1 }])
      expect(await names()).toBe(expected)
    }
    for (let n = 0; n < 3; n++) await run('select $1::integer as n /* marked two */')
    expect(await names()).toBe(2)
  })

  it('is prepared nowhere unless it says that it is repeated', async () => {
    const db = createDatabase(database.pool({ max: 1 }), 'hookledger')
    for (let n = 0; n < 5; n++) await db.query({ text: 'select 1 /* marked three */' })
    expect(await db.query({ text: kept })).toEqual([])
  })

  it('fails once where another server connection was handed out, and is not prepared again', async () => {
    const pool = database.pool({ max: 1 })
    const db = createDatabase(pool, 'hookledger')
    const run = (): Promise<object[]> =>
      db.query({ text: 'select $1::integer as n /* marked four */', repeated: true, values: [4] })
    for (let n = 0; n < 4; n++) await run()
    expect(await db.query({ text: kept })).toHaveLength(1)
    // what a pooler between transactions does: the next one runs on a server that never heard of it
    await pool.query('deallocate all')
    await expect(run()).rejects.toMatchObject({ code: '26000' })
    expect(await run()).toEqual([{ n: 4 }])
    expect(await run()).toEqual([{ n: 4 }])
    expect(await db.query({ text: kept })).toEqual([])
  })
})
