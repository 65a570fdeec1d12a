import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createHookledger } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import {
  createProbe,
  deliverTo,
  probe,
  probeOptions,
  probeWorkflow,
  workOff,
  type Probe,
} from '../support/probe.ts'
import { steppedPool } from '../support/stepped-pool.ts'

const workflow = probeWorkflow()
let bench: Probe
beforeAll(async () => {
  bench = await createProbe({ workflows: [workflow] })
})
afterAll(() => bench.close())
beforeEach(() => bench.reset())

async function keyOf(id: string): Promise<bigint> {
  const [row] = await bench.rows<{ event_key: string }>(
    `select event_key from inbox_events where event_id = $1`,
    [id],
  )
  return BigInt(row?.event_key ?? 0)
}

/** What each of the two events was decided to be. */
async function decisions(): Promise<Record<string, string>> {
  const rows = await bench.rows<{ event_id: string; kind: string }>(
    `select event_id, kind from decisions where final and event_id in ('evt_first', 'evt_second')`,
  )
  return Object.fromEntries(rows.map((row) => [row.event_id, row.kind]))
}

/**
 * The first worker has written order, payment, effect and entitlement and is about to commit; the
 * second has another event for the same order and effect.
 */
async function race(existing: boolean, ends: 'commits' | 'rolls back'): Promise<void> {
  const pool = steppedPool(bench.pool)
  const first = createHookledger(probeOptions([workflow], { database: pool }))
  await partsOf(first).register()
  if (existing) {
    await deliverTo(bench.hookledger, [probe('note', { order: 'x' })])
    await workOff(bench.hookledger)
  }
  await deliverTo(bench.hookledger, [
    probe('pay', { id: 'evt_first', order: 'x', payment: 'pay_1' }),
  ])
  const arrived = pool.holdAt(/^commit$/)
  const running = partsOf(first).workOff([await keyOf('evt_first')])
  await arrived
  await deliverTo(bench.hookledger, [
    probe('pay', { id: 'evt_second', order: 'x', payment: 'pay_1' }),
  ])
  const runSecond = async (): Promise<void> =>
    partsOf(bench.hookledger).workOff([await keyOf('evt_second')])
  const second = runSecond()
  try {
    await sleep(150)
    expect(await decisions()).toEqual({})
    if (ends === 'rolls back') {
      await bench.rows(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`,
      )
      await second
      // where the order existed it was held by the first, and its event was left for later
      if ((await decisions())['evt_second'] === undefined) await runSecond()
      expect(await decisions()).toEqual({ evt_second: 'fulfilled' })
    }
  } finally {
    pool.go()
  }
  await Promise.all([running, second])
  await workOff(bench.hookledger)
}

describe('two workers on one order and effect', () => {
  it.each([
    ['an order that both would open', false],
    ['an order that exists', true],
  ] as const)(
    'grant once, and the second one grants when the first rolls back (%s)',
    async (_, existing) => {
      await race(existing, 'rolls back')
      expect(
        await bench.rows(`select 1 from fulfillment_effects where effect_type = 'grant'`),
      ).toHaveLength(1)
      expect((await decisions())['evt_second']).toBe('fulfilled')
      // the first's own event was run by the second worker, or by the first when it came back
      expect((await decisions())['evt_first']).toBe('absorbed')
      expect(await bench.rows(`select 1 from current_entitlements`)).toHaveLength(1)
    },
  )

  it.each([
    ['an order that both would open', false],
    ['an order that exists', true],
  ] as const)(
    'grant once, and the second one is absorbed when the first commits (%s)',
    async (_, existing) => {
      await race(existing, 'commits')
      expect(
        await bench.rows(`select 1 from fulfillment_effects where effect_type = 'grant'`),
      ).toHaveLength(1)
      expect(await decisions()).toEqual({ evt_first: 'fulfilled', evt_second: 'absorbed' })
    },
  )
})

describe('two orders that name one payment', () => {
  it('leave it to the first that commits; the second is a contradiction and grants nothing', async () => {
    await bench.deliver(probe('pay', { id: 'evt_first', order: 'a', payment: 'shared' }))
    await bench.work()
    await bench.deliver(probe('pay', { id: 'evt_second', order: 'b', payment: 'shared' }))
    await bench.work()
    expect(await decisions()).toEqual({ evt_first: 'fulfilled', evt_second: 'contradicted' })
    expect(await bench.rows(`select subject from current_entitlements`)).toEqual([
      { subject: 'user:a' },
    ])
    expect(await bench.rows(`select kind, state from findings`)).toEqual([
      { kind: 'fulfilled_twice', state: 'open' },
    ])
  })

  it('are told apart when they race', async () => {
    const pool = steppedPool(bench.pool)
    const first = createHookledger(probeOptions([workflow], { database: pool }))
    await partsOf(first).register()
    await bench.deliver(
      probe('pay', { id: 'evt_first', order: 'a', payment: 'shared' }),
      probe('pay', { id: 'evt_second', order: 'b', payment: 'shared' }),
    )
    const arrived = pool.holdAt(/^commit$/)
    const running = partsOf(first).workOff([await keyOf('evt_first')])
    await arrived
    // waits for the payment's row, in vain, and yields
    const second = partsOf(bench.hookledger).workOff([await keyOf('evt_second')])
    await sleep(150)
    pool.go()
    await Promise.all([running, second])
    await workOff(bench.hookledger)
    expect(await decisions()).toEqual({ evt_first: 'fulfilled', evt_second: 'contradicted' })
    expect(await bench.rows(`select order_id from ledger_payments`)).toEqual([{ order_id: 'a' }])
  })
})
