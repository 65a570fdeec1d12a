import { afterEach, describe, expect, it } from 'vitest'
import type { Step } from '../../src/core/failpoints.ts'
import { installFailpoints } from '../../src/core/failpoints.ts'
import type { CommitFaultMode, CommitProxy } from '../../src/drill/proxy/commit-proxy.ts'
import { createCommitProxy } from '../../src/drill/proxy/commit-proxy.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import type { BenchOptions, ReceiverBench } from './receiver-bench.ts'
import {
  createReceiverBench,
  eventBody,
  heard,
  receiverOver,
  signed,
  storedEvents,
} from './receiver-bench.ts'

const closing: (() => Promise<void>)[] = []

afterEach(async () => {
  installFailpoints(null)
  for (const close of closing.splice(0).reverse()) await close()
})

async function create(options: BenchOptions = {}): Promise<ReceiverBench> {
  const bench = await createReceiverBench(options)
  closing.push(bench.close)
  return bench
}

/** A receiver whose way to the database is a proxy. */
async function createBehindProxy(requestTimeoutMs: number): Promise<{
  proxy: CommitProxy
  receiver: ReturnType<typeof receiverOver>
  rows: (text: string) => Promise<unknown[]>
}> {
  const database = await createHookledgerDatabase()
  const proxy = await createCommitProxy({ target: database.url })
  const pool = database.pool({ connectionString: proxy.url, query_timeout: 3000 })
  const receiver = receiverOver(pool, undefined, { limits: { requestTimeoutMs } })
  closing.push(async () => {
    await receiver.stop()
    await proxy.close()
    await database.drop()
  })
  const admin = database.pool({ max: 1 })
  return { proxy, receiver, rows: async (text) => (await admin.query(text)).rows }
}

describe('a commit whose outcome is not known', () => {
  it.each<{ mode: CommitFaultMode; deliveries: number }>([
    { mode: 'drop-before', deliveries: 1 },
    { mode: 'drop-after', deliveries: 2 },
  ])('is resolved by the same batch on a new connection ($mode)', async ({ mode, deliveries }) => {
    const { proxy, receiver, rows } = await createBehindProxy(10_000)
    await receiver.ingest(signed(eventBody('evt_warm')))
    const fault = proxy.arm({ mode, match: /inbox_events/ })
    const outcome = await receiver.ingest(signed(eventBody('evt_unknown')))
    expect((await fault.struck).committed).toBe(mode === 'drop-after')
    expect(storedEvents(outcome)).toMatchObject([{ eventId: 'evt_unknown' }])
    expect(
      await rows(`select 1 from hookledger.inbox_events where event_id = 'evt_unknown'`),
    ).toHaveLength(1)
    expect(
      await rows(`select 1 from hookledger.deliveries where event_id = 'evt_unknown'`),
    ).toHaveLength(deliveries)
    expect(
      await rows(
        `select 1 from hookledger.inbox_ready r join hookledger.inbox_events e using (event_key) where e.event_id = 'evt_unknown'`,
      ),
    ).toHaveLength(1)
  })

  it('is 503 when the connection fell silent, although it was committed, and a duplicate afterwards', async () => {
    const { proxy, receiver, rows } = await createBehindProxy(1000)
    await receiver.ingest(signed(eventBody('evt_warm')))
    const fault = proxy.arm({ mode: 'black-hole', match: /inbox_events/ })
    expect(await receiver.ingest(signed(eventBody('evt_silent')))).toMatchObject({ status: 503 })
    expect((await fault.struck).committed).toBe(true)
    expect(storedEvents(await receiver.ingest(signed(eventBody('evt_silent'))))).toMatchObject([
      { duplicate: true },
    ])
    expect(
      await rows(`select 1 from hookledger.inbox_events where event_id = 'evt_silent'`),
    ).toHaveLength(1)
  })

  it('does not keep other requests waiting behind a silent connection', async () => {
    const { proxy, receiver } = await createBehindProxy(20_000)
    await receiver.ingest(signed(eventBody('evt_warm')))
    const fault = proxy.arm({ mode: 'black-hole', match: /inbox_events/ })
    let silentAnswered = false
    const silent = receiver.ingest(signed(eventBody('evt_silent'))).finally(() => {
      silentAnswered = true
    })
    await fault.struck
    await new Promise((resolve) => setTimeout(resolve, 100))
    storedEvents(await receiver.ingest(signed(eventBody('evt_other'))))
    expect(silentAnswered).toBe(false)
    expect(await silent).toMatchObject({ status: 200 })
  })
})

describe('failures at the named steps', () => {
  it.each<Step>(['R4', 'R5', 'R6', 'R7', 'R8'])(
    'store once and answer 200 when %s throws once',
    async (step) => {
      const bench = await create()
      let thrown = 0
      installFailpoints((reached) => {
        if (reached === step && thrown++ === 0) throw new Error(`failpoint ${step}`)
      })
      storedEvents(await bench.receiver.ingest(signed(eventBody('evt_step'))))
      expect(thrown).toBeGreaterThan(1)
      expect(await bench.count('inbox_events')).toBe(1)
      expect(await bench.count('inbox_ready')).toBe(1)
    },
  )

  it('answers 503 and stores nothing when R3 throws', async () => {
    const bench = await create()
    installFailpoints((reached) => {
      if (reached === 'R3') throw new Error('failpoint R3')
    })
    expect(await bench.receiver.ingest(signed(eventBody('evt_step')))).toMatchObject({
      status: 503,
    })
    installFailpoints(null)
    expect(await bench.count('inbox_events')).toBe(0)
  })

  it('answers 503 when every try fails, within its time, and recovers', async () => {
    const bench = await create({ limits: { requestTimeoutMs: 800 } })
    installFailpoints((reached) => {
      if (reached === 'R8') throw new Error('failpoint R8')
    })
    expect(await bench.receiver.ingest(signed(eventBody('evt_step')))).toMatchObject({
      status: 503,
      code: 'HKL_INBOX_UNAVAILABLE',
      retryAfterSeconds: 5,
    })
    installFailpoints(null)
    expect(storedEvents(await bench.receiver.ingest(signed(eventBody('evt_step'))))).toMatchObject([
      { duplicate: true },
    ])
    expect(await bench.count('inbox_events')).toBe(1)
  })
})

describe('a database that refuses', () => {
  it('parts the one delivery that cannot be written from its batch', async () => {
    const bench = await create()
    await bench.rows(
      `alter table hookledger.inbox_events add constraint no_poison check (event_id <> 'evt_poison')`,
    )
    const rejected = heard(bench.signals, 'inbox.request.rejected')
    const ids = Array.from({ length: 90 }, (_, n) => (n === 37 ? 'evt_poison' : `evt_${n}`))
    const outcomes = await Promise.all(
      ids.map((id) => bench.receiver.ingest(signed(eventBody(id)))),
    )
    expect(outcomes.filter(({ status }) => status === 200)).toHaveLength(89)
    expect(outcomes[37]).toMatchObject({ status: 503, code: 'HKL_INBOX_UNAVAILABLE' })
    expect(rejected).toEqual([{ source: 'stripe', reason: 'unstorable', status: 503 }])
    expect(await bench.count('inbox_events')).toBe(89)
  })

  it('answers 503 at once while a table is missing, and 200 when it is back', async () => {
    const bench = await create()
    await bench.rows('alter table hookledger.deliveries rename to elsewhere')
    expect(await bench.receiver.ingest(signed(eventBody('evt_broken')))).toMatchObject({
      status: 503,
    })
    await bench.rows('alter table hookledger.elsewhere rename to deliveries')
    expect(await bench.receiver.ingest(signed(eventBody('evt_broken')))).toMatchObject({
      status: 200,
    })
  })

  it('answers 503 while the database is read-only, and finds the way back alone', async () => {
    const bench = await create({ limits: { requestTimeoutMs: 1000 } })
    await bench.rows(`alter database ${bench.database.name} set default_transaction_read_only = on`)
    expect(await bench.receiver.ingest(signed(eventBody('evt_standby')))).toMatchObject({
      status: 503,
    })
    await bench.database
      .pool({ options: '-c default_transaction_read_only=off' })
      .query(`alter database ${bench.database.name} reset default_transaction_read_only`)
    expect(await bench.receiver.ingest(signed(eventBody('evt_standby')))).toMatchObject({
      status: 200,
    })
    expect(await bench.count('inbox_events')).toBe(1)
  })

  it('stores the batch again when its backend was terminated in the middle', async () => {
    const bench = await create()
    await bench.receiver.ingest(signed(eventBody('evt_warm')))
    const killed = new Set<number>()
    installFailpoints(async (step) => {
      if (step !== 'R4' || killed.size > 0) return
      const backends = await bench.rows<{ pid: number }>(
        `select pid, pg_terminate_backend(pid) from pg_stat_activity
         where datname = $1 and pid <> pg_backend_pid() and query like 'with settings%'`,
        [bench.database.name],
      )
      for (const { pid } of backends) killed.add(pid)
    })
    storedEvents(await bench.receiver.ingest(signed(eventBody('evt_terminated'))))
    expect(killed.size).toBeGreaterThan(0)
    expect(await bench.count('inbox_events')).toBe(2)
  })
})

describe('too much to do', () => {
  it('answers 503 when no connection is free, and 200 when one is', async () => {
    const bench = await create({ pool: { max: 1 }, limits: { requestTimeoutMs: 1000 } })
    const taken = await bench.pool.connect()
    expect(await bench.receiver.ingest(signed(eventBody('evt_full')))).toMatchObject({
      status: 503,
    })
    taken.release()
    expect(await bench.receiver.ingest(signed(eventBody('evt_full')))).toMatchObject({
      status: 200,
    })
  })

  it('refuses what the queue cannot hold at once, and stores what it holds', async () => {
    const bench = await create({
      pool: { max: 1 },
      limits: { intakeQueue: 5, requestTimeoutMs: 60_000 },
    })
    const taken = await bench.pool.connect()
    const waiting = Array.from({ length: 5 }, (_, n) =>
      bench.receiver.ingest(signed(eventBody(`evt_${n}`))),
    )
    const refused = await bench.receiver.ingest(signed(eventBody('evt_too_many')))
    expect(refused).toMatchObject({ status: 503, code: 'HKL_INBOX_UNAVAILABLE' })
    taken.release()
    for (const outcome of waiting) storedEvents(await outcome)
    expect(await bench.count('inbox_events')).toBe(5)
  })

  it('answers what was taken before it stops', async () => {
    const bench = await create()
    const outcomes = Array.from({ length: 50 }, (_, n) =>
      bench.receiver.ingest(signed(eventBody(`evt_${n}`))),
    )
    const stopped = bench.receiver.stop()
    for (const outcome of outcomes) storedEvents(await outcome)
    await stopped
    expect(await bench.count('inbox_events')).toBe(50)
  })
})
