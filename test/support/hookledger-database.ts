/** A migrated database of a test's own, and a Hookledger over it. */
import type pg from 'pg'
import { createHookledger, type Hookledger, type HookledgerOptions } from 'hookledger'
import { setupCredits } from '../../examples/shop/credit-entries.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { migrate, newestMigration } from '../../src/postgres/migrate.ts'
import type { Database } from '../../src/postgres/executor.ts'
import { createTestDatabase, type TestDatabase } from './test-database.ts'
import { oncePool } from './once-pool.ts'

/** A database at the newest migration, environment `test`. */
export async function createHookledgerDatabase(): Promise<TestDatabase> {
  return createTestDatabase({
    template: {
      name: `hookledger_${newestMigration}`,
      prepare: async (url) => {
        await oncePool(url, async (pool) => {
          await migrate(createDatabase(pool, 'hookledger'), {
            environment: 'test',
            partitionsAheadDays: 3,
          })
          await pool.query('create schema shop')
          await setupCredits(pool)
          await pool.query(
            'create table shop.customers (customer_id text primary key, email text, name text, changed_at timestamptz not null)',
          )
        })
      },
    },
  })
}

/** What a database test works with. */
export interface Bench {
  readonly database: TestDatabase
  readonly pool: pg.Pool
  readonly db: Database
  readonly hookledger: Hookledger
  /** Rows of a statement, with `hookledger` as search path. */
  rows<R extends object = Record<string, unknown>>(text: string, values?: unknown[]): Promise<R[]>
  close(): Promise<void>
}

/** A fresh migrated database with a Hookledger of these options over it. */
export async function createBench(options: Omit<HookledgerOptions, 'database'>): Promise<Bench> {
  const database = await createHookledgerDatabase()
  const pool = database.pool({ max: 20, options: '-c search_path=hookledger,public' })
  const hookledger = createHookledger({ ...options, database: pool })
  return {
    database,
    pool,
    hookledger,
    db: createDatabase(pool, 'hookledger'),
    rows: async <R extends object>(text: string, values: unknown[] = []) =>
      (await pool.query<R & pg.QueryResultRow>(text, values)).rows,
    close: async () => {
      await hookledger.stop()
      await database.drop()
    },
  }
}
