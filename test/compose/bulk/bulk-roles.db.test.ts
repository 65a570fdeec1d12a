/** Bulk acts with separate log-ins: the worker's role does them, the console's looks at them. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { problemOf } from '../../../src/api/problem.ts'
import {
  approveBulk,
  cancelBulk,
  planBulk,
  startBulk,
} from '../../../src/compose/bulk/bulk-life.ts'
import { runBulk } from '../../../src/compose/bulk/bulk-run.ts'
import { listBulk, listBulkItems, readBulk } from '../../../src/compose/bulk/bulk-views.ts'
import { partsOf } from '../../../src/hookledger.ts'
import { createRoleBench, type RoleBench } from '../../postgres/role-logins.ts'
import { shopOptions } from '../../support/shop.ts'

const by = { reason: 'moved to another team', actor: 'ada' }
const filter = {
  states: ['open'],
  kind: null,
  class: null,
  owner: null,
  order_id: null,
  overdue: false,
} as const
const work = { act: 'assign', filter, details: { owner: 'night' } } as const
let bench: RoleBench
let worker: Hookledger
let looking: Hookledger

beforeAll(async () => {
  bench = await createRoleBench()
  const options = { ...shopOptions, schema: bench.schemaName }
  worker = createHookledger({ ...options, database: bench.as.worker })
  looking = createHookledger({ ...options, database: bench.as.console })
  await bench.admin.query(
    `insert into findings (finding_id, kind, class, severity, owner, evidence, due_at)
     select gen_random_uuid(), 'paid_twice', 'contradiction', 'high', 'day', '{}', now() from generate_series(1, 3)`,
  )
})
afterAll(async () => {
  await worker.stop()
  await looking.stop()
  await bench.drop()
})

describe('a bulk act with separate roles', () => {
  it('is planned, approved and done with the rights of the worker, and seen with those of the console', async () => {
    const parts = partsOf(worker)
    const db = parts.database()
    const request = { bulkId: randomUUID(), work, needsApproval: () => true }
    const { bulk_id: id, confirm } = await planBulk(db, request, by)
    await startBulk(db, id, { ...by, confirm })
    await approveBulk(db, id, { reason: 'seen', actor: 'eve', confirm })
    while (await runBulk(parts));
    const seen = partsOf(looking).database()
    expect(await readBulk(seen, id)).toMatchObject({ state: 'done', done: 3, approved_by: 'eve' })
    expect((await listBulk(seen, { limit: 10 })).items).toHaveLength(1)
    expect((await listBulkItems(seen, id, { limit: 10 })).items).toHaveLength(3)
  })

  it('is refused to a role that may only look, with what to do about it', async () => {
    const db = partsOf(looking).database()
    const request = { bulkId: randomUUID(), work, needsApproval: () => false }
    const error = await planBulk(db, request, by).catch((reason: unknown) => reason)
    expect(problemOf(error)).toMatchObject({
      status: 403,
      code: 'HKL_API_FORBIDDEN',
      message: expect.stringContaining('worker'),
    })
    const [known] = (await listBulk(db, { limit: 1 })).items
    await expect(cancelBulk(db, known?.bulk_id ?? '', by)).rejects.toMatchObject({ code: '42501' })
  })

  it('cannot be changed by the worker beyond how far it has come', async () => {
    for (const change of [
      `update bulk_acts set reason = 'another'`,
      `update bulk_acts set details = '{"owner":"mallory"}'`,
      `update bulk_items set target = 'finding:1'`,
      `delete from bulk_items`,
      `delete from bulk_acts`,
    ])
      await expect(bench.as.worker.query(change)).rejects.toMatchObject({ code: '42501' })
  })
})
