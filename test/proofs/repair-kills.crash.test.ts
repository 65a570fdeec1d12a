import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createRepairBench } from '../support/repair-bench.ts'
import { by, RepairKills, repairSteps, type RepairStep } from '../support/repair-kills.ts'

let kills: RepairKills
beforeAll(async () => {
  kills = new RepairKills(await createRepairBench())
})
afterAll(() => kills.bench.close())

describe('a repair whose process is killed', () => {
  it.each<RepairStep>(['P4', 'P5', 'P6'])(
    'at %s is there whole or not at all, and is there once after the next press',
    async (step) => kills.playKill(step),
  )
})

describe('a repair whose process is stopped', () => {
  it.each<RepairStep>(['P5', 'P6'])(
    'at %s is applied once, by it or by somebody who presses meanwhile',
    async (step) => kills.playStop(step),
  )
})

describe('a repair whose process meets a fault at every step', () => {
  it.each(['throw', 'dbreset'])('is applied once (%s)', async (action) =>
    kills.playEveryStep(action),
  )

  it('gives a payment back once', async () => {
    const { bench } = kills
    const payment = await bench.buy('back')
    const id = await bench.find({ kind: 'paid_twice', order: 'back', evidence: { payment } })
    const plan = repairSteps.map((step) => `${step}:1:throw`).join(',')
    const driver = await kills.start(id, plan, 'refund')
    await driver.exited
    expect(driver.lines.at(-1)).toMatch(/^answered/)
    await bench.repairs.apply(id, by, { choice: 'refund' })
    expect(
      await bench.rows(
        `select count(*)::int as n from outbox_operations where order_id = 'back' and destination = 'stripe'`,
      ),
    ).toEqual([{ n: 1 }])
    expect(await bench.finding(id)).toMatchObject({ repairs: 1 })
  })
})
