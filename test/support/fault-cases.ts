/**
 * One planned fault, played to its end: what was acknowledged before, during and after it must come to
 * the same as if nothing had happened. The full matrix and its subset for `npm test` share this.
 */
import { request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import { signStripe } from '../../src/testing/sign.ts'
import {
  checkoutSessionCompleted,
  customerUpdated,
  invoicePaid,
  paymentIntentSucceeded,
  refundCreated,
  stripeBody,
} from '../../src/testing/stripe-events.ts'
import type { FaultAction } from '../../src/testing/fault-plan.ts'
import { startDriver, type Driver, type DriverSettings } from './failpoint-process.ts'
import { findViolations, type AskedEffect, type SentDelivery } from './oracle.ts'
import { actualLicenses, askedEffects, expectedLicenses } from './oracle-license.ts'
import { until } from './probe.ts'
import { createShop, shopSecret, type Shop } from './shop.ts'
import { sent } from './shop-history.ts'

/** What is sent in a case: licenses with refunds that come first, own SQL, a plain handler, duplicates. */
export interface Workload {
  readonly licenses: readonly object[]
  readonly others: readonly object[]
  /** Everything in the order in which it is sent, some of it twice. */
  readonly sent: readonly object[]
}

/** A workload of so many orders. */
export function workload(orders: number, prefix = 'order'): Workload {
  const ids = Array.from({ length: orders }, (_, at) => `${prefix}-${at}`)
  const licenses = ids.flatMap((order, at) => [
    ...(at % 3 === 0
      ? [refundCreated({ order, id: `re_${order}`, amount: at % 2 === 0 ? 4900 : 1900 })]
      : []),
    paymentIntentSucceeded({ order }),
    checkoutSessionCompleted({ order }),
  ])
  const others = ids.map((order, at) =>
    at % 5 === 4
      ? customerUpdated({ id: `cus_${order}` })
      : invoicePaid({
          id: `in_${order}`,
          subscription: `sub_${order}`,
          metadata: { account_id: 'acc' },
          amount: 500,
        }),
  )
  const all = [...licenses, ...others].flatMap((event, at) =>
    at % 4 === 0 ? [event, event] : [event],
  )
  return { licenses, others, sent: all }
}

function credited(events: readonly object[]): readonly AskedEffect[] {
  return (
    events as readonly {
      id: string
      type: string
      data: {
        object: { id: string; parent?: { subscription_details?: { subscription?: string } } }
      }
    }[]
  )
    .filter(({ type }) => type === 'invoice.paid')
    .map(({ id, data: { object } }) => ({
      eventId: id,
      orderId: String(object.parent?.subscription_details?.subscription),
      effectType: 'credits',
      reference: object.id,
    }))
}

/** Everything that must hold when a case is over. */
export async function expectAllIsWell(
  shop: Shop,
  { licenses, others }: Workload,
  deliveries: readonly SentDelivery[],
): Promise<void> {
  const effects = [...askedEffects(licenses), ...credited(others)]
  expect(await findViolations(shop.pool, { deliveries, effects }, true)).toEqual([])
  const rows = await shop.rows<{
    order_id: string
    state: string
    effects: string[]
    entitlements: string[]
  }>(actualLicenses)
  const actual = new Map(
    rows.map(({ order_id: id, state, effects: made, entitlements }) => [
      id,
      { state, effects: made.sort(), entitlements },
    ]),
  )
  expect(actual).toEqual(expectedLicenses(licenses))
  const invoices = credited(others).length
  expect(await shop.rows(`select credits::int from shop.accounts`)).toEqual([
    { credits: invoices * 5 },
  ])
  expect(await shop.rows(`select 1 from shop.customers`)).toHaveLength(others.length - invoices)
  expect(await shop.rows(`select state from webhook_inbox where state <> 'processed'`)).toEqual([])
}

async function isDrained(shop: Shop): Promise<boolean> {
  const [row] = await shop.rows<{ n: string }>(
    `select (select count(*) from inbox_ready) + (select count(*) from inbox_delayed) + (select count(*) from inbox_suspects) + (select count(*) from inbox_batches) as n`,
  )
  return row?.n === '0'
}

/** Works in this process until everything is done, whatever a dead worker left behind. */
async function takeOver(shop: Shop, withinMs = 30_000): Promise<void> {
  await until(
    async () => {
      await shop.work()
      return isDrained(shop)
    },
    (done) => done,
    withinMs,
  )
}

const quickly = { firstRetryMs: 20, maxRetryMs: 100 }

/**
 * A worker that suffers the plan while it works on a workload. `patient` waits until the server itself
 * ends the session of one that is stopped.
 */
export async function playWorkerFaults(
  plan: readonly string[],
  action: FaultAction,
  patient = false,
): Promise<void> {
  const shop = await createShop({ limits: quickly })
  const load = workload(10)
  let driver: Driver | undefined
  try {
    for (const event of load.sent) expect(await shop.deliver(event)).toBe(200)
    const settings: DriverSettings = {
      url: shop.database.url,
      app: 'shop',
      works: true,
      loops: 2,
      limits: { workBatch: 4, ...quickly },
    }
    driver = await startDriver(settings, plan.join(','))
    await driver.faulted(plan.length)
    expect(driver.faults).toEqual(
      expect.arrayContaining(plan.map((each) => `${each.split(':')[0]} ${action}`)),
    )
    if (action === 'kill') {
      expect((await driver.exited).signal).toBe('SIGKILL')
      await takeOver(shop)
    } else if (action === 'stop') {
      await outliveStopped(shop, driver, patient)
    } else {
      await until(
        () => isDrained(shop),
        (done) => done,
        40_000,
      )
      expect(driver.isRunning()).toBe(true)
    }
    // the one that suffered still works
    if (driver.isRunning()) {
      const more = workload(1, 'afterwards')
      for (const event of more.licenses) await shop.deliver(event)
      await until(
        () =>
          shop.rows(`select 1 from orders where order_id = 'afterwards-0' and state = 'refunded'`),
        (rows) => rows.length === 1,
        20_000,
      )
      await until(
        () => isDrained(shop),
        (done) => done,
        20_000,
      )
      await driver.end()
      await expectAllIsWell(
        shop,
        { ...load, licenses: [...load.licenses, ...more.licenses] },
        [...load.sent, ...more.licenses].map((event) => sent(event)),
      )
    } else
      await expectAllIsWell(
        shop,
        load,
        load.sent.map((event) => sent(event)),
      )
  } finally {
    await driver?.end()
    await shop.close()
  }
}

/** Another worker goes on beside the stopped one, gets its events once its session ends, and it wakes to nothing. */
async function outliveStopped(shop: Shop, driver: Driver, patient: boolean): Promise<void> {
  await sleep(100)
  await shop.work()
  // what the server does by itself to a session that is idle in its transaction for too long
  if (!patient)
    await shop.rows(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'driver' and datname = current_database()`,
    )
  await takeOver(shop, patient ? 60_000 : 30_000)
  const before = await shop.rows(`select count(*)::int as n from ledger_decisions where final`)
  driver.signal('SIGCONT')
  await sleep(300)
  expect(await shop.rows(`select count(*)::int as n from ledger_decisions where final`)).toEqual(
    before,
  )
}

/** One request as a provider makes it: on a connection of its own, given up after a while. */
export function post(port: number, event: object, timeoutMs = 1500): Promise<number | null> {
  const body = Buffer.from(stripeBody(event))
  return new Promise((resolve) => {
    const outgoing = request(
      {
        host: '127.0.0.1',
        port,
        path: '/webhooks/stripe',
        method: 'POST',
        agent: false,
        timeout: timeoutMs,
        headers: { ...signStripe(body, shopSecret), 'content-length': body.length },
      },
      (answer) => {
        answer.resume()
        answer.on('end', () => resolve(answer.complete ? (answer.statusCode ?? null) : null))
        answer.on('error', () => resolve(null))
      },
    )
    outgoing.on('timeout', () => outgoing.destroy())
    outgoing.on('error', () => resolve(null))
    outgoing.end(body)
  })
}

/** A receiver that suffers the plan while a provider posts a workload and repeats what got no 2xx. */
export async function playReceiverFaults(
  plan: readonly string[],
  action: FaultAction,
): Promise<void> {
  const shop = await createShop({ limits: quickly })
  const load = workload(4)
  const settings: DriverSettings = {
    url: shop.database.url,
    app: 'shop',
    receives: true,
    limits: { requestTimeoutMs: 3000 },
  }
  let driver = await startDriver(settings, plan.join(','))
  const first = driver
  const seen: SentDelivery[] = []
  const attempt = async (event: object): Promise<boolean> => {
    const status = await post(driver.port, event)
    seen.push(
      sent(event, status === 200 ? 'ok' : status !== null && status < 500 ? 'fail' : 'info'),
    )
    return status === 200
  }
  const heal = async (): Promise<void> => {
    if (action === 'stop') driver.signal('SIGCONT')
    // the sender may learn of the end before this process does
    if (action === 'kill' && driver === first && first.faults.length > 0) await first.exited
    if (driver.isRunning()) return sleep(50)
    driver = await startDriver(settings)
  }
  try {
    for (const event of load.sent) {
      for (let tries = 0; !(await attempt(event)); tries++) {
        expect(tries).toBeLessThan(10)
        await heal()
      }
    }
    await heal()
    // requests that are under way at once reach their steps in any order
    const planned = plan.map((each) => `${each.split(':')[0]} ${action}`)
    expect([...first.faults].sort()).toEqual(planned.sort())
    expect(seen.filter(({ outcome }) => outcome === 'fail')).toEqual([])
    await takeOver(shop)
    await expectAllIsWell(shop, load, seen)
  } finally {
    await driver.end()
    await first.end()
    await shop.close()
  }
}
