/** Erasure with separate log-ins: the role for privacy may, though it reads no body by it; no other one may. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { applyErasure, planErasure } from '../../src/compose/erase.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { deliverTo, probe, probeOptions, workOff } from '../support/probe.ts'
import { subjectWorkflow } from '../support/subject-workflow.ts'
import { createRoleBench, loginRoles, type RoleBench } from './role-logins.ts'

let bench: RoleBench
let worker: Hookledger
let receiver: Hookledger
beforeAll(async () => {
  bench = await createRoleBench()
  const options = { ...probeOptions([subjectWorkflow()]), schema: bench.schemaName }
  worker = createHookledger({ ...options, database: bench.as.worker })
  receiver = createHookledger({ ...options, database: bench.as.receiver })
  await deliverTo(receiver, [probe('set', { order: 'o1', subject: 'user:ada' })])
  await workOff(worker)
})
afterAll(async () => {
  await receiver.stop()
  await worker.stop()
  await bench.drop()
})

const request = { subject: 'user:ada', confirm: 'user:ada', reason: 'they asked', actor: 'dpo' }

it.each(loginRoles.filter((role) => role !== 'privacy'))(
  'is refused to the role of a %s, with what to do',
  async (role) => {
    const db = createDatabase(bench.as[role], bench.schemaName)
    await expect(applyErasure(db, request)).rejects.toMatchObject({ code: 'HKL_ERASE_FORBIDDEN' })
    await expect(
      bench.as[role].query(
        `insert into erasures (erasure_id, pseudonym, reason, actor) values (gen_random_uuid(), 'x', 'r', 'a')`,
      ),
    ).rejects.toMatchObject({ code: '42501' })
  },
)

it('is done by the role for privacy, which is recorded, and cannot change a record otherwise', async () => {
  const db = createDatabase(bench.as.privacy, bench.schemaName)
  expect(await planErasure(db, request)).toMatchObject({ orders: 1, bodies: 1, applied: false })
  const done = await applyErasure(db, request)
  expect(done).toMatchObject({ applied: true, bodies: 1 })
  const { rows } = await bench.admin.query(
    'select a.database_role as by, e.database_role as role from operator_acts a, erasures e where a.act_id = $1',
    [done.act_id],
  )
  const role = `${bench.schemaName}_privacy`
  expect(rows).toEqual([{ by: role, role }])
  for (const statement of [
    `update ledger_decisions set reason = 'x'`,
    `select erase_names('{}', '{}', 0)`,
    'select body from payloads',
  ])
    await expect(bench.as.privacy.query(statement)).rejects.toMatchObject({ code: '42501' })
})

it('leaves a worker able to go on with the order', async () => {
  await deliverTo(receiver, [probe('end', { order: 'o1' })])
  await workOff(worker)
  const { rows } = await bench.admin.query(
    `select o.state, e.active from orders o join entitlements e using (order_id)`,
  )
  expect(rows).toEqual([{ state: 'ended', active: false }])
})
