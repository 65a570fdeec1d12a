import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { resolveOptions } from '../../src/compose/options.ts'
import { runUpkeep, upkeepOnArrival } from '../../src/compose/upkeep.ts'
import { defaultLimits } from '../../src/core/limits.ts'
import { createSignals } from '../../src/core/signals.ts'
import { replayEvent } from '../../src/inbox/replay.ts'
import { partsOf } from '../../src/hookledger.ts'
import { checkoutSessionCompleted, stripeEvent } from '../../src/testing/stripe-events.ts'
import { createShop, type Shop } from '../support/shop.ts'

let shop: Shop
beforeEach(async () => {
  shop = await createShop()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await shop.close()
})

const by = { reason: 'tested', actor: 'test' }
const smallTables = [
  'inbox_ready',
  'inbox_delayed',
  'inbox_suspects',
  'inbox_deferred',
  'inbox_dead',
  'inbox_ignored',
]

async function one<T>(text: string, values: unknown[] = []): Promise<T> {
  const [row] = await shop.rows<{ value: T }>(`select (${text}) as value`, values)
  return row?.value as T
}

/** Moves everything that was received into the past, as if it had come then. */
async function backdate(days: number): Promise<string> {
  const day = await one<string>(`((now() at time zone 'UTC')::date - $1::integer)::text`, [days])
  const part = `payloads_${day.replaceAll('-', '')}`
  await shop.rows(
    `create table ${part} partition of payloads for values from ('${day}') to (date '${day}' + 1)`,
  )
  await shop.rows(
    `update inbox_events set received_at = received_at - make_interval(days => ${days})`,
  )
  await shop.rows(`update payloads set received_on = '${day}'`)
  for (const table of smallTables) await shop.rows(`update ${table} set received_on = '${day}'`)
  return part
}

async function deliverOrder(order: string): Promise<string> {
  const event = checkoutSessionCompleted({ order })
  expect(await shop.deliver(event)).toBe(200)
  return event.id
}

const keyOf = (eventId: string): Promise<string> =>
  one<string>('select event_key from inbox_events where event_id = $1', [eventId])

/** A delivered event, taken from the ready list into another state. */
async function put(
  eventId: string,
  table: string,
  more: Readonly<Record<string, string>>,
): Promise<void> {
  const columns = Object.keys(more)
  await shop.rows(
    `with taken as (delete from inbox_ready where event_key = $1 returning event_key, received_on)
     insert into ${table} (event_key, received_on${columns.map((name) => `, ${name}`).join('')})
     select event_key, received_on${columns.map((name) => `, ${more[name]}`).join('')} from taken`,
    [await keyOf(eventId)],
  )
}

const partitions = (): Promise<string[]> =>
  shop
    .rows<{ name: string }>(
      `select c.relname as name from pg_inherits i join pg_class c on c.oid = inhrelid where inhparent = 'payloads'::regclass order by 1`,
    )
    .then((rows) => rows.map((row) => row.name))

describe('make_payload_partitions', () => {
  it('makes today and the days ahead once, each with its own key', async () => {
    const before = (await partitions()).length
    expect(await one('select make_payload_partitions(35)')).toBe(36 - (before - 1))
    expect(await one('select make_payload_partitions(35)')).toBe(0)
    expect(await partitions()).toHaveLength(37)
    expect(await one('select days_ahead from payload_state()')).toBe(36)
    expect(
      await one(
        `select string_agg(conname, ',') from pg_constraint where contype = 'p' and conrelid = (select max(inhrelid) from pg_inherits where inhparent = 'payloads'::regclass)`,
      ),
    ).toMatch(/^payloads_\d{8}_pkey$/)
  })

  it('is run by many at once without harm', async () => {
    const made = await Promise.all(
      Array.from({ length: 8 }, () => one<number>('select make_payload_partitions(20)')),
    )
    expect(made.reduce((sum, n) => sum + n, 0)).toBe(17)
    expect(await partitions()).toHaveLength(22)
  })

  it('moves what went to the default partition into its day, of today and of days past', async () => {
    const [today, past] = [await deliverOrder('1'), await deliverOrder('2')]
    const days = await shop.rows<{ day: string }>(
      `select ((now() at time zone 'UTC')::date - n)::text as day from generate_series(0, 3, 3) n`,
    )
    await shop.rows(`drop table payloads_${days[0]?.day.replaceAll('-', '')}`)
    await shop.rows(
      `insert into payloads select event_key, $2, 'body' from inbox_events where event_id = $1`,
      [today, days[0]?.day],
    )
    await shop.rows(
      `insert into payloads select event_key, $2, 'body' from inbox_events where event_id = $1`,
      [past, days[1]?.day],
    )
    expect(await one('select has_strays from payload_state()')).toBe(true)
    await shop.rows('select make_payload_partitions(3)')
    expect(await one('select has_strays from payload_state()')).toBe(false)
    expect(
      await one(
        `select count(*)::int from payloads where tableoid <> 'payloads_default'::regclass`,
      ),
    ).toBe(2)
  })

  it('refuses and loses no delivery while it moves the strays of today', async () => {
    const today = await one<string>(`'payloads_' || to_char(now() at time zone 'UTC', 'YYYYMMDD')`)
    let delivered = 0
    for (let round = 0; round < 5; round++) {
      await shop.rows(`alter table payloads detach partition ${today}`)
      await shop.rows(`drop table ${today}`)
      let stop = false
      const sender = (async () => {
        while (!stop) {
          await deliverOrder(`${round}-${delivered}`)
          delivered++
        }
      })()
      await sleep(30)
      for (
        let tries = 0;
        tries < 50 && (await one<number>('select make_payload_partitions(3)')) === 0;
        tries++
      );
      stop = true
      await sender
      expect(await partitions()).toContain(today)
      expect(await one('select has_strays from payload_state()')).toBe(false)
      await shop.rows(`create table if not exists kept as select * from payloads limit 0`)
      await shop.rows('insert into kept select * from payloads')
    }
    expect(await one('select count(*)::int from inbox_events')).toBe(delivered)
    expect(await one('select count(distinct event_key)::int from kept')).toBe(delivered)
  })
})

describe('drop_payload_partitions', () => {
  it('drops what is finished and keeps the body of everything that is not, wherever it waits', async () => {
    const processed = await deliverOrder('1')
    const foreign = stripeEvent('plan.deleted' as never, { id: 'plan_1' } as never) as {
      id: string
    }
    await shop.deliver(foreign)
    await shop.work()
    const [ready, delayed, suspect, deferred, dead, limbo] = await Promise.all(
      ['2', '3', '4', '5', '6', '7'].map(deliverOrder),
    )
    await put(delayed ?? '', 'inbox_delayed', {
      attempts: '1',
      due_at: `now() + interval '1 day'`,
      last_error: `'x'`,
    })
    await put(suspect ?? '', 'inbox_suspects', { attempts: '1' })
    await put(deferred ?? '', 'inbox_deferred', {
      attempts: '1',
      deadline_at: 'now()',
      waits_for: `'x'`,
      at_deadline: `'finding'`,
    })
    await put(dead ?? '', 'inbox_dead', { attempts: '10', reason: `'x'` })
    await shop.rows('delete from inbox_ready where event_key = $1', [await keyOf(limbo ?? '')])
    const part = await backdate(40)

    expect(await runUpkeep(shop.db, defaultLimits)).toMatchObject({
      bodiesHeld: 6,
      partitionsDropped: 1,
    })
    expect(await partitions()).not.toContain(part)
    expect(await one('select count(*)::int from payloads')).toBe(0)
    expect(await one('select held::int from payload_state()')).toBe(6)

    // each of them still goes its way
    expect(await replayEvent(shop.db, { id: delayed ?? '' }, by)).toMatchObject({ from: 'delayed' })
    expect(await replayEvent(shop.db, { id: deferred ?? '' }, by)).toMatchObject({
      from: 'deferred',
    })
    expect(await replayEvent(shop.db, { id: dead ?? '' }, by)).toMatchObject({ from: 'dead' })
    await shop.work()
    for (const id of [ready, delayed, suspect, deferred, dead]) {
      expect(await one('select state from webhook_inbox where event_id = $1', [id])).toBe(
        'processed',
      )
    }
    // what is finished has no body any more, and says so
    await expect(replayEvent(shop.db, { id: foreign.id }, by)).rejects.toMatchObject({
      code: 'HKL_INBOX_PAYLOAD_EXPIRED',
    })
    expect(await replayEvent(shop.db, { id: processed }, by)).toMatchObject({ outcome: 'recorded' })
    // and neither has what has been finished since
    await runUpkeep(shop.db, defaultLimits)
    expect(await shop.rows('select event_key from payloads_held')).toEqual([
      { event_key: await keyOf(limbo ?? '') },
    ])
  })

  it('keeps what becomes unfinished between the copy and the drop', async () => {
    const foreign = stripeEvent('plan.deleted' as never, { id: 'plan_1' } as never) as {
      id: string
    }
    await shop.deliver(foreign)
    await shop.work()
    await backdate(40)
    const key = await keyOf(foreign.id)
    // held back by somebody who wakes the ignored event at this moment
    const waking = await shop.pool.connect()
    await waking.query('begin')
    await waking.query('select from payloads where event_key = $1', [key])
    expect(await one('select hold_payloads(30, 10)')).toBe(0)
    const dropping = one('select drop_payload_partitions(30)')
    await waking.query(
      'with gone as (delete from inbox_ignored returning event_key, received_on) insert into inbox_ready (event_key, received_on) select * from gone',
    )
    await waking.query('commit')
    waking.release()
    await dropping
    await runUpkeep(shop.db, defaultLimits)
    expect(await one(`select convert_from(read_payload($1, 'r', 'a'), 'UTF8')`, [key])).toContain(
      'plan.deleted',
    )
  })

  it('leaves a day with many unfinished events to later calls, and ends with it', async () => {
    await shop.rows(
      `insert into sources (provider, provider_account, environment) values ('stripe', 'many', 'test')`,
    )
    await shop.rows(`insert into inbox_events (source_id, event_id, event_type, body_sha256, body_bytes)
      select (select max(source_id) from sources), 'evt_' || n, 'x', '', 1 from generate_series(1, 4500) n`)
    await shop.rows(
      `insert into payloads select event_key, (now() at time zone 'UTC')::date, 'b' from inbox_events`,
    )
    await backdate(40)
    expect([
      await one('select drop_payload_partitions(30)'),
      await one('select drop_payload_partitions(30)'),
    ]).toEqual([0, 0])
    expect(await one('select drop_payload_partitions(30)')).toBe(1)
    expect(await one('select count(*)::int from payloads_held')).toBe(4500)
  })

  it('gives way to a reader, who stalls no delivery, and is done once the reader has left', async () => {
    await deliverOrder('1')
    await shop.work()
    const part = await backdate(40)
    const reader = await shop.pool.connect()
    await reader.query('begin')
    await reader.query('select count(*) from payloads')
    const upkeep = runUpkeep(shop.db, defaultLimits)
    const statuses = await Promise.all(
      ['2', '3', '4', '5'].map((order) => shop.deliver(checkoutSessionCompleted({ order }))),
    )
    expect(statuses).toEqual([200, 200, 200, 200])
    expect(await upkeep).toMatchObject({ partitionsDropped: 0 })
    expect(await partitions()).toContain(part)
    await reader.query('commit')
    reader.release()
    expect(await runUpkeep(shop.db, defaultLimits)).toMatchObject({ partitionsDropped: 1 })
    expect(await one('select count(*)::int from inbox_events')).toBe(5)
  })

  it('is run by many at once without harm', async () => {
    for (const days of [40, 41, 42, 43]) {
      await deliverOrder(String(days))
      await shop.work()
      await backdate(days)
    }
    const reports = await Promise.all(
      Array.from({ length: 6 }, () => runUpkeep(shop.db, defaultLimits)),
    )
    const dropped = reports.reduce((sum, report) => sum + report.partitionsDropped, 0)
    expect(dropped + (await runUpkeep(shop.db, defaultLimits)).partitionsDropped).toBe(4)
  })

  it('drops nothing of today or of days to come, and nothing for a number that is none', async () => {
    const before = await partitions()
    expect(await one('select drop_payload_partitions(0)')).toBe(0)
    await expect(shop.rows('select drop_payload_partitions(-5)')).rejects.toMatchObject({
      code: '22023',
    })
    await expect(shop.rows('select drop_payload_partitions(null)')).rejects.toMatchObject({
      code: '22023',
    })
    expect(await partitions()).toEqual(before)
  })
})

describe('drop_identities', () => {
  it('drops what is old and finished with all its traces, and never what is not', async () => {
    const [finished, waiting, dead] = [
      await deliverOrder('1'),
      await deliverOrder('2'),
      await deliverOrder('3'),
    ]
    await shop.deliver(checkoutSessionCompleted({ order: '1' }))
    await put(waiting, 'inbox_deferred', {
      attempts: '1',
      deadline_at: `now() + interval '1 day'`,
      waits_for: `'x'`,
      at_deadline: `'finding'`,
    })
    await put(dead, 'inbox_dead', { attempts: '1', reason: `'x'`, rearmed_by: `'operator'` })
    await shop.work()
    await shop.rows(`insert into inbox_rearmed (event_key) select event_key from inbox_events`)
    await backdate(401)
    const young = await deliverOrder('4')
    expect(await runUpkeep(shop.db, defaultLimits)).toMatchObject({ identitiesDropped: 1 })
    expect(
      (
        await shop.rows<{ event_id: string }>(
          'select event_id from inbox_events order by event_key',
        )
      ).map((row) => row.event_id),
    ).toEqual([waiting, dead, young])
    expect(await one('select count(*)::int from deliveries where event_id = $1', [finished])).toBe(
      0,
    )
    expect(await one('select count(*)::int from inbox_rearmed')).toBe(2)
    expect(await one(`select count(*)::int from ledger_decisions where final`)).toBe(1)
    expect(
      await one(
        `select count(*)::int from fulfillment_effects where order_id = '1' and effect_type = 'license'`,
      ),
    ).toBe(1)
  })

  it('is bounded, and old events that never finish do not stand in its way', async () => {
    for (const order of ['1', '2', '3'])
      await put(await deliverOrder(order), 'inbox_dead', { attempts: '1', reason: `'x'` })
    for (const order of ['4', '5', '6']) await deliverOrder(order)
    await shop.work()
    await backdate(401)
    expect([
      await one('select drop_identities(400, 2)'),
      await one('select drop_identities(400, 2)'),
      await one('select drop_identities(400, 2)'),
    ]).toEqual([2, 1, 0])
    expect(await one('select count(*)::int from inbox_events')).toBe(3)
  })

  it('leaves an ignored event to whoever wakes it at this moment', async () => {
    const foreign = stripeEvent('plan.deleted' as never, { id: 'plan_1' } as never) as {
      id: string
    }
    await shop.deliver(foreign)
    await shop.work()
    await backdate(401)
    const waking = await shop.pool.connect()
    await waking.query('begin')
    await waking.query(
      'with gone as (delete from inbox_ignored returning event_key, received_on) insert into inbox_ready (event_key, received_on) select * from gone',
    )
    expect(await one('select drop_identities(400, 10)')).toBe(0)
    await waking.query('commit')
    waking.release()
    expect(
      await one('select count(*)::int from inbox_events join inbox_ready using (event_key)'),
    ).toBe(1)
  })

  it('makes a redelivery after that an event like any other, which fulfills nothing twice', async () => {
    const id = await deliverOrder('1')
    await shop.work()
    await backdate(401)
    await runUpkeep(shop.db, defaultLimits)
    expect(await deliverOrder('1')).toBe(id)
    await shop.work()
    expect(
      await one(`select count(*)::int from fulfillment_effects where effect_type = 'license'`),
    ).toBe(1)
    expect(await one(`select state from webhook_inbox where event_id = $1`, [id])).toBe('processed')
  })
})

describe('read_payload', () => {
  it('finds a body in its day and among those held, and records also a reading that finds none', async () => {
    const id = await deliverOrder('1')
    const key = await keyOf(id)
    const read = () =>
      one<string | null>(`select convert_from(read_payload($1, 'a complaint', 'ada'), 'UTF8')`, [
        key,
      ])
    expect(await read()).toContain('checkout.session.completed')
    await backdate(40)
    await runUpkeep(shop.db, defaultLimits)
    expect(await read()).toContain('checkout.session.completed')
    await shop.work()
    await runUpkeep(shop.db, defaultLimits)
    expect(await read()).toBeNull()
    expect(await one('select count(*)::int from payload_reads')).toBe(3)
  })
})

describe('is_payload_intact', () => {
  it('tells an altered body from the one that came, and from none', async () => {
    const key = await keyOf(await deliverOrder('1'))
    expect(await one('select is_payload_intact($1)', [key])).toBe(true)
    await shop.rows(`update payloads set body = body || 'x'`)
    expect(await one('select is_payload_intact($1)', [key])).toBe(false)
    await shop.rows('delete from payloads')
    expect(await one('select is_payload_intact($1)', [key])).toBeNull()
  })
})

describe('runUpkeep', () => {
  it('stores the retention that is configured, for those who may not change it', async () => {
    await runUpkeep(shop.db, {
      partitionsAheadDays: 3,
      payloadRetentionDays: 7,
      identityRetentionDays: 90,
    })
    expect(await shop.rows('select payload_days, identity_days from retention')).toEqual([
      { payload_days: 7, identity_days: 90 },
    ])
  })

  it('cannot be told to keep a body longer than its event', () => {
    const limits = { payloadRetentionDays: 90, identityRetentionDays: 60 }
    expect(() => resolveOptions({ sources: {}, limits })).toThrow(
      /identityRetentionDays must be at least limits.payloadRetentionDays/,
    )
  })

  it('drops counts of refusals after a month', async () => {
    await shop.rows(
      `insert into rejections (source, reason, last_at, minute) values ('a', 'old', now() - interval '31 days', now()), ('a', 'new', now(), now())`,
    )
    expect(await runUpkeep(shop.db, defaultLimits)).toMatchObject({ rejectionsDropped: 1 })
    expect(await shop.rows('select reason from rejections')).toEqual([{ reason: 'new' }])
  })
})

describe('upkeep on arrival', () => {
  it('runs when deliveries come and no worker does it, at most once in its time', async () => {
    const signals = createSignals()
    const runs: Promise<unknown>[] = []
    const stop = upkeepOnArrival(
      signals,
      () => {
        const run = runUpkeep(shop.db, defaultLimits)
        runs.push(run)
        return run
      },
      0,
    )
    signals.emit('inbox.events.stored', { events: 1, duplicates: 0 })
    await stop()
    signals.emit('inbox.events.stored', { events: 1, duplicates: 0 })
    expect(runs).toHaveLength(1)
    expect(await partitions()).toHaveLength(37)
  })

  it('is what a receiver does by itself', async () => {
    const parts = partsOf(shop.hookledger)
    parts.receiver()
    const now = performance.now.bind(performance)
    vi.spyOn(performance, 'now').mockImplementation(() => now() + 3_600_000)
    await deliverOrder('1')
    for (let tries = 0; tries < 200 && (await partitions()).length < 37; tries++) await sleep(20)
    expect(await partitions()).toHaveLength(37)
  })

  it('tells of a failure and goes on', async () => {
    const signals = createSignals()
    const failures: string[] = []
    signals.on('worker.loop.failed', ({ loop, message }) => failures.push(`${loop}: ${message}`))
    const stop = upkeepOnArrival(signals, () => Promise.reject(new Error('no database')), 0)
    signals.emit('inbox.events.stored', { events: 1, duplicates: 0 })
    await stop()
    expect(failures).toEqual(['upkeep: no database'])
  })
})
