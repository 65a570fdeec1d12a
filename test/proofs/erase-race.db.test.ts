/** Erasing beside deliveries and workers: no promise breaks, and once the last event has come nothing is left. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { HookledgerError } from 'hookledger'
import { applyErasure, planErasure } from '../../src/compose/erase.ts'
import { audit, defaultAuditLimits } from '../../src/report/audit.ts'
import { createProbe, probe, until, type Probe } from '../support/probe.ts'
import { subjectWorkflow } from '../support/subject-workflow.ts'

let bench: Probe
beforeAll(async () => {
  bench = await createProbe({ workflows: [subjectWorkflow()] })
})
afterAll(() => bench.close())

const ada = 'user:ada-canary'
const request = { subject: ada, confirm: ada, reason: `for ${ada}`, actor: 'dpo' }

/** Whether it was done; refusals are what a race may end in. */
async function tryErase(): Promise<boolean> {
  try {
    return (await applyErasure(bench.db, request)).applied
  } catch (error) {
    if (
      error instanceof HookledgerError &&
      ['HKL_ERASE_UNFINISHED', 'HKL_NOT_FOUND'].includes(error.code)
    )
      return false
    throw error
  }
}

it('breaks no promise while events of the subject arrive and are decided, and ends with nothing left', async () => {
  const worker = bench.another({})
  await worker.start()
  let delivering = true
  let erased = 0
  const erasing = (async () => {
    while (delivering) if (await tryErase()) erased++
  })()
  for (let n = 0; n < 60; n++) {
    const order = `order-${n % 12}`
    await bench.deliver(
      probe('set', { order, subject: ada }),
      probe('set', { order: `other-${n}`, subject: 'user:bob' }),
      probe('end', { order }),
    )
    // now and then there is a gap in which it can be done
    const before = erased
    if (n % 10 === 9)
      await until(
        async () => erased,
        (seen) => seen > before,
      )
  }
  delivering = false
  await erasing
  await bench.work()
  await worker.stop()
  await bench.work()
  await tryErase()
  await expect(planErasure(bench.db, { subject: ada })).rejects.toMatchObject({
    code: 'HKL_NOT_FOUND',
  })
  const [left] = await bench.rows<{ orders: number; decisions: number; bodies: number }>(
    `select (select count(*)::int from orders where subject = $1) as orders,
      (select count(*)::int from ledger_decisions where evidence::text like '%' || $1 || '%' or reason like '%' || $1 || '%') as decisions,
      (select count(*)::int from payloads where position(convert_to($1, 'UTF8') in body) > 0) as bodies`,
    [ada],
  )
  expect(left).toEqual({ orders: 0, decisions: 0, bodies: 0 })
  expect(erased).toBeGreaterThanOrEqual(6)
  // whoever is not meant has everything
  expect((await bench.hookledger.entitlements('user:bob')).length).toBe(1)
  const report = await audit(bench.db, { ...defaultAuditLimits, graceMs: 0 })
  expect(report.checks.filter((each) => !each.holds)).toEqual([])
})
