import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FaultAction } from '../../src/testing/fault-plan.ts'
import { startAdversary, type AdversarialDestination } from '../support/adversarial-destination.ts'
import type { Driver } from '../support/failpoint-process.ts'
import { createOutboxProof, type Opponent, type OutboxProof } from '../support/outbox-proof.ts'
import { startDispatcher } from '../support/outbox-process.ts'

const steps = ['D0', 'D1', 'D2', 'D3', 'D4', 'D5', 'D6'] as const
const orders = 6

let mail: AdversarialDestination
let opponents: Readonly<Record<string, Opponent>>
let proof: OutboxProof
let drivers: Driver[]

beforeEach(async () => {
  mail = await startAdversary({ script: () => 'works' })
  opponents = { mail: { adversary: mail, declared: { looksUp: true } } }
  proof = await createOutboxProof(opponents)
  drivers = []
})
afterEach(async () => {
  await Promise.all(drivers.map((driver) => driver.end()))
  await proof.close()
  await mail.close()
})

async function start(plan = ''): Promise<Driver> {
  const driver = await startDispatcher(proof, opponents, { plan })
  drivers.push(driver)
  return driver
}

/** Resolves when as many operations are sent as were asked for, and nobody waits for one of them. */
async function untilSent(count: number): Promise<void> {
  await expect
    .poll(
      async () => {
        const [left] = await proof.probe.rows<{ wakes: number }>(
          'select count(*)::integer as wakes from outbox_wakes',
        )
        return { ...(await proof.states()), wakes: left?.wakes }
      },
      { timeout: 60_000, interval: 100 },
    )
    .toEqual({ sent: count, wakes: 0 })
}

/** Everything was sent, once for the destination, and nothing is left of what happened. */
async function expectAllSent(count: number): Promise<void> {
  await untilSent(count)
  // the oracle judges what is left when nobody is at work
  await Promise.all(drivers.map((driver) => driver.end()))
  await expectNoSessionLeft()
  await proof.expectQuiet(40_000)
  const applied = [...mail.log.applications().values()]
  expect(applied).toHaveLength(count)
  expect(Math.max(...applied)).toBe(1)
  expect(
    await proof.probe.rows(`select under_way from outbox_destinations where destination = 'mail'`),
  ).toEqual([{ under_way: 0 }])
}

/** What they had open in the database is ended by the server, soon enough that nobody waits for long. */
async function expectNoSessionLeft(): Promise<void> {
  await expect
    .poll(
      () =>
        proof.probe.rows(
          `select pid from pg_stat_activity
           where datname = current_database() and state like 'idle in transaction%'`,
        ),
      { timeout: 20_000, interval: 250 },
    )
    .toEqual([])
}

describe('a dispatcher that is killed', () => {
  it.each(steps)('at %s leaves what was in its hands to the next one', async (step) => {
    await proof.pay(orders)
    const driver = await start(`${step}:1:kill`)
    expect((await driver.exited).signal).toBe('SIGKILL')
    expect(driver.faults).toEqual([`${step} kill`])
    await start()
    await expectAllSent(orders)
    const [row] = await proof.probe.rows<{ silent: number }>(
      `select count(*) filter (where w.attempt_id is null)::integer as silent
       from outbox_attempts a left join outbox_answers w on w.attempt_id = a.attempt_id`,
    )
    // after its results were committed nothing of them can be lost
    if (step !== 'D6') expect(row?.silent).toBeGreaterThan(0)
  })
})

describe('a dispatcher that is stopped', () => {
  it.each(steps)('at %s is outlived by another one, and wakes to change nothing', async (step) => {
    await proof.pay(orders)
    const driver = await start(`${step}:1:stop`)
    await driver.faulted()
    await start()
    await untilSent(orders)
    const before = await proof.probe.rows(
      'select operation_id, state, receipt, attempts, finished_at from outbox_operations order by 1',
    )
    driver.signal('SIGCONT')
    await proof.pay(2, 'after')
    await untilSent(orders + 2)
    expect(driver.isRunning()).toBe(true)
    await expectAllSent(orders + 2)
    expect(
      await proof.probe.rows(
        `select operation_id, state, receipt, attempts, finished_at from outbox_operations
         where order_id not like 'after%' order by 1`,
      ),
    ).toEqual(before)
  })
})

describe('a dispatcher goes on by itself', () => {
  it.each<FaultAction>(['throw', 'dbreset', 'delay'])(
    'after a fault at every step (%s)',
    async (action) => {
      await proof.pay(orders)
      const driver = await start(steps.map((step, n) => `${step}:${n + 1}:${action}`).join(','))
      for (let round = 0; driver.faults.length < steps.length && round < 20; round++) {
        await proof.pay(3, `round-${round}`)
        await Promise.race([
          driver.faulted(driver.faults.length + 1),
          new Promise((resolve) => setTimeout(resolve, 500)),
        ])
      }
      expect([...driver.faults].sort()).toEqual(steps.map((step) => `${step} ${action}`))
      const [row] = await proof.probe.rows<{ n: number }>(
        'select count(*)::integer as n from outbox_operations',
      )
      await untilSent(row?.n ?? 0)
      expect(driver.isRunning()).toBe(true)
      await expectAllSent(row?.n ?? 0)
    },
  )

  it.each(['D0', 'D4', 'D5'])('when its connections fall silent at %s', async (step) => {
    await proof.pay(orders)
    const driver = await start(`${step}:1:dbhole`)
    await driver.faulted()
    await untilSent(orders)
    expect(driver.isRunning()).toBe(true)
    await expectAllSent(orders)
  })
})
