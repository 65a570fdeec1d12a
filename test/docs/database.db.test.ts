import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import { oncePool } from '../support/once-pool.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { headings, page, section, tableRows } from './pages.ts'

const { text } = page('docs/reference/database.md')
const queried = headings(section(text, 'To query')).map((each) => each.title)

let database: TestDatabase
beforeAll(async () => {
  database = await createHookledgerDatabase()
})
afterAll(() => database.drop())

async function rows<R>(sql: string, values: unknown[] = []): Promise<R[]> {
  return oncePool(database.url, async (pool) => (await pool.query(sql, values)).rows as R[])
}

describe('docs/reference/database.md', () => {
  it.each(queried)('describes %s with the columns and types that it has', async (relation) => {
    const columns = await rows<{ name: string; type: string }>(
      `select a.attname as name, format_type(a.atttypid, null) as type
       from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = 'hookledger' and c.relname = $1 and a.attnum > 0 and not a.attisdropped order by a.attnum`,
      [relation],
    )
    const documented = tableRows(section(text, relation)).map(([name, type]) => ({
      name,
      type: type === 'timestamptz' ? 'timestamp with time zone' : type,
    }))
    expect(documented).toEqual(columns)
  })

  it('says of each whether it is a table or a view', async () => {
    const kinds = await rows<{ name: string; kind: string }>(
      `select table_name as name, case table_type when 'VIEW' then 'view' else 'table' end as kind
       from information_schema.tables where table_schema = 'hookledger' and table_name = any ($1)`,
      [queried],
    )
    for (const { name, kind } of kinds) expect(section(text, name).trim()).toMatch(new RegExp(`^A ${kind}:`))
  })

  it('names every relation and function of the schema, and no other', async () => {
    const present = await rows<{ name: string }>(
      `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = 'hookledger' and c.relkind in ('r', 'p', 'v') and c.relname !~ '^payloads_\\d{8}$'
       union select p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where n.nspname = 'hookledger'`,
    )
    const inside = tableRows(section(text, 'Inside')).map(([name]) => name)
    const called = tableRows(section(text, 'To call')).map(([name = '']) => name.replace(/\(.*/, ''))
    expect([...queried, ...called, ...inside].sort()).toEqual(present.map((each) => each.name).sort())
  })
})
