import { afterEach, describe, expect, it } from 'vitest'
import { receiverOver } from './receiver-bench.ts'
import type { BenchOptions, ReceiverBench } from './receiver-bench.ts'
import { createReceiverBench, eventBody, signed, storedEvents, until } from './receiver-bench.ts'

const benches: ReceiverBench[] = []

afterEach(async () => {
  for (const bench of benches.splice(0)) await bench.close()
})

async function create(options: BenchOptions = {}): Promise<ReceiverBench> {
  const bench = await createReceiverBench(options)
  benches.push(bench)
  return bench
}

/** Another transaction that has inserted the identity and not said yet how it ends. */
async function holdIdentity(
  bench: ReceiverBench,
  eventId: string,
): Promise<{ end(how: 'commit' | 'rollback'): Promise<void> }> {
  // the namespace has its row once anything was received
  await bench.receiver.ingest(signed(eventBody(`evt_before_${eventId}`)))
  const holder = await bench.database.pool({ max: 1 }).connect()
  await holder.query('begin')
  await holder.query(
    `insert into hookledger.inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
     select source_id, $1, 'held', sha256(''), 0 from hookledger.sources`,
    [eventId],
  )
  return {
    end: async (how) => {
      await holder.query(how)
      holder.release()
    },
  }
}

/** Resolves when a backend of the bench's database waits for a transaction. */
async function someoneWaits({ database, rows }: ReceiverBench): Promise<void> {
  await until(async () => {
    const [row] = await rows<{ n: number }>(
      `select count(*)::int as n from pg_locks l join pg_stat_activity a using (pid)
       where not l.granted and a.datname = $1`,
      [database.name],
    )
    return (row?.n ?? 0) > 0
  })
}

describe('the race on the inbox key', () => {
  it('stores the second delivery when the transaction of the first rolls back', async () => {
    const bench = await create()
    const first = await holdIdentity(bench, 'evt_race')
    const second = bench.receiver.ingest(signed(eventBody('evt_race')))
    await someoneWaits(bench)
    await first.end('rollback')
    expect(storedEvents(await second)).toMatchObject([{ eventId: 'evt_race', duplicate: false }])
    expect(
      await bench.rows(
        `select event_type from hookledger.inbox_events where event_id = 'evt_race'`,
      ),
    ).toEqual([{ event_type: 'checkout.session.completed' }])
  })

  it('acknowledges the second delivery as a duplicate when the first commits', async () => {
    const bench = await create()
    const first = await holdIdentity(bench, 'evt_race')
    const second = bench.receiver.ingest(signed(eventBody('evt_race')))
    await someoneWaits(bench)
    await first.end('commit')
    const [event] = storedEvents(await second)
    expect(event).toMatchObject({ duplicate: true })
    expect(event?.eventKey).not.toBeNull()
    expect(
      await bench.rows(`select event_id from hookledger.deliveries where event_id = 'evt_race'`),
    ).toHaveLength(1)
  })

  it('answers 503 while the first neither commits nor rolls back, and takes the event afterwards', async () => {
    const bench = await create({ limits: { requestTimeoutMs: 1500 } })
    const first = await holdIdentity(bench, 'evt_race')
    expect(await bench.receiver.ingest(signed(eventBody('evt_race')))).toMatchObject({
      status: 503,
    })
    await first.end('rollback')
    expect(await bench.receiver.ingest(signed(eventBody('evt_race')))).toMatchObject({
      status: 200,
    })
  })

  it('does not let one held identity hold up the requests that came with it', async () => {
    const bench = await create()
    const first = await holdIdentity(bench, 'evt_held')
    let heldAnswered = false
    const held = bench.receiver.ingest(signed(eventBody('evt_held'))).finally(() => {
      heldAnswered = true
    })
    const others = Array.from({ length: 60 }, (_, n) =>
      bench.receiver.ingest(signed(eventBody(`evt_${n}`))),
    )
    for (const other of others) storedEvents(await other)
    expect(heldAnswered).toBe(false)
    await first.end('rollback')
    expect(storedEvents(await held)).toMatchObject([{ duplicate: false }])
  })
})

describe('a retry storm', () => {
  it('keeps one of each of 100 ids that come 50 times, shuffled, through three receivers, without a deadlock', async () => {
    const bench = await create()
    const receivers = [
      bench.receiver,
      receiverOver(bench.database.pool()),
      receiverOver(bench.database.pool()),
    ]
    const ids = shuffled(Array.from({ length: 5000 }, (_, n) => `evt_${n % 100}`))
    const outcomes = await Promise.all(
      ids.map((id, n) => (receivers[n % 3] ?? bench.receiver).ingest(signed(eventBody(id)))),
    )
    const events = outcomes.flatMap(storedEvents)
    expect(events).toHaveLength(5000)
    expect(events.filter(({ duplicate }) => !duplicate)).toHaveLength(100)
    const keys = new Map(events.map(({ eventId, eventKey }) => [eventId, eventKey]))
    expect(events.every(({ eventId, eventKey }) => keys.get(eventId) === eventKey)).toBe(true)
    expect(await bench.count('inbox_events')).toBe(100)
    expect(await bench.count('payloads')).toBe(100)
    expect(await bench.count('inbox_ready')).toBe(100)
    expect(await bench.count('deliveries')).toBe(5000)
    const [stats] = await bench.rows<{ deadlocks: string }>(
      'select deadlocks from pg_stat_database where datname = $1',
      [bench.database.name],
    )
    expect(stats?.deadlocks).toBe('0')
    for (const receiver of receivers.slice(1)) await receiver.stop()
  })
})

/** Fisher and Yates, with a generator of fixed seed: a failure comes again. */
function shuffled<T>(items: T[]): T[] {
  let state = 20_260_731
  const random = (): number => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647
  for (let at = items.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1))
    const [a, b] = [items[at], items[other]]
    if (a !== undefined && b !== undefined) [items[at], items[other]] = [b, a]
  }
  return items
}
