import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { lookupNames, nameKey, writeNames, type NameWrite } from '../../src/ledger/names.ts'
import { createProbe, probe, probeWorkflow, type Probe } from '../support/probe.ts'

let bench: Probe
beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow()] })
})
afterAll(() => bench.close())
beforeEach(async () => {
  await bench.reset()
  await bench.deliver(probe('note', { order: 'a' }), probe('note', { order: 'b' }))
  await bench.work()
})

const named = (value: string, orderId: string | null): NameWrite => ({
  sourceId: 1,
  kind: 'ref',
  value,
  orderId,
})

const write = (...names: NameWrite[]): Promise<unknown> =>
  bench.db.transaction((tx) => writeNames(bench.db, tx, names))

const rows = (): Promise<unknown> =>
  bench.rows(`select name, order_id from order_names order by name`)

describe('writeNames', () => {
  it('binds a name that was only waited for', async () => {
    expect(await write(named('n', null))).toEqual([])
    expect(await write(named('n', 'a'))).toEqual([])
    expect(await rows()).toEqual([{ name: 'n', order_id: 'a' }])
  })

  it('never binds a name again, and tells where it leads', async () => {
    await write(named('n', 'a'))
    expect(await write(named('n', 'b'), named('m', 'b'))).toEqual([
      { sourceId: 1, kind: 'ref', value: 'n', orderId: 'a' },
    ])
    expect(await rows()).toEqual([
      { name: 'm', order_id: 'b' },
      { name: 'n', order_id: 'a' },
    ])
  })

  it('tells who wants to wait for a name that it is there', async () => {
    await write(named('n', 'a'))
    expect(await write(named('n', null))).toEqual([
      { sourceId: 1, kind: 'ref', value: 'n', orderId: 'a' },
    ])
  })

  it('prefers what is learned to what is waited for in the same batch', async () => {
    expect(await write(named('n', null), named('n', 'a'), named('n', null))).toEqual([])
    expect(await rows()).toEqual([{ name: 'n', order_id: 'a' }])
  })

  it('can be run from two sides in opposite order without a deadlock', async () => {
    const names = Array.from({ length: 200 }, (_, at) => named(`n${at}`, null))
    await Promise.all(
      Array.from({ length: 6 }, (_, side) => write(...(side % 2 ? names : [...names].reverse()))),
    )
    expect(await rows()).toHaveLength(200)
  })
})

describe('lookupNames', () => {
  it('finds what is bound, of its own source only, and not what is waited for', async () => {
    await write(named('n', 'a'), named('m', null))
    const found = await bench.db.transaction((tx) =>
      lookupNames(bench.db, tx, [
        named('n', null),
        named('m', null),
        { ...named('n', null), sourceId: 2 },
      ]),
    )
    expect([...found]).toEqual([[nameKey(named('n', null)), { orderId: 'a', workflow: 'probe' }]])
  })
})
