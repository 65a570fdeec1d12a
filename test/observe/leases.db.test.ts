/** What is counted of work that somebody held and did not finish, by each of the roles; and of answered requests. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { MeterBuffer } from '../../src/observe/meter-buffer.ts'
import { meterSignals, type CounterName } from '../../src/observe/meters.ts'
import { partsOf } from '../../src/hookledger.ts'
import { leaseFetches } from '../../src/inbox/gather/lease.ts'
import { createGatherBench } from '../support/gather-bench.ts'
import { sendingWorkflow } from '../support/outbox-proof.ts'
import { createProbe, probe, type Probe } from '../support/probe.ts'
import { scripted } from '../support/scripted-destination.ts'

const crm = scripted()
const meter = new MeterBuffer()
let bench: Probe
beforeAll(async () => {
  bench = await createProbe({ workflows: [sendingWorkflow(['crm'])], destinations: { crm } })
  meterSignals(partsOf(bench.hookledger).signals, meter)
})
beforeEach(async () => {
  await bench.reset()
  meter.take()
})
afterAll(() => bench.close())

function counted(name: CounterName, of: MeterBuffer = meter): unknown[] {
  return (of.take()?.counts ?? []).filter(([each]) => each === name).map(([, ...rest]) => rest)
}

/** Something that happens once. */
function signal(): { readonly given: Promise<void>; give(): void } {
  let give = (): void => {}
  const given = new Promise<void>((resolve) => {
    give = resolve
  })
  return { given, give: () => give() }
}

describe('hookledger_worker_leases_expired_total', () => {
  it('counts operations whose dispatcher let its lease run out', async () => {
    await bench.deliver(probe('pay', { order: 'o1' }), probe('pay', { order: 'o2' }))
    await bench.work()
    expect(counted('worker_leases_expired_total')).toEqual([])
    await bench.deliver(probe('pay', { order: 'o3' }))
    const began = signal()
    const over = signal()
    crm.next(async () => {
      // as if the process had been stopped in its call
      await bench.rows(
        `update outbox_operations set leased_until = now() - interval '1 second' where state = 'sending'`,
      )
      began.give()
      await over.given
      return { kind: 'sent', receipt: { id: 'r' }, status: 200 }
    })
    const slow = bench.work()
    await began.given
    const other = bench.another({})
    const theirs = new MeterBuffer()
    meterSignals(partsOf(other).signals, theirs)
    const counts: unknown[] = []
    while (counts.length === 0) {
      await other.runOnce({ budgetMs: 1000 })
      counts.push(...counted('worker_leases_expired_total', theirs))
    }
    over.give()
    await slow
    expect(counts).toEqual([[['dispatch'], 1]])
  })

  it('counts batches whose worker died in them', async () => {
    await bench.rows(
      `insert into inbox_batches (batch_id, event_keys, alone, worker, started_at)
       values (gen_random_uuid(), '{1}', false, 'worker:1', now() - interval '1 minute')`,
    )
    await bench.work()
    expect(counted('worker_leases_expired_total')).toEqual([[['work'], 1]])
  })

  it('counts requests to providers that nobody answered in time', async () => {
    const gathering = await createGatherBench({})
    try {
      const ctx = await gathering.parts.gatherContext()
      const theirs = new MeterBuffer()
      meterSignals(gathering.parts.signals, theirs)
      await gathering.ask(gathering.look('p1'))
      await leaseFetches(ctx, { most: 10 })
      expect(counted('worker_leases_expired_total', theirs)).toEqual([])
      await gathering.later(30_000)
      await leaseFetches(ctx, { most: 10 })
      expect(counted('worker_leases_expired_total', theirs)).toEqual([[['gather'], 1]])
    } finally {
      await gathering.close()
    }
  })
})

describe('hookledger_inbox_requests_total', () => {
  it('counts each request once, by what it was answered', async () => {
    const event = probe('pay', { order: 'o1' })
    await bench.deliver(event)
    await bench.deliver(event)
    const rawBody = Buffer.from('{}')
    await bench.hookledger.ingest({ source: 'probe', headers: {}, rawBody })
    await bench.hookledger.ingest({ source: 'nobody', headers: {}, rawBody })
    expect(counted('inbox_requests_total')).toEqual([
      [['probe', 'stored'], 1],
      [['probe', 'duplicate'], 1],
      [['probe', 'refused'], 1],
      [['(unknown)', 'refused'], 1],
    ])
  })
})
