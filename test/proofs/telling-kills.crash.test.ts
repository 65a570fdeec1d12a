import { afterAll, beforeAll, expect, it } from 'vitest'
import { audit } from '../../src/report/audit.ts'
import type { Driver } from '../support/failpoint-process.ts'
import { createProbe, probe, until, type Probe } from '../support/probe.ts'
import { scripted } from '../support/scripted-destination.ts'
import { subjectWorkflow } from '../support/subject-workflow.ts'
import { endAgain, startTelling, tellingSteps } from '../support/telling-kills.ts'

const crm = scripted()
const orders = Array.from({ length: 24 }, (_, n) => `o${n}`)
let bench: Probe
beforeAll(async () => {
  bench = await createProbe({
    workflows: [subjectWorkflow()],
    destinations: { crm },
    entitlementChanges: { to: 'crm' },
  })
})
afterAll(() => bench.close())

interface Told {
  readonly because: string
  readonly order: string
  readonly ended: { readonly at: string }
}

it('every end is told once, whichever worker is killed at whichever statement of telling it', async () => {
  await bench.deliver(...orders.map((order) => probe('set', { order, subject: `org:${order}` })))
  await bench.work()
  const drivers: Driver[] = []
  const ends: string[] = []
  const endSome = async (): Promise<void> => {
    ends.push(...(await endAgain(bench, orders)))
  }
  try {
    drivers.push(await startTelling(bench))
    for (const step of tellingSteps) {
      // two that die of it beside each other and beside the one that goes on
      const killed = await Promise.all([
        startTelling(bench, { step, when: 'before' }),
        startTelling(bench, { step, when: 'after' }),
      ])
      drivers.push(...killed)
      for (const [at, driver] of killed.entries()) {
        const gone = driver.exited.then(() => true)
        for (let isGone = false, tries = 0; !isGone; tries += 1) {
          expect(tries, `${step} was never reached: ${driver.lines.join(', ')}`).toBeLessThan(60)
          await endSome()
          const pause = new Promise<false>((resolve) => setTimeout(resolve, 250, false))
          isGone = await Promise.race([gone, pause])
        }
        expect((await driver.exited).signal).toBe('SIGKILL')
        expect(driver.faults).toEqual([`${step} ${at === 0 ? 'before' : 'after'}`])
      }
    }
    await until(
      () =>
        bench.rows(`select 1 from entitlement_changes
        union all select 1 from entitlements e where not exists (
          select 1 from entitlement_ends x where x.order_id = e.order_id and x.valid_until = e.valid_until)`),
      (left) => left.length === 0,
    )
    expect(drivers[0]?.isRunning()).toBe(true)
  } finally {
    await Promise.all(drivers.map((driver) => driver.end()))
  }
  await bench.work()
  const sent = new Map(crm.arrived.map(({ operationId, body }) => [operationId, body]))
  const told = [...sent.values()]
    .map((body) => JSON.parse(body) as Told)
    .filter(({ because }) => because === 'expiry')
    .map(({ order, ended }) => `${order} ${ended.at}`)
  expect(ends.length).toBeGreaterThan(orders.length * tellingSteps.length)
  expect(told.sort()).toEqual(ends.sort())
  expect((await audit(bench.db)).checks.filter((each) => !each.holds)).toEqual([])
})
