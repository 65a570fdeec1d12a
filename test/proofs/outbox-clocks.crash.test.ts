import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { startAdversary, type AdversarialDestination } from '../support/adversarial-destination.ts'
import type { Driver } from '../support/failpoint-process.ts'
import { createOutboxProof, type Opponent, type OutboxProof } from '../support/outbox-proof.ts'
import { startDispatcher } from '../support/outbox-process.ts'
import { until } from '../support/probe.ts'

const minutes = 60_000

let bench: OutboxProof
let mail: AdversarialDestination
let opponents: Readonly<Record<string, Opponent>>
const drivers: Driver[] = []
afterEach(async () => {
  await Promise.all(drivers.splice(0).map((driver) => driver.end()))
  await bench.close()
  await mail.close()
})

async function prepare(
  adversary: AdversarialDestination,
  declared: Opponent['declared'] = {},
): Promise<void> {
  mail = adversary
  opponents = { mail: { adversary, ...(declared && { declared }) } }
  bench = await createOutboxProof(opponents)
}

async function start(options: Parameters<typeof startDispatcher>[2]): Promise<Driver> {
  const driver = await startDispatcher(bench, opponents, options)
  drivers.push(driver)
  return driver
}

describe('dispatchers whose clocks are wrong', () => {
  it('leave to each other what is under way, and nothing is called twice', async () => {
    let answer = (): void => {}
    let answered = Promise.resolve()
    await prepare(
      await startAdversary({ script: () => 'works_and_answers_late', lateUntil: () => answered }),
      { contract: { callMs: 60_000, leaseMs: 90_000 } },
    )
    const clockOf = (driver: Driver): number =>
      Date.parse(driver.lines.find((line) => line.startsWith('clock '))?.slice(6) ?? '')
    const orders = 5
    let holds: Driver | undefined
    for (const skewMs of [10 * minutes, -10 * minutes]) {
      await holds?.end()
      answered = new Promise((resolve) => (answer = resolve))
      const before = mail.log.calls().length
      await bench.pay(orders, `skewed-${before}`)
      holds = await start({ skewMs })
      await until(
        async () => mail.log.calls().length,
        (calls) => calls === before + orders,
      )
      const looksOn = await start({ skewMs: -skewMs })
      expect(Math.abs(clockOf(holds) - clockOf(looksOn)) / minutes).toBeGreaterThan(19)
      // an idle dispatcher looks once a second or so
      await sleep(3000)
      expect((await bench.states())['sending']).toBe(orders)
      answer()
      await until(
        () => bench.states(),
        (states) => states['sent'] === before + orders,
      )
      await looksOn.end()
    }
    await bench.expectQuiet()
    expect(mail.log.calls()).toHaveLength(2 * orders)
    expect(
      await bench.probe.rows(
        `select count(*)::int as attempts, count(distinct dispatcher)::int as dispatchers, count(*) filter (where late)::int as late,
           bool_and(started_at between now() - interval '5 min' and now() + interval '5 min') as timed
         from outbox_attempts left join outbox_answers using (attempt_id)`,
      ),
    ).toEqual([{ attempts: 2 * orders, dispatchers: 2, late: 0, timed: true }])
  })

  it('wait as long as they are told to, and come to the same', async () => {
    await prepare(
      await startAdversary({
        script: ({ earlier }) =>
          earlier === 0
            ? {
                does: 'asks_to_wait',
                status: 429,
                retryAfter: new Date(Date.now() + 2000).toUTCString(),
              }
            : earlier === 1
              ? 'works_and_resets'
              : 'works',
      }),
      { contract: { maxRetryMs: 5000 } },
    )
    await start({ skewMs: 10 * minutes })
    await start({ skewMs: -10 * minutes })
    const orders = 20
    await bench.pay(orders)
    await bench.expectQuiet()
    expect(await bench.states()).toEqual({ sent: orders })
    const calls = mail.log.calls()
    expect(calls).toHaveLength(3 * orders)
    // a date has whole seconds: what was named as two seconds is at least one
    for (const key of new Set(calls.map((call) => call.key))) {
      const [first, second] = calls.filter((call) => call.key === key)
      expect((second?.receivedAt ?? 0) - (first?.receivedAt ?? 0)).toBeGreaterThan(900)
    }
  })
})

describe('a dispatcher that is stopped in the middle of a call', () => {
  it.each(['D0', 'D1', 'D2', 'D3', 'D4', 'D5'])(
    'is outlived by another one, and its late result changes nothing (%s)',
    async (step) => {
      await prepare(await startAdversary())
      const zombie = await start({ plan: `${step}:1:stop` })
      const orders = 12
      await bench.pay(orders)
      await zombie.faulted()
      expect(zombie.faults).toEqual([`${step} stop`])
      await bench.dispatch()
      await until(
        () => bench.states(),
        (states) => states['sent'] === orders,
      )
      const before = await bench.probe.rows(
        `select operation_id, state, receipt, attempts, finished_at from outbox_operations order by 1`,
      )
      const taken = await bench.probe.rows(
        `select attempt_id from outbox_attempts left join outbox_answers using (attempt_id) where outcome is null`,
      )
      expect(taken.length).toBeGreaterThan(0)
      zombie.signal('SIGCONT')
      await until(
        () =>
          bench.probe.rows<{ n: number }>(
            `select count(*)::int as n from outbox_answers where late`,
          ),
        ([row]) => (row?.n ?? 0) > 0,
      )
      // it goes on with new work as before
      await bench.rest()
      await bench.pay(3, 'afterwards')
      await bench.expectQuiet()
      expect(
        await bench.probe.rows(
          `select operation_id, state, receipt, attempts, finished_at from outbox_operations
           where order_id not like 'afterwards%' order by 1`,
        ),
      ).toEqual(before)
    },
  )
})
