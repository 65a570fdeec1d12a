import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createGatherBench, type GatherBench } from '../../support/gather-bench.ts'
import { probe } from '../../support/probe.ts'

let bench: GatherBench
beforeAll(async () => {
  bench = await createGatherBench({
    gather: { callsPerSecond: 1000, callsPerSecondPerAccount: 1000 },
  })
})
afterAll(() => bench.close())
beforeEach(async () => {
  bench.provider.reset()
  await bench.reset()
})

describe('a mirror whose provider is asked', () => {
  it('is decided from the answer, which stands in the decision as its evidence', async () => {
    bench.provider.plans.set('p1', { status: 'active', seats: 3 })
    await bench.deliver(bench.look('p1'))
    expect(await bench.work()).toBe(1)
    expect(await bench.order('o_p1')).toEqual({
      state: 'active',
      has: 'team 3',
      sent: 1,
      answered: 1,
      applied: 1,
    })
    const [row] = await bench.rows(
      `select d.kind, d.evidence -> 'fetch' as fetch, encode(e.body_sha256, 'hex') as sha256, e.evidence_id::text as id, e.is_late
       from decisions d join evidence e on e.evidence_id = (d.evidence -> 'fetch' ->> 'evidence')::bigint`,
    )
    expect(row).toMatchObject({
      kind: 'moved',
      fetch: { about: 'plan p1', number: '1', evidence: row?.['id'], sha256: row?.['sha256'] },
      is_late: false,
    })
    expect(await bench.rows('select 1 from fetches union all select 1 from inbox_gathers')).toEqual(
      [],
    )
  })

  it('knows an object that is gone as a state of its own', async () => {
    await bench.deliver(bench.look('p2'))
    expect(await bench.work()).toBe(1)
    expect(await bench.order('o_p2')).toMatchObject({ state: 'ended', has: null })
    expect(await bench.rows('select is_found from evidence')).toEqual([{ is_found: false }])
  })
})

describe('an event that something is gathered for', () => {
  it('is given what was found out, with its order as it stood before the request', async () => {
    bench.provider.plans.set('p1', { status: 'active' })
    bench.provider.found = ({ order }) => ({ state: order?.state ?? null })
    await bench.deliver(bench.look('p1'))
    await bench.work()
    await bench.deliver(probe('ask', { id: 'evt_ask', order: 'o_p1', text: 'wörld' }))
    expect(await bench.work()).toBe(1)
    expect(bench.provider.gathered[0]).toMatchObject({
      event: { id: 'evt_ask', text: 'wörld', synthetic: false },
      source: 'probe',
      order: { id: 'o_p1', state: 'active', subject: 'org:o_p1', workflow: 'plans' },
    })
    expect(await bench.rows('select data from fulfillment_effects')).toEqual([
      { data: { evidence: { state: 'active' } } },
    ])
    expect(await bench.rows(`select 1 from looked_at where kind = 'event'`)).toEqual([])
  })
})
