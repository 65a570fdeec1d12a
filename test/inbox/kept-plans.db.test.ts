/**
 * A kept plan may have been made while tables were empty. What it reads is counted, by the server: a few rows
 * for every key, however large the tables have become since.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type pg from 'pg'
import { claimedStatement } from '../../src/inbox/read-claimed.ts'
import { lockedStatement } from '../../src/ledger/lock-orders.ts'
import { lookupNames } from '../../src/ledger/names.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import type { TestDatabase } from '../support/test-database.ts'

const rows = 20_000
const keys = 50

let database: TestDatabase
let pool: pg.Pool

beforeAll(async () => {
  database = await createHookledgerDatabase()
  pool = database.pool({ max: 1, options: '-c search_path=hookledger' })
})
afterAll(() => database.drop())

const fill = [
  `alter table inbox_events set (autovacuum_enabled = off)`,
  `alter table orders set (autovacuum_enabled = off)`,
  `insert into sources (provider, provider_account, environment) values ('stripe', 'kept', 'test')`,
  `insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
     select 1, 'evt_' || n, 'x', '\\x00', 1 from generate_series(1, ${rows}) n`,
  `insert into inbox_ready (event_key, received_on)
     select event_key, (now() at time zone 'UTC')::date from inbox_events`,
  `insert into payloads (event_key, received_on, body)
     select event_key, (now() at time zone 'UTC')::date, '{}' from inbox_events`,
  `insert into ledger_decisions (event_key, kind, final, reason, actor)
     select 1000000 + n, 'skipped', true, 'r', 'a' from generate_series(1, ${rows}) n`,
  `insert into orders (order_id, workflow, state) select 'o' || n, 'w', 's' from generate_series(1, ${rows}) n`,
  `insert into order_names (source_id, kind, name, order_id)
     select 1, 'k', 'n' || n, 'o' || n from generate_series(1, ${rows}) n`,
  `insert into ledger_payments (source_id, payment_id, order_id, amount, currency, applied, decision_id)
     select 1, 'p' || n, 'o' || n, 1, 'usd', true, n from generate_series(1, ${rows}) n`,
]

/** Index entries and rows that one call reads of all of Hookledger's tables. */
async function read(call: () => Promise<unknown>): Promise<number> {
  const counted = `select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::integer
      + (select coalesce(sum(idx_tup_read), 0)::integer from pg_stat_user_indexes where schemaname = 'hookledger') as n
    from pg_stat_user_tables where schemaname = 'hookledger'`
  const total = async (): Promise<number> => {
    await pool.query('select pg_stat_force_next_flush()')
    await pool.query('select pg_stat_clear_snapshot()')
    const found = await pool.query<{ n: number }>(counted)
    return found.rows[0]?.n ?? Number.NaN
  }
  const before = await total()
  await call()
  return (await total()) - before
}

describe('statements whose plan was kept from when the tables were empty', () => {
  it('look every row up by its key', async () => {
    const db = createDatabase(pool, 'hookledger')
    const eventKeys = Array.from({ length: keys }, (_, n) => String(n * 100 + 1))
    const orderIds = Array.from({ length: keys }, (_, n) => `o${n * 100 + 1}`)
    const names = orderIds.map((_, n) => ({ sourceId: 1, kind: 'k', value: `n${n * 100 + 1}` }))
    const calls = {
      claimed: () =>
        db.query({ text: claimedStatement(db.schema), repeated: true, values: [eventKeys] }),
      locked: () =>
        db.query({ text: lockedStatement(db.schema), repeated: true, values: [orderIds] }),
      names: () => lookupNames(db, db as never, names),
    }
    for (const call of Object.values(calls)) for (let n = 0; n < 8; n++) await call()
    for (const statement of fill) await pool.query(statement)
    expect(await calls.claimed()).toHaveLength(keys)
    expect(await calls.locked()).toHaveLength(2 * keys)
    expect((await calls.names()).size).toBe(keys)
    for (const [name, call] of Object.entries(calls)) {
      const count = await read(call)
      expect(count, name).toBeGreaterThanOrEqual(keys) // the count is of this call, and not of nothing
      expect(count, name).toBeLessThan(keys * 20)
    }
  })
})
