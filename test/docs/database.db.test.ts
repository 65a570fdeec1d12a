import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase } from '../../src/postgres/pool.ts'
import { gauges } from '../../src/report/gauges.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import { oncePool } from '../support/once-pool.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { blocks, headings, page, pages, section, tableRows } from './pages.ts'

const { text } = page('docs/reference/database.md')
const queried = headings(section(text, 'To query')).map((each) => each.title)

let database: TestDatabase
beforeAll(async () => {
  database = await createHookledgerDatabase()
  // the event that the documents read
  await rows(`with source as (
      insert into hookledger.sources (provider, provider_account, environment) values ('stripe', 'stripe', 'test') returning source_id),
    event as (
      insert into hookledger.inbox_events (event_key, source_id, event_id, event_type, body_sha256, body_bytes)
      overriding system value select 12, source_id, 'evt_12', 'charge.updated', sha256('{}'), 2 from source)
    insert into hookledger.payloads (event_key, received_on, body) values (12, (now() at time zone 'UTC')::date, '{}')`)
  // and the operation
  await rows(`with operation as (
      insert into hookledger.outbox_operations (operation_id, destination, name, request_sha256, request_bytes, promise, window_ms)
      values ('3f2a8c1d-7b1e-5c55-9d0c-2f6f0f3c9a10', 'email', 'receipt', sha256('{}'), 2, 'once', 0) returning operation_id)
    insert into hookledger.outbox_requests (operation_id, request) select operation_id, '{}' from operation`)
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
    for (const { name, kind } of kinds)
      expect(section(text, name).trim()).toMatch(new RegExp(`^A ${kind}:`))
  })

  it('names every relation and function of the schema, and no other', async () => {
    const present = await rows<{ name: string }>(
      `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname = 'hookledger' and c.relkind in ('r', 'p', 'v') and c.relname !~ '^payloads_\\d{8}$'
       union select p.proname from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where n.nspname = 'hookledger'`,
    )
    const inside = tableRows(section(text, 'Inside')).map(([name]) => name)
    const called = tableRows(section(text, 'To call')).map(([name = '']) =>
      name.replace(/\(.*/, ''),
    )
    expect([...queried, ...called, ...inside].sort()).toEqual(
      present.map((each) => each.name).sort(),
    )
  })
})

describe('docs/reference/logs.md', () => {
  it('lists every gauge, and no other', async () => {
    const read = await oncePool(database.url, (pool) => gauges(createDatabase(pool, 'hookledger')))
    const listed = tableRows(section(page('docs/reference/logs.md').text, 'Gauges')).map(
      ([name, labels]) => [name, labels],
    )
    expect(listed.sort()).toEqual(
      read.map(({ name, labels }) => [`hookledger_${name}`, labels.join(', ')]).sort(),
    )
  })
})

describe('the SQL that documents show', () => {
  const shown = pages()
    .flatMap(blocks)
    .filter((block) => block.language === 'sql')

  it.each(shown)('runs: $page:$line', async ({ text: sql }) => {
    await expect(oncePool(database.url, (pool) => pool.query(sql))).resolves.toBeDefined()
  })
})
