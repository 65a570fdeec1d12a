/** Links, merges, and the telling of changes with separate log-ins: the rights of a worker suffice. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type pg from 'pg'
import { createHookledger, type Hookledger } from 'hookledger'
import { deliverTo, probe, probeOptions, workOff } from '../support/probe.ts'
import { scripted } from '../support/scripted-destination.ts'
import { subjectWorkflow } from '../support/subject-workflow.ts'
import { createRoleBench, type RoleBench } from './role-logins.ts'

const crm = scripted()
let bench: RoleBench
let worker: Hookledger
let receiver: Hookledger
beforeAll(async () => {
  bench = await createRoleBench()
  const options = {
    ...probeOptions([subjectWorkflow()]),
    destinations: { crm },
    entitlementChanges: { to: 'crm' },
    schema: bench.schemaName,
  }
  worker = createHookledger({ ...options, database: bench.as.worker })
  receiver = createHookledger({ ...options, database: bench.as.receiver })
})
afterAll(async () => {
  await receiver.stop()
  await worker.stop()
  await bench.drop()
})

async function transaction(work: (client: pg.PoolClient) => Promise<unknown>): Promise<void> {
  const client = await bench.as.worker.connect()
  try {
    await client.query('begin')
    await work(client)
    await client.query('commit')
  } finally {
    client.release(true)
  }
}

it('links a customer whom an event waits for, merges its subject, and tells of all and of the end', async () => {
  const by = { reason: 'sign-up', actor: 'app' }
  await deliverTo(receiver, [probe('set', { order: 'o1', customer: 'cus_1' })])
  await workOff(worker)
  await transaction((tx) =>
    worker.linkCustomer(tx, { source: 'probe', customer: 'cus_1', subject: 'user:1', ...by }),
  )
  await workOff(worker)
  await transaction((tx) => worker.mergeSubjects(tx, { from: 'user:1', into: 'user:2', ...by }))
  await workOff(worker)
  await bench.admin.query(
    `update entitlements set valid_until = clock_timestamp() + interval '20 milliseconds'`,
  )
  await bench.admin.query('select pg_sleep(0.03)')
  await workOff(worker)
  expect(await worker.entitlements('user:1')).toEqual([])
  const told = crm.arrived.map(({ body }) => JSON.parse(body) as Record<string, unknown>)
  expect(
    told.map(({ subject, because }) => `${String(subject)} ${String(because)}`).sort(),
  ).toEqual(['user:1 event', 'user:1 merge', 'user:2 expiry', 'user:2 merge'])
})
