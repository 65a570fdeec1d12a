/** Deciding anew, dry runs and the success page with separate log-ins, each with its own rights only. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { createRedecider } from '../../src/compose/redecide.ts'
import { runConfiguredDryRun } from '../../src/compose/dry-run.ts'
import { partsOf } from '../../src/hookledger.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { roleName } from '../../src/postgres/roles.ts'
import { skip, type Decision } from '../../src/workflow/decision.ts'
import {
  deliverTo,
  probe,
  probeOptions,
  probeWorkflow,
  workOff,
  type ProbeHooks,
} from '../support/probe.ts'
import { createRoleBench, refusal, type RoleBench } from './role-logins.ts'

const hooks: ProbeHooks = { decide: () => skip('no price is known') as Decision }
const by = { reason: 'a price', actor: 'ada' }
let bench: RoleBench
let worker: Hookledger

beforeAll(async () => {
  bench = await createRoleBench()
  const options = probeOptions([probeWorkflow(hooks)])
  const receiver = createHookledger({
    ...options,
    schema: bench.schemaName,
    database: bench.as.receiver,
  })
  const { probe: source } = options.sources
  if (source === undefined) throw new Error('the probe has a source')
  const records = {
    kinds: [{ kind: 'session', holds: 'objects' as const, reachMs: null }],
    accounts: async (own: string) => [own],
    list: async () => ({ records: [], next: null }),
    fetch: async (reference: { kind: string; id: string; account: string }) => ({
      ...reference,
      createdAt: new Date(0),
      object: {},
    }),
    eventsOf: () => [
      {
        eventId: 'object:pay:cs_1',
        eventType: 'pay',
        occurredAt: null,
        apiVersion: null,
        body: { ...probe('pay', { order: 'c' }) },
      },
    ],
    factsOf: () => [],
    referenceOf: () => null,
    namedBy: () => null,
  }
  worker = createHookledger({
    ...options,
    sources: { probe: { ...source, records } },
    schema: bench.schemaName,
    database: bench.as.worker,
  })
  await deliverTo(receiver, [probe('pay', { id: 'evt_1', order: 'a' })])
  await workOff(worker)
  await receiver.stop()
  delete hooks.decide
})
afterAll(async () => {
  await worker.stop()
  await bench.drop()
})

describe('the worker', () => {
  it('decides anew what was skipped, and its reading of the body is recorded', async () => {
    const parts = partsOf(worker)
    const redecider = createRedecider((await parts.contexts()).work, parts.signals)
    const planned = await redecider.plan({ id: 'evt_1' }, by)
    if (planned.kind !== 'planned') throw new Error('it was decided anew already')
    expect(await redecider.apply(planned, by)).toMatchObject({ kind: 'redecided' })
    const { rows } = await bench.admin.query(
      'select reason, actor, database_role from payload_reads',
    )
    expect(rows).toEqual([{ ...by, database_role: roleName(bench.schemaName, 'worker') }])
  })

  it('confirms for the success page', async () => {
    const reference = { kind: 'session', id: 'cs_1' }
    expect(
      await worker.confirm({ source: 'probe', reference, order: 'c', subject: 'user:c' }),
    ).toMatchObject({ outcome: 'decided', state: 'paid' })
  })

  it('reads no body of an event that was fulfilled, even with a reason', async () => {
    const key = `select event_key from inbox_events where event_id = 'object:pay:cs_1'`
    expect(
      await refusal(bench.as.worker, `select redecidable_payload((${key}), 'because', 'me')`),
    ).toBe('22023')
  })

  it('makes no dry run: its role may not read the bodies of what is finished', async () => {
    const db = createDatabase(bench.as.worker, bench.schemaName)
    await expect(
      runConfiguredDryRun(db, partsOf(worker).config, new Date(0), { onDifference: () => {} }),
    ).rejects.toMatchObject({ code: 'HKL_CONFIG_INVALID' })
  })
})

describe('the receiver, the console and the privacy role', () => {
  it.each(['receiver', 'console', 'privacy'] as const)('decide nothing anew (%s)', async (role) => {
    expect(await refusal(bench.as[role], `select redecidable_payload(1, 'because', 'me')`)).toBe(
      '42501',
    )
  })
})
