import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { createDatabase } from '../../src/postgres/pool.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import type { CrashPostgres } from '../support/crash-postgres.ts'
import { startPostgresForCrashTest } from '../support/crash-postgres.ts'
import { oncePool } from '../support/once-pool.ts'
import { queryOnce } from '../support/once-query.ts'
import { eventBody, receiverOver, signed, storedEvents, until } from './receiver-bench.ts'

const closing: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function start(settings: Record<string, string> = {}): Promise<CrashPostgres> {
  const server = await startPostgresForCrashTest({ settings })
  closing.push(() => server.remove())
  await oncePool(server.url, (pool) =>
    migrate(createDatabase(pool, 'hookledger'), { environment: 'test', partitionsAheadDays: 1 }),
  )
  return server
}

function openPool(server: CrashPostgres): pg.Pool {
  const pool = new pg.Pool({ connectionString: server.url, max: 4, connectionTimeoutMillis: 1000 })
  pool.on('error', () => {})
  closing.push(() => pool.end())
  return pool
}

async function storedIds(server: CrashPostgres): Promise<string[]> {
  const rows = await queryOnce<{ event_id: string }>(
    server.url,
    'select event_id from hookledger.inbox_events order by event_key',
  )
  return rows.map(({ event_id }) => event_id)
}

/** Nothing flushes by itself: what a commit does not flush, a crash takes. */
const lazy = { synchronous_commit: 'off', wal_writer_delay: '10s' }

describe('an acknowledged delivery', () => {
  it('survives a crash of the server although every connection commits without flushing', async () => {
    const server = await start(lazy)
    const receiver = receiverOver(openPool(server))
    storedEvents(await receiver.ingest(signed(eventBody('evt_kept'))))
    await queryOnce(
      server.url,
      `insert into hookledger.rejections (source, reason) values ('lost', 'lost')`,
    )
    await server.kill()
    await server.restart()
    expect(await storedIds(server)).toEqual(['evt_kept'])
    // the control: without the flush of its own it would have been lost
    expect(await queryOnce(server.url, 'select 1 from hookledger.rejections')).toEqual([])
    await receiver.stop()
  })

  it('is acknowledged as a duplicate only after a flush, so that the first one cannot be lost any more', async () => {
    const server = await start(lazy)
    const pool = openPool(server)
    const receiver = receiverOver(pool)
    storedEvents(await receiver.ingest(signed(eventBody('evt_warm'))))
    // somebody stored the first delivery without flushing, and died before it answered
    await queryOnce(
      server.url,
      `with event as (
         insert into hookledger.inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
         select source_id, 'evt_twice', 't', sha256('{}'), 2 from hookledger.sources returning event_key)
       insert into hookledger.inbox_ready (event_key, received_on) select event_key, current_date from event`,
    )
    expect(storedEvents(await receiver.ingest(signed(eventBody('evt_twice'))))).toMatchObject([
      { duplicate: true },
    ])
    await server.kill()
    await server.restart()
    expect(await storedIds(server)).toEqual(['evt_warm', 'evt_twice'])
    await receiver.stop()
  })

  it('is not acknowledged when the wait for a standby was canceled', async () => {
    const server = await start()
    const pool = openPool(server)
    const receiver = receiverOver(pool, undefined, { limits: { requestTimeoutMs: 3000 } })
    storedEvents(await receiver.ingest(signed(eventBody('evt_warm'))))
    await queryOnce(server.url, `alter system set synchronous_standby_names = 'nobody'`)
    await queryOnce(server.url, 'select pg_reload_conf()')
    let canceled = 0
    let answered = false
    const outcome = receiver.ingest(signed(eventBody('evt_standby'))).finally(() => {
      answered = true
    })
    while (!answered) {
      const waiting = await queryOnce(
        server.url,
        `select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'`,
      )
      canceled += waiting.length
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    expect(canceled).toBeGreaterThan(0)
    expect(await outcome).toMatchObject({ status: 503 })
    await queryOnce(server.url, 'alter system reset synchronous_standby_names')
    await queryOnce(server.url, 'select pg_reload_conf()')
    await until(
      async () => (await receiver.ingest(signed(eventBody('evt_standby')))).status === 200,
    )
    expect(await storedIds(server)).toEqual(['evt_warm', 'evt_standby'])
    await receiver.stop()
  })
})

describe('a server that is gone', () => {
  it('makes the receiver answer 503, and 200 by itself when it is back, with nothing acknowledged lost', async () => {
    const server = await start()
    const receiver = receiverOver(openPool(server), undefined, {
      limits: { requestTimeoutMs: 2000 },
    })
    const acknowledged = new Set<string>()
    const deliver = async (id: string): Promise<number> => {
      const { status } = await receiver.ingest(signed(eventBody(id)))
      if (status === 200) acknowledged.add(id)
      return status
    }
    expect(await Promise.all(['a', 'b', 'c'].map(deliver))).toEqual([200, 200, 200])
    const during = Promise.all(Array.from({ length: 100 }, (_, n) => deliver(`during_${n}`)))
    await server.kill()
    await during
    expect(await deliver('down')).toBe(503)
    await server.restart()
    await until(async () => (await deliver('down')) === 200)
    const stored = new Set(await storedIds(server))
    expect([...acknowledged].filter((id) => !stored.has(id))).toEqual([])
    expect(acknowledged.has('down')).toBe(true)
    await receiver.stop()
  })

  it('loses nothing acknowledged when one backend is killed and all connections with it', async () => {
    const server = await start()
    const receiver = receiverOver(openPool(server))
    storedEvents(await receiver.ingest(signed(eventBody('evt_warm'))))
    const [backend] = await queryOnce<{ pid: number }>(
      server.url,
      `select pid from pg_stat_activity where query like 'with settings%' and pid <> pg_backend_pid()`,
    )
    const outcomes = Array.from({ length: 50 }, (_, n) =>
      receiver.ingest(signed(eventBody(`evt_${n}`))),
    )
    await server.killBackend(backend?.pid ?? 0)
    const statuses = (await Promise.all(outcomes)).map(({ status }) => status)
    const stored = new Set(await storedIds(server))
    statuses.forEach((status, n) => {
      if (status === 200) expect(stored.has(`evt_${n}`)).toBe(true)
    })
    expect(statuses).toContain(200)
    await receiver.stop()
  })
})
