/**
 * One planned fault in a reconciler, played to its end: what is in the database right after it must hold
 * together, and the pass after it must come to the same as if nothing had happened.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { stripe } from 'hookledger'
import type { HookledgerOptions } from 'hookledger'
import type { FaultAction } from '../../src/testing/fault-plan.ts'
import { serveStripeDouble } from '../../src/testing/stripe-double/serve.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../src/testing/stripe-double/stripe-double.ts'
import { startScript, type Driver } from './failpoint-process.ts'
import {
  changesBetween,
  reconcileViolations,
  settledState,
  type ProviderTruth,
} from './reconcile-tables.ts'
import { createShop, shopSecret, type Shop } from './shop.ts'

/** What the driver is told; sent as JSON. */
export interface ReconcileDriverSettings {
  readonly url: string
  readonly apiBase: string
  readonly reconcile: Exclude<NonNullable<HookledgerOptions['reconcile']>, false>
}

/** The steps of a reconciler. */
export const reconcileSteps = ['C0', 'C1', 'C2', 'C3', 'C4', 'C5', 'C6', 'C7'] as const

/** A fault to be played. */
export interface ReconcileFault {
  readonly step: (typeof reconcileSteps)[number]
  readonly nth: number
  readonly action: FaultAction
}

/** The shop's source, with the provider's API to ask. */
export function reconcileSource(apiBase: string): ReturnType<typeof stripe> {
  return stripe({
    environment: 'test',
    signingSecrets: [shopSecret],
    apiKey: 'sk_test_driver',
    apiBase,
  })
}

/** Small pages and slices, so that each step is reached many times. */
const settings: ReconcileDriverSettings['reconcile'] = {
  lagMs: 0,
  callsPerSecond: 10_000,
  pageSize: 7,
  settleMs: 20_000,
}

const script = fileURLToPath(new URL('./reconcile-driver.ts', import.meta.url))
const hour = 3_600_000
/** Longer than any lock, call or statement of the driver waits. */
const stoppedMs = 700

/** A shop, a provider on a port, and reconcilers in processes of their own. */
export interface KillBench {
  readonly shop: Shop
  readonly double: StripeDouble
  /** Orders that are paid at the provider; which events of them are delivered, listed, or neither. */
  sell(orders: number): Promise<void>
  truth(): ProviderTruth
  drive(plan?: string): Promise<Driver>
  close(): Promise<void>
}

/** Creates it. */
export async function createKillBench(): Promise<KillBench> {
  const shop = await createShop()
  await shop.pool.query(`update installation set created_at = now() - interval '3 hours'`)
  let clock = Date.now() - hour
  const double = createStripeDouble({
    seed: 'kills',
    signingSecret: shopSecret,
    clock: () => clock,
  })
  const served = await serveStripeDouble(double)
  const drivers: Driver[] = []
  const listed: { id: string; createdAt: Date }[] = []
  const delivered: string[] = []
  let sold = 0
  return {
    shop,
    double,
    async sell(orders) {
      // the first are spread over the hour before; what is sold later must not be older than a checkpoint
      const isFirst = sold === 0
      for (let at = 0; at < orders; at++) {
        clock = isFirst ? clock + 20_000 : Date.now()
        const order = `order-${sold++}`
        const { events } = double.hold(() => {
          const session = double.createSession({ clientReferenceId: order })
          double.completeSession(session.id)
        })
        for (const event of events) {
          // a third comes, a third is lost on the way, and of a third not even the list knows
          const fate = sold % 3
          if (fate === 0) double.forget(event.id)
          else listed.push({ id: event.id, createdAt: new Date(event.created * 1000) })
          if (fate !== 1) continue
          delivered.push(event.id)
          expect(await shop.deliver(event)).toBe(200)
        }
      }
      await shop.work()
      // a window ends with the last whole second
      await sleep(1100)
    },
    truth: () => ({ listed, delivered }),
    async drive(plan) {
      const { url } = shop.database
      const driver = await startScript(
        script,
        { url, apiBase: served.url, reconcile: settings } satisfies ReconcileDriverSettings,
        plan,
      )
      drivers.push(driver)
      return driver
    },
    async close() {
      await Promise.all(drivers.map((driver) => driver.end()))
      await served.close()
      await shop.close()
      double.close()
    },
  }
}

/** Plays one fault and the pass after it. */
export async function playReconcileFault(
  bench: KillBench,
  { step, nth, action }: ReconcileFault,
): Promise<void> {
  const plan = `${step}:${nth}:${action}`
  const driver = await bench.drive(plan)
  await driver.faulted()
  expect(driver.faults, `${plan} was never reached`).toEqual([`${step} ${action}`])
  if (action === 'stop') {
    await sleep(stoppedMs)
    await expectNoGap(bench, plan)
    // another one comes while it stands still, and it goes on afterwards
    await expectEnded(await bench.drive(), `beside ${plan}`)
    driver.signal('SIGCONT')
  }
  await driver.exited
  await expectNoGap(bench, plan)
  await expectEnded(await bench.drive(), `after ${plan}`)
  await expectWhole(bench, plan)
  const before = await settledState(bench.shop.pool)
  await expectEnded(await bench.drive(), `once more after ${plan}`)
  expect(changesBetween(before, await settledState(bench.shop.pool)), plan).toEqual([])
}

async function expectEnded(driver: Driver, what: string): Promise<void> {
  await driver.exited
  const said = driver.lines.filter((line) => line.startsWith('ended'))
  expect(said, `${what}: ${driver.lines.join('\n')}`).toEqual(['ended complete '])
}

/** What must hold at every moment, also right after a kill. */
async function expectNoGap({ shop, truth }: KillBench, plan: string): Promise<void> {
  const violations = await reconcileViolations(shop.pool, truth())
  expect(
    violations.filter(({ invariant }) => /^I|injected_twice|delivered_again/.test(invariant)),
    plan,
  ).toEqual([])
}

/** What must hold when a pass has come to its end. */
async function expectWhole({ shop, truth }: KillBench, plan: string): Promise<void> {
  expect(await reconcileViolations(shop.pool, truth()), plan).toEqual([])
  const orders = await shop.rows(
    `select o.state, count(*)::int as orders, count(distinct o.order_id) filter (where exists (
        select from fulfillment_effects f where f.order_id = o.order_id and f.effect_type = 'license'))::int as licensed
      from orders o group by o.state`,
  )
  const [row] = orders
  expect(orders, plan).toHaveLength(1)
  expect(row, plan).toMatchObject({ state: 'paid' })
  expect(row?.['licensed'], plan).toBe(row?.['orders'])
  const open = await shop.rows(
    `select kind, evidence from findings where state in ('open', 'repairing')`,
  )
  expect(open, plan).toEqual([])
}
