import { afterEach, describe, expect, it } from 'vitest'
import { queryOnce } from './once-query.ts'
import { createTestDatabase } from './test-database.ts'
import type { DatabaseTemplate, TestDatabase } from './test-database.ts'

const databases: TestDatabase[] = []

afterEach(async () => {
  for (const database of databases.splice(0)) await database.drop()
})

async function create(template?: DatabaseTemplate): Promise<TestDatabase> {
  const database = await createTestDatabase(template ? { template } : {})
  databases.push(database)
  return database
}

describe('createTestDatabase', () => {
  it('gives each test a database that nobody else sees', async () => {
    const [one, two] = [await create(), await create()]
    await one.pool().query('create table item (id int)')
    await expect(two.pool().query('select from item')).rejects.toMatchObject({ code: '42P01' })
  })

  it('prepares a template once, however many ask for it at the same time', async () => {
    let prepared = 0
    const template: DatabaseTemplate = {
      name: `item_${process.pid}`,
      async prepare(url) {
        prepared += 1
        await queryOnce(url, 'create table item as select 42 as id')
      },
    }
    const copies = await Promise.all([create(template), create(template), create(template)])
    expect(prepared).toBe(1)
    for (const copy of copies) {
      expect((await copy.pool().query('select id from item')).rows).toEqual([{ id: 42 }])
    }
  })

  it('makes a template again when its preparation failed', async () => {
    const name = `failing_${process.pid}`
    const failing = { name, prepare: () => Promise.reject(new Error('not this time')) }
    await expect(create(failing)).rejects.toThrow('not this time')
    const database = await create({ name, prepare: () => Promise.resolve() })
    expect((await database.pool().query('select 1 as one')).rows).toEqual([{ one: 1 }])
  })

  it('drops a database that somebody is still connected to', async () => {
    const database = await createTestDatabase()
    const asleep = queryOnce(database.url, 'select pg_sleep(60)')
    const cut = expect(asleep).rejects.toThrow()
    await database.pool().query('select 1')
    await database.drop()
    await cut
    await expect(queryOnce(database.url, 'select 1')).rejects.toMatchObject({ code: '3D000' })
  })
})
