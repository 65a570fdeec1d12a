import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { handle, stripe, type Hookledger, type HookledgerOptions } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import {
  createProbe,
  deliverTo,
  probe,
  probeSecret,
  probeWorkflow,
  workOff,
  type Probe,
  type ProbeShape,
} from '../support/probe.ts'
import { steppedPool } from '../support/stepped-pool.ts'

let bench: Probe
beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow()] })
})
afterAll(() => bench.close())
beforeEach(async () => {
  await bench.reset()
  await bench.rows(`delete from workflow_versions; delete from workflow_states`)
})

/** A process with this form of the workflow, registered as its start does. */
async function process(
  shape: ProbeShape,
  more: Partial<HookledgerOptions> = {},
): Promise<Hookledger & { readonly warnings: readonly string[] }> {
  const hookledger = bench.another({ workflows: [probeWorkflow({}, shape)], ...more })
  const { warnings } = await partsOf(hookledger).register()
  return { ...hookledger, warnings, runOnce: hookledger.runOnce.bind(hookledger) }
}

const start = (shape: ProbeShape): Promise<unknown> =>
  partsOf(bench.another({ workflows: [probeWorkflow({}, shape)] })).register()

const states = async (): Promise<unknown> =>
  Object.fromEntries(
    (
      await bench.rows<{ event_id: string; state: string }>(
        `select event_id, state from webhook_inbox`,
      )
    ).map((row) => [row.event_id, row.state]),
  )

const older: ProbeShape = { types: ['pay'] }
const newer: ProbeShape = { types: ['pay', 'note'] }

describe('processes that start at once', () => {
  it('all register on a schema that knew nothing, round after round', async () => {
    for (let round = 0; round < 15; round++) {
      await bench.rows(`delete from workflow_versions; delete from workflow_states`)
      await expect(Promise.all([1, 2, 3, 4].map(() => start({})))).resolves.toHaveLength(4)
    }
  })
})

describe('a worker that is not the newest', () => {
  it('leaves types that it does not know on the ready list, and the newest decides them', async () => {
    const old = await process(older)
    const next = await process(newer)
    await deliverTo(old, [
      probe('note', { id: 'evt_new', order: 'x' }),
      probe('pay', { id: 'evt_known', order: 'x' }),
      probe('other', { id: 'evt_other' }),
    ])
    await workOff(old)
    expect(await states()).toEqual({
      evt_new: 'pending',
      evt_known: 'processed',
      evt_other: 'pending',
    })
    await workOff(next)
    expect(await states()).toEqual({
      evt_new: 'processed',
      evt_known: 'processed',
      evt_other: 'ignored',
    })
    expect(await bench.rows(`select reason from decisions where kind = 'ignored'`)).toEqual([
      { reason: 'nothing handles other' },
    ])
  })

  it('knows so from the moment that a newer one has registered', async () => {
    const old = await process(older)
    await deliverTo(old, [probe('note', { id: 'evt_1' })])
    await workOff(old)
    expect(await states()).toEqual({ evt_1: 'ignored' })
    await process(newer)
    await deliverTo(old, [probe('note', { id: 'evt_2', order: 'x' })])
    await workOff(old)
    expect(await states()).toEqual({ evt_1: 'ignored', evt_2: 'pending' })
  })

  it('ignores nothing while a newer one is registering, which is told of all that was ignored before', async () => {
    const pool = steppedPool(bench.pool)
    const old = bench.another({ workflows: [probeWorkflow({}, older)] }, pool as never)
    await partsOf(old).register()
    await deliverTo(old, [probe('note', { id: 'evt_1' })])
    const arrived = pool.holdAt(/^with decided as/)
    const ignoring = workOff(old)
    await arrived
    const registering = process(newer)
    await new Promise((resolve) => setTimeout(resolve, 100))
    pool.go()
    await ignoring
    expect((await registering).warnings).toContainEqual(
      expect.stringContaining('1 ignored events of type note'),
    )
  })

  it('leaves the events of orders in states that it does not know', async () => {
    const withHeld: ProbeShape = {
      types: ['pay', 'note'],
      states: { pending: {}, paid: { entitles: true }, refunded: {}, held: {} },
      transitions: { pending: ['paid', 'held'], held: ['paid'], paid: ['refunded'] },
    }
    const old = await process(newer)
    const next = await process(withHeld)
    await deliverTo(next, [probe('note', { order: 'x' })])
    await workOff(next)
    await bench.rows(`update orders set state = 'held'`)
    await deliverTo(old, [
      probe('pay', { id: 'evt_1', order: 'x' }),
      probe('pay', { id: 'evt_2', order: 'y' }),
    ])
    await workOff(old)
    expect(await states()).toMatchObject({ evt_1: 'pending', evt_2: 'processed' })
    await workOff(next)
    expect(await bench.rows(`select state from orders where order_id = 'x'`)).toEqual([
      { state: 'paid' },
    ])
  })

  it('leaves the types of a workflow, of a handler and the events of a source that only a newer configuration has', async () => {
    const old = await process(older)
    const next = await process(older, {
      workflows: [
        probeWorkflow({}, older),
        probeWorkflow({}, { name: 'another', types: ['note'] }),
      ],
      handlers: [handle('probe', 'plain', () => Promise.resolve())],
      sources: {
        probe: stripe({ environment: 'test', signingSecrets: [probeSecret] }),
        second: stripe({ environment: 'test', signingSecrets: [probeSecret], account: 'acct_2' }),
      },
    })
    await deliverTo(next, [
      probe('note', { id: 'evt_workflow', order: 'n' }),
      probe('plain', { id: 'evt_handler' }),
      probe('pay', { id: 'evt_account', order: 'p', account: 'acct_2' }),
    ])
    await workOff(old)
    expect(await states()).toEqual({
      evt_workflow: 'pending',
      evt_handler: 'pending',
      evt_account: 'pending',
    })
    await workOff(next)
    expect(await bench.rows(`select event_id, kind from decisions order by event_id`)).toEqual([
      { event_id: 'evt_account', kind: 'ignored' },
      { event_id: 'evt_handler', kind: 'handled' },
      { event_id: 'evt_workflow', kind: 'fulfilled' },
    ])
  })

  it('is the newest again when the newer version was retired, and not by being restarted', async () => {
    const old = await process(older)
    await process(newer)
    await process(older)
    await deliverTo(old, [probe('note', { id: 'evt_1' })])
    await workOff(old)
    expect(await states()).toEqual({ evt_1: 'pending' })
    await bench.rows(
      `update workflow_versions set retired_at = now() where workflow = 'probe' and version = $1`,
      [probeWorkflow({}, newer).version],
    )
    await workOff(old)
    expect(await states()).toEqual({ evt_1: 'ignored' })
  })
})

describe('a start', () => {
  it('tells of the events that were ignored before their type was handled, and what replays them', async () => {
    const old = await process(older)
    await deliverTo(old, [probe('note'), probe('note'), probe('other')])
    await workOff(old)
    const { warnings } = await process(newer)
    expect(warnings).toContain(
      '2 ignored events of type note, which workflow "probe" handles now: hookledger replay --type note',
    )
    expect((await process(newer)).warnings.join()).not.toContain('ignored events')
  })

  it('tells the same of a plain handler', async () => {
    const old = await process(older)
    await deliverTo(old, [probe('plain')])
    await workOff(old)
    const { warnings } = await process(older, {
      handlers: [handle('probe', 'plain', () => Promise.resolve())],
    })
    expect(warnings).toContain(
      '1 ignored events of type plain, which a handler handles now: hookledger replay --type plain',
    )
  })

  it('is refused where orders are in a state that the workflow no longer declares', async () => {
    const old = await process({})
    await deliverTo(old, [probe('pay', { order: 'x' })])
    await workOff(old)
    await expect(
      start({ states: { pending: {}, refunded: {} }, transitions: {} }),
    ).rejects.toMatchObject({
      code: 'HKL_WORKFLOW_STATE_RETIRED',
      message: expect.stringContaining('"paid"') as unknown,
    })
  })

  it('is refused where orders have an effect that the workflow no longer declares', async () => {
    const old = await process({})
    await deliverTo(old, [probe('pay', { order: 'x' })])
    await workOff(old)
    await expect(start({ effects: { note: {}, after: {}, refund: {} } })).rejects.toMatchObject({
      code: 'HKL_WORKFLOW_STATE_RETIRED',
      message: expect.stringContaining('"grant"') as unknown,
    })
  })

  it('is allowed to drop what no order has', async () => {
    const old = await process({})
    await deliverTo(old, [probe('pay', { order: 'x' })])
    await workOff(old)
    await start({
      states: { pending: {}, paid: { entitles: true } },
      transitions: { pending: ['paid'] },
      effects: { grant: {}, note: {} },
    })
  })

  it('is refused where a known state changed whether it entitles', async () => {
    await process({})
    await expect(
      start({ states: { pending: { entitles: true }, paid: { entitles: true }, refunded: {} } }),
    ).rejects.toMatchObject({ code: 'HKL_WORKFLOW_INVALID' })
  })

  it('reads states and effects under the names that they have now', async () => {
    const old = await process({})
    await deliverTo(old, [probe('pay', { order: 'x' })])
    await workOff(old)
    const renamed: ProbeShape = {
      states: { pending: {}, bought: { entitles: true, renamedFrom: 'paid' }, refunded: {} },
      transitions: { pending: ['bought'], bought: ['refunded'] },
      effects: { license: { renamedFrom: 'grant' }, note: {}, after: {}, refund: {} },
    }
    const seen: unknown[] = []
    const next = bench.another({
      workflows: [
        probeWorkflow(
          {
            decide: ({ order, effects }) => {
              seen.push(
                order.state,
                effects.map((each) => each.type),
              )
              return undefined
            },
          },
          renamed,
        ),
      ],
    })
    await partsOf(next).register()
    await deliverTo(next, [probe('refund', { id: 'evt_r', order: 'x' })])
    await workOff(next)
    expect(seen).toEqual(['bought', ['license']])
    expect(
      await bench.rows(`select from_state, to_state from decisions where event_id = 'evt_r'`),
    ).toEqual([{ from_state: 'bought', to_state: 'refunded' }])
    expect(await bench.rows(`select 1 from current_entitlements`)).toEqual([])
  })
})

describe('an event that was ignored before its type was handled', () => {
  it('is decided when it is made ready again', async () => {
    const old = await process(older)
    await deliverTo(old, [probe('note', { id: 'evt_1', order: 'x' })])
    await workOff(old)
    const next = await process(newer)
    await bench.rows(
      `with gone as (delete from inbox_ignored returning event_key, received_on) insert into inbox_ready (event_key, received_on) select * from gone`,
    )
    await workOff(next)
    expect(await bench.rows(`select kind, final from decisions order by decision_id`)).toEqual([
      { kind: 'ignored', final: false },
      { kind: 'fulfilled', final: true },
    ])
  })
})
