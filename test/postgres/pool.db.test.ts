import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, createPool } from '../../src/postgres/pool.ts'
import type { Database } from '../../src/postgres/executor.ts'
import { createCommitProxy, type CommitProxy } from '../../src/drill/proxy/commit-proxy.ts'
import { startPostgresForCrashTest } from '../support/crash-postgres.ts'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'

let database: TestDatabase
let admin: pg.Pool
const opened: pg.Pool[] = []

beforeAll(async () => {
  database = await createTestDatabase()
  admin = database.pool()
  await admin.query('create table notes (note_id text primary key)')
  await admin.query('create table parents (parent_id text primary key)')
  await admin.query(
    'create table children (parent_id text constraint children_parent_fkey references parents deferrable initially deferred)',
  )
})
afterEach(async () => {
  await Promise.all(opened.splice(0).map((pool) => pool.end()))
})
afterAll(() => database.drop())

/** A pool as an app has it: nothing set, nobody listening for its errors. */
function appPool(config: pg.PoolConfig = {}): pg.Pool {
  const pool = new pg.Pool({ connectionString: database.url, max: 1, ...config })
  opened.push(pool)
  return pool
}

const over = (pool: pg.Pool, answerWithinMs?: number): Database =>
  createDatabase(pool, 'hookledger', answerWithinMs === undefined ? {} : { answerWithinMs })
const insert = (id: string) => ({ text: 'insert into notes values ($1)', values: [id] })
const pidOf = async (db: Database): Promise<number> =>
  (await db.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' }))[0]?.pid ?? 0
const isNoted = async (id: string): Promise<boolean> =>
  (await admin.query('select 1 from notes where note_id = $1', [id])).rowCount === 1

describe('a connection that somebody left inside a transaction', () => {
  it('is closed and not worked on, whether that transaction had failed or not', async () => {
    for (const leave of ['insert into notes values ($1)', 'select $1::text::integer']) {
      const pool = appPool()
      const db = over(pool)
      const id = `left ${leave}`
      const client = await pool.connect()
      await client.query('begin')
      await client.query(leave, [`leftover ${leave}`]).catch(() => {})
      client.release()
      await db.query(insert(id))
      expect(await isNoted(id)).toBe(true)
      expect(await isNoted(`leftover ${leave}`)).toBe(false)
    }
  })

  it('is found out also when it says so too late, and nothing is taken for committed', async () => {
    const pool = appPool()
    const db = over(pool)
    for (const run of [
      () => db.query(insert('too late')),
      () => db.transaction((tx) => tx.query(insert('too late'))),
    ]) {
      const client = await pool.connect()
      const begun = client.query('begin')
      client.release()
      await expect(run()).rejects.toMatchObject({ code: 'HKL_TRANSACTION_UNKNOWN' })
      await begun
      expect(await isNoted('too late')).toBe(false)
    }
    await db.query(insert('too late'))
    expect(await isNoted('too late')).toBe(true)
  })
})

describe('query', () => {
  it('keeps a connection whose statement was refused', async () => {
    const db = over(appPool())
    await db.query(insert('twice'))
    const pid = await pidOf(db)
    await expect(db.query(insert('twice'))).rejects.toMatchObject({ code: '23505' })
    expect(await pidOf(db)).toBe(pid)
  })

  it('gives up a connection that was ended or fell silent, and no later statement gets its answer', async () => {
    const pool = appPool()
    const db = over(pool, 300)
    const pid = await pidOf(db)
    await expect(
      db.query({ text: 'select pg_terminate_backend(pg_backend_pid())' }),
    ).rejects.toBeInstanceOf(Error)
    const next = await pidOf(db)
    expect(next).not.toBe(pid)
    await expect(db.query({ text: `select 'late' as answer from pg_sleep(2)` })).rejects.toThrow(
      'Query read timeout',
    )
    expect(await db.query({ text: `select 'mine' as answer` })).toEqual([{ answer: 'mine' }])
    expect(await pidOf(db)).not.toBe(next)
    expect(pool.totalCount).toBe(1)
  })

  it('may take longer where its statement says so', async () => {
    const db = over(appPool(), 100)
    expect(
      await db.query({ text: `select 'late' as answer from pg_sleep(0.3)`, withinMs: 10_000 }),
    ).toEqual([{ answer: 'late' }])
  })

  it('survives idle connections that are ended, of a pool that nobody listens to', async () => {
    const pool = appPool({ max: 3 })
    const databases = Array.from({ length: 20 }, () => over(pool))
    expect(pool.listenerCount('error')).toBe(1)
    await Promise.all(
      databases.slice(0, 3).map((db) => db.query({ text: 'select pg_sleep(0.05)' })),
    )
    await admin.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and state = 'idle' and pid <> pg_backend_pid()`,
    )
    for (let tries = 0; tries < 100 && pool.totalCount > 0; tries++) await sleep(20)
    expect(await databases[0]?.query({ text: 'select 1 as one' })).toEqual([{ one: 1 }])
  })
})

describe('a connection that ends in the bytes that say that it is ready', () => {
  it('ends nothing else: somebody hears of it before it is handed out', async () => {
    const pool = appPool({ max: 1 })
    over(pool)
    const ended = new Promise((resolve) => {
      // as when one packet holds both: the driver goes on reading before whoever asked for it runs
      pool.once('acquire', (client) => {
        queueMicrotask(() => resolve(client.listenerCount('error')))
      })
    })
    const client = await pool.connect()
    expect(await ended).toBeGreaterThan(0)
    expect(client.emit('error', new Error('terminating connection'))).toBe(true)
    client.release(true)
  })
})

describe('transaction', () => {
  it('is at READ COMMITTED, whatever the default is', async () => {
    const db = over(appPool({ options: '-c default_transaction_isolation=serializable' }))
    expect(await db.transaction((tx) => tx.query({ text: 'show transaction_isolation' }))).toEqual([
      { transaction_isolation: 'read committed' },
    ])
  })

  it('writes nothing when its work throws, and gives the connection back outside any transaction', async () => {
    const pool = appPool()
    const db = over(pool)
    const pid = await pidOf(db)
    const failure = new Error('no')
    await expect(
      db.transaction(async (tx) => {
        await tx.query(insert('thrown'))
        throw failure
      }),
    ).rejects.toBe(failure)
    expect(await isNoted('thrown')).toBe(false)
    expect(await pidOf(db)).toBe(pid)
    const client = await pool.connect()
    expect(
      (
        await client.query(
          'select pg_current_xact_id_if_assigned() as xid, now() = statement_timestamp() as outside',
        )
      ).rows,
    ).toEqual([{ xid: null, outside: true }])
    client.release()
  })

  it('is not taken for committed when it had failed and its work did not mind', async () => {
    const db = over(appPool())
    const swallowing = db.transaction(async (tx) => {
      await tx.query(insert('swallowed'))
      await tx.query({ text: 'select 1/0' }).catch(() => {})
      return 'done'
    })
    await expect(swallowing).rejects.toMatchObject({ code: 'HKL_LEDGER_CLAIM_LOST' })
    expect(await isNoted('swallowed')).toBe(false)
  })

  it('tells when SQL inside it ended it', async () => {
    const db = over(appPool())
    const ended = db.transaction((tx) => tx.query({ text: 'commit' }))
    await expect(ended).rejects.toMatchObject({ code: 'HKL_TRANSACTION_CONTROL' })
    expect(await db.query({ text: 'select 1 as one' })).toEqual([{ one: 1 }])
  })

  it('knows that nothing was written when COMMIT itself is refused', async () => {
    const db = over(appPool())
    const refused = db.transaction(async (tx) => {
      await tx.query(insert('deferred'))
      await tx.query({ text: `insert into children values ('nobody')` })
    })
    await expect(refused).rejects.toMatchObject({
      code: '23503',
      constraint: 'children_parent_fkey',
    })
    expect(await isNoted('deferred')).toBe(false)
  })

  it('writes nothing when its backend is ended under it, or when it idles too long', async () => {
    const db = over(appPool({ max: 2 }))
    const ended = db.transaction(async (tx) => {
      await tx.query(insert('ended'))
      const [row] = await tx.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' })
      await admin.query('select pg_terminate_backend($1)', [row?.pid])
      await sleep(50)
      await tx.query({ text: 'select 1' })
    })
    await expect(ended).rejects.toBeInstanceOf(Error)
    const idle = db.transaction(
      async (tx) => {
        await tx.query(insert('ended'))
        await sleep(300)
      },
      { setup: 'set local idle_in_transaction_session_timeout = 100' },
    )
    await expect(idle).rejects.toBeInstanceOf(Error)
    expect(await isNoted('ended')).toBe(false)
    expect(await db.query({ text: 'select 1 as one' })).toEqual([{ one: 1 }])
  })

  it('is unknown when what follows the commit fails, and is committed', async () => {
    const pool = appPool()
    const db = over(pool)
    const failing = db.transaction((tx) => tx.query(insert('after')), {
      afterCommit: () => Promise.reject(new Error('died')),
    })
    await expect(failing).rejects.toMatchObject({ code: 'HKL_TRANSACTION_UNKNOWN' })
    expect(await isNoted('after')).toBe(true)
    expect(pool.idleCount).toBe(1)
  })
})

describe('a COMMIT whose answer is lost', () => {
  let proxy: CommitProxy
  beforeAll(async () => {
    proxy = await createCommitProxy({ target: database.url })
  })
  afterAll(() => proxy.close())

  it.each([
    ['drop-before', false],
    ['drop-after', true],
    ['black-hole', true],
  ] as const)('is unknown to both kinds of statement: %s', async (mode, committed) => {
    const pool = createPool({ connectionString: proxy.url, max: 2, statementTimeoutMs: 500 })
    opened.push(pool)
    const db = over(pool, 1000)
    const id = `lost ${mode}`
    await db.query({ text: 'select 1' })
    let fault = proxy.arm({ mode })
    await expect(db.transaction((tx) => tx.query(insert(id)))).rejects.toMatchObject({
      code: 'HKL_TRANSACTION_UNKNOWN',
    })
    await fault.struck
    expect(await isNoted(id)).toBe(committed)
    fault = proxy.arm({ mode })
    await expect(db.query(insert(`${id} alone`))).rejects.toBeInstanceOf(Error)
    await fault.struck
    expect(await isNoted(`${id} alone`)).toBe(committed)
    expect(await db.query({ text: 'select 1 as one' })).toEqual([{ one: 1 }])
  })
})

describe('a commit that no standby confirmed', () => {
  it('is unknown, and a warning of somebody’s own function is not', async () => {
    const server = await startPostgresForCrashTest()
    const pool = new pg.Pool({ connectionString: server.url, max: 2 })
    pool.on('error', () => {})
    const db = over(pool)
    try {
      await pool.query('create table notes (note_id text primary key)')
      await pool.query(
        `create function warn() returns integer language plpgsql as $$ begin raise warning 'look'; return 1; end $$`,
      )
      expect(await db.query({ text: 'select warn()' })).toEqual([{ warn: 1 }])
      expect(await db.transaction((tx) => tx.query({ text: 'select warn()' }))).toEqual([
        { warn: 1 },
      ])
      await pool.query(`alter system set synchronous_standby_names = 'nobody'`)
      await pool.query('select pg_reload_conf()')
      await sleep(200)
      const attempts = [
        db.query(insert('alone')),
        db.transaction((tx) => tx.query(insert('together'))),
      ]
      const verdicts = Promise.allSettled(attempts)
      const watcher = new pg.Client({ connectionString: server.url })
      await watcher.connect()
      for (let canceled = 0, tries = 0; canceled < 2 && tries < 200; tries++) {
        const { rowCount } = await watcher.query(
          `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`,
        )
        canceled += rowCount ?? 0
        await sleep(50)
      }
      const codes = (await verdicts).map((each) =>
        each.status === 'rejected' ? (each.reason as { code?: string }).code : 'acknowledged',
      )
      expect(codes).toEqual(['HKL_TRANSACTION_UNKNOWN', 'HKL_TRANSACTION_UNKNOWN'])
      // they are there, and a crash of this server could still lose them
      expect((await watcher.query('select 1 from notes')).rowCount).toBe(2)
      await watcher.end()
    } finally {
      await pool.end()
      await server.remove()
    }
  })
})
