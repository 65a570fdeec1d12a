/** Checks of settings that only a server of the test's own can have. */
import { afterEach, describe, expect, it } from 'vitest'
import { diagnose, requireHealthy } from '../../src/postgres/doctor.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import type { Database } from '../../src/postgres/executor.ts'
import { startPostgresForCrashTest, type CrashPostgres } from '../support/crash-postgres.ts'
import { oncePool } from '../support/once-pool.ts'

let server: CrashPostgres | undefined
afterEach(() => server?.remove())

async function withServer(
  settings: Readonly<Record<string, string>>,
  work: (db: Database) => Promise<void>,
): Promise<void> {
  server = await startPostgresForCrashTest({ settings })
  await oncePool(server.url, async (pool) => {
    const db = createDatabase(pool, 'hookledger')
    await migrate(db, { environment: 'test' })
    await work(db)
  })
}

describe('a server that does not flush', () => {
  it('is refused at start, unless somebody says why it is safe, and shown either way', async () => {
    await withServer({ fsync: 'off', full_page_writes: 'off' }, async (db) => {
      const unsafe = (name: string) => ({
        code: 'HKL_DATABASE_UNSAFE',
        message: `${name} is off: an acknowledged event can be lost (P1). Turn it on, or say acceptDurability: '<why it is safe here>'`,
        breaks: 'P1',
        acceptable: true,
      })
      expect(await diagnose(db)).toEqual([unsafe('fsync'), unsafe('full_page_writes')])
      await expect(requireHealthy(db, {})).rejects.toMatchObject({
        code: 'HKL_DATABASE_UNSAFE',
        message: unsafe('fsync').message,
      })
      expect(await requireHealthy(db, { acceptDurability: 'storage is replicated' })).toEqual([
        `${unsafe('fsync').message} (accepted: storage is replicated)`,
        `${unsafe('full_page_writes').message} (accepted: storage is replicated)`,
      ])
    })
  })
})

describe('what holds back vacuum', () => {
  it('is told, also where no session shows it', async () => {
    await withServer({ wal_level: 'logical', max_prepared_transactions: '5' }, async (db) => {
      await db.query({ text: `select pg_create_logical_replication_slot('forgotten', 'pgoutput')` })
      await db.query({
        text: `begin; create table left_behind (a integer); prepare transaction 'forgotten too'`,
      })
      expect((await diagnose(db, { heldHorizonSeconds: 0 })).map((each) => each.message)).toEqual([
        expect.stringMatching(
          /^prepared transaction 'forgotten too' has been open for \d+ s holds back vacuum/,
        ),
        expect.stringMatching(/^nobody reads replication slot forgotten, which holds back vacuum/),
      ])
      await db.query({ text: `rollback prepared 'forgotten too'` })
      await db.query({ text: `select pg_drop_replication_slot('forgotten')` })
      expect(await diagnose(db, { heldHorizonSeconds: 0 })).toEqual([])
    })
  })
})
