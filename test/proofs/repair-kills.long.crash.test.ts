import { afterAll, beforeAll, describe, it } from 'vitest'
import { createRepairBench } from '../support/repair-bench.ts'
import { RepairKills, repairSteps } from '../support/repair-kills.ts'

let kills: RepairKills
beforeAll(async () => {
  kills = new RepairKills(await createRepairBench())
})
afterAll(() => kills.bench.close())

describe('a repair whose process is killed', () => {
  it.each(repairSteps)(
    'at %s of all steps is there whole or not at all, and once after the next press',
    async (step) => kills.playKill(step),
  )
})

describe('a repair whose process is stopped', () => {
  it.each(repairSteps)(
    'at %s of all steps is applied once, by it or by somebody who presses meanwhile',
    async (step) => kills.playStop(step),
  )
})

describe('a repair whose process meets a fault at every step', () => {
  it.each(['throw', 'dbreset', 'dbhole', 'delay'])('is applied once, with %s', async (action) =>
    kills.playEveryStep(action),
  )
})
