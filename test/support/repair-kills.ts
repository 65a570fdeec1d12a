/** Somebody who repairs in a process of its own that is killed or stopped on the way, and what must be true then. */
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { audit } from '../../src/report/audit.ts'
import { startScript, type Driver } from './failpoint-process.ts'
import type { RepairBench } from './repair-bench.ts'
import type { RepairDriverSettings } from './repair-driver.ts'

const script = fileURLToPath(new URL('./repair-driver.ts', import.meta.url))

/** Every step of a repair. */
export const repairSteps = ['P0', 'P1', 'P2', 'P3', 'P4', 'P5', 'P6'] as const

/** One of them. */
export type RepairStep = (typeof repairSteps)[number]

/** Whoever presses again. */
export const by = { reason: 'pressed again', actor: 'ada' }

/** The shop, and what is done to it. */
export class RepairKills {
  readonly bench: RepairBench
  #orders = 0

  constructor(bench: RepairBench) {
    this.bench = bench
  }

  /** An order that the provider gave back and the shop did not, with its finding. */
  async discrepancy(): Promise<{ readonly order: string; readonly id: string }> {
    const order = `k${++this.#orders}`
    const payment = await this.bench.buy(order)
    this.bench.provider.refund(payment)
    return { order, id: await this.bench.find({ kind: 'refunded_there', order, payment }) }
  }

  start(findingId: string, plan: string, choice?: string): Promise<Driver> {
    const settings: RepairDriverSettings = {
      databaseUrl: this.bench.database.url,
      findingId,
      payments: Object.fromEntries(this.bench.provider.payments),
      ...(choice === undefined ? {} : { choice }),
    }
    return startScript(script, settings, plan)
  }

  /** What of a repair is there: every part of it, or none. */
  async parts(order: string, id: string): Promise<Record<string, number>> {
    const [row] = await this.bench.rows<Record<string, number>>(
      `select (select count(*)::int from repairs where finding_id = $2::uuid) as repairs,
         (select count(*)::int from operator_acts where target = 'finding:' || $2) as acts,
         (select count(*)::int from ledger_decisions where order_id = $1 and kind = 'repaired') as decisions,
         (select count(*)::int from inbox_events e join repairs r on e.event_id = r.repair_id::text where r.finding_id = $2::uuid) as events,
         (select count(*)::int from fulfillment_effects where order_id = $1 and effect_type = 'refund') as effects,
         (select count(*)::int from outbox_operations where order_id = $1 and effect_type = 'refund') as operations,
         (select count(*)::int from orders where order_id = $1 and state = 'refunded') as moved,
         (select count(*)::int from findings where finding_id = $2::uuid and state <> 'open') as told`,
      [order, id],
    )
    return row ?? {}
  }

  /** All of it is there, once, and every promise holds. */
  async expectOnce(order: string, id: string): Promise<void> {
    expect(new Set(Object.values(await this.parts(order, id)))).toEqual(new Set([1]))
    expect(await this.bench.order(order)).toEqual({ state: 'refunded', active: [] })
    const { checks } = await audit(this.bench.db)
    expect(checks.filter(({ holds }) => !holds)).toEqual([])
  }

  /** The process is killed at the step; then somebody presses again. */
  async playKill(step: RepairStep): Promise<void> {
    const { order, id } = await this.discrepancy()
    const driver = await this.start(id, `${step}:1:kill`)
    await driver.exited
    expect(driver.faults).toEqual([`${step} kill`])
    const there = new Set(Object.values(await this.parts(order, id)))
    expect(there).toEqual(new Set([step === 'P6' ? 1 : 0]))
    // a connection that is not closed yet may hold the order for a moment
    const report = await this.bench.repairs.apply(id, by)
    expect(report.outcome).toBe(step === 'P6' ? 'recorded' : 'applied')
    await this.expectOnce(order, id)
  }

  /** The process is stopped at the step, and goes on while somebody else presses. */
  async playStop(step: RepairStep): Promise<void> {
    const { order, id } = await this.discrepancy()
    const driver = await this.start(id, `${step}:1:stop`)
    await driver.faulted()
    await sleep(100)
    const other = this.bench.repairs.apply(id, by).then(
      ({ outcome }) => outcome,
      (error: unknown) => (error as { code?: string }).code ?? 'failed',
    )
    await sleep(400)
    driver.signal('SIGCONT')
    const answers = [await other]
    await driver.exited
    answers.push(...driver.lines.filter((line) => line.startsWith('answered')))
    expect(answers.filter((each) => /applied$/.test(each))).toHaveLength(1)
    await this.expectOnce(order, id)
  }

  /** Each time the process presses, it comes one step further. */
  async playEveryStep(action: string): Promise<void> {
    const { order, id } = await this.discrepancy()
    const plan = repairSteps.map((step) => `${step}:1:${action}`).join(',')
    const driver = await this.start(id, plan)
    await driver.exited
    expect(driver.faults.length).toBeGreaterThan(4)
    expect(driver.lines.at(-1)).toMatch(/^answered (applied|recorded)|HKL_FINDING_NOT_OPEN/)
    await this.expectOnce(order, id)
  }
}
