import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runConfiguredDryRun } from '../../src/compose/dry-run.ts'
import { createRedecider } from '../../src/compose/redecide.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { DryRunDifference } from '../../src/inbox/dry-run-compare.ts'
import type { DryRunReport } from '../../src/inbox/dry-run.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { move, skip } from '../../src/workflow/decision.ts'
import type { Decision } from '../../src/workflow/decision.ts'
import { notOurs, orderId } from '../../src/workflow/resolution.ts'
import { createExplainingPool } from '../support/captured-plans.ts'
import {
  clearHooks,
  createProbe,
  decideProbe,
  deliverTo,
  probe,
  probeWorkflow,
  workOff,
  type Probe,
  type ProbeBody,
  type ProbeHooks,
} from '../support/probe.ts'

let bench: Probe
const hooks: ProbeHooks = {}

beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow(hooks)] })
})
afterAll(() => bench.close())
beforeEach(async () => {
  clearHooks(hooks)
  await bench.reset()
})

async function decided(...events: ProbeBody[]): Promise<void> {
  await deliverTo(bench.hookledger, events)
  await workOff(bench.hookledger)
}

async function eachAlone(...events: ProbeBody[]): Promise<void> {
  for (const event of events) await decided(event)
}

const now = async (): Promise<Date> => {
  await new Promise((resolve) => setTimeout(resolve, 5))
  const [row] = await bench.rows<{ at: Date }>('select clock_timestamp() as at')
  await new Promise((resolve) => setTimeout(resolve, 5))
  return row?.at ?? new Date(0)
}

const longAgo = new Date(0)

const renamedEffects = (effects: readonly object[] = []): object[] =>
  effects.map((each) => ({ ...each, type: 'back' }))

async function run(
  since: Date = longAgo,
  mostMoved?: number,
): Promise<{ report: DryRunReport; found: DryRunDifference[] }> {
  // every transaction of this pool is read-only: whatever writes is refused by the server
  const pool = bench.database.pool({ max: 2, options: '-c default_transaction_read_only=on' })
  try {
    const found: DryRunDifference[] = []
    const { config } = partsOf(bench.hookledger)
    const report = await runConfiguredDryRun(createDatabase(pool, 'hookledger'), config, since, {
      onDifference: (difference) => found.push(difference),
      mostMoved,
    })
    return { report, found }
  } finally {
    await pool.end()
  }
}

const everything = async (): Promise<unknown> => {
  const tables = await bench.rows<{ name: string }>(
    `select tablename as name from pg_tables where schemaname = 'hookledger' order by 1`,
  )
  return Promise.all(
    tables.map(async ({ name }) => [
      name,
      await bench.rows(`select to_jsonb(t) as row from ${name} t order by to_jsonb(t)::text`),
    ]),
  )
}

describe('a dry run under the code that decided', () => {
  it('finds nothing, whatever the history was', async () => {
    await decided(
      probe('refund', { order: 'a' }),
      probe('pay', { order: 'a' }),
      probe('after', { order: 'a', needs: 'evt_n' }),
      probe('note', { id: 'evt_n', order: 'a', learns: 'r1' }),
      probe('note', { waits: 'r1' }),
      probe('note', { waits: 'r2' }),
      probe('other'),
    )
    await eachAlone(
      probe('pay', { order: 'b' }),
      probe('pay', { order: 'b' }),
      probe('pay', { order: 'b', payment: 'pi_2' }),
      probe('refund', { order: 'b', payment: 'pi_9' }),
      probe('refund', { order: 'b', amount: 100, payment: 'pay_b' }),
      probe('pay', { order: 'c', payment: 'pay_b' }),
    )
    const { report, found } = await run()
    expect(found).toEqual([])
    expect(report).toMatchObject({ events: 13, orders: 3, differences: 0, expired: { events: 0 } })
  })

  it.each([1, 2, 3, 4])('finds nothing wherever in history it begins (%i)', async (cut) => {
    const events = [
      probe('pay', { order: 'a' }),
      probe('note', { order: 'a', learns: 'r1' }),
      probe('refund', { order: 'a', payment: 'pay_a' }),
      probe('pay', { order: 'a', payment: 'pi_2' }),
      probe('note', { waits: 'r1' }),
    ]
    await eachAlone(...events.slice(0, cut))
    const since = await now()
    await eachAlone(...events.slice(cut))
    const { report, found } = await run(since)
    expect(found).toEqual([])
    expect(report.events).toBe(events.length - cut)
  })

  it('writes nothing at all', async () => {
    await decided(probe('pay', { order: 'a' }), probe('other'), probe('note', { waits: 'r1' }))
    const before = await everything()
    hooks.decide = () => skip('no more') as Decision
    expect((await run()).report.differences).toBeGreaterThan(0)
    expect(await everything()).toEqual(before)
  })

  it('counts events whose body is gone as they were decided, and names them', async () => {
    await eachAlone(probe('pay', { id: 'evt_gone', order: 'a' }), probe('refund', { order: 'a' }))
    await bench.rows(
      `delete from payloads where event_key = (select event_key from inbox_events where event_id = 'evt_gone')`,
    )
    const { report, found } = await run()
    expect(found).toEqual([])
    expect(report.expired).toEqual({ events: 1, examples: ['evt_gone'] })
  })

  it('takes what was decided anew for what it says, in its own place', async () => {
    hooks.decide = () => skip('no price is known') as Decision
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    clearHooks(hooks)
    const parts = partsOf(bench.hookledger)
    const redecider = createRedecider((await parts.contexts()).work, parts.signals)
    const by = { reason: 'a price', actor: 'ada' }
    const planned = await redecider.plan({ id: 'evt_1' }, by)
    if (planned.kind === 'planned') await redecider.apply(planned, by)
    await decided(probe('refund', { order: 'a' }))
    expect((await run()).found).toEqual([])
  })

  it('opens orders where the app opened them', async () => {
    const workflow = probeWorkflow({}, { name: 'shop', opens: 'app' })
    const shop = bench.another({ workflows: [workflow] })
    await partsOf(shop).register()
    const client = await bench.pool.connect()
    await client.query('begin')
    await shop.openOrder(client, { id: 'a', workflow: 'shop', subject: 'user:1' })
    await client.query('commit')
    client.release()
    await deliverTo(shop, [probe('pay', { order: 'a' })])
    await workOff(shop)
    const found: DryRunDifference[] = []
    const control = { onDifference: (each: DryRunDifference) => found.push(each) }
    const { config } = partsOf(shop)
    await runConfiguredDryRun(bench.db, config, longAgo, control)
    expect(found).toEqual([])
  })

  it('goes through an order whose history is longer than a page', async () => {
    await decided(...Array.from({ length: 230 }, () => probe('note', { order: 'a' })))
    const { report, found } = await run()
    expect(found).toEqual([])
    expect(report).toMatchObject({ events: 230, orders: 1 })
  })
})

describe('the statements of a dry run', () => {
  it('find every page by keys, and never read a table from end to end', async () => {
    await decided(
      probe('pay', { order: 'a' }),
      probe('pay', { order: 'b', payment: 'pay_a' }),
      probe('note', { waits: 'r1' }),
      probe('other'),
    )
    hooks.order = ({ order }) => orderId(`new_${order ?? ''}`)
    await bench.rows('analyze')
    const { pool, plans } = createExplainingPool(bench.database)
    const found: DryRunDifference[] = []
    await runConfiguredDryRun(
      createDatabase(pool, 'hookledger'),
      partsOf(bench.hookledger).config,
      longAgo,
      { onDifference: (each) => found.push(each) },
    )
    await pool.end()
    expect(found).not.toEqual([])
    const tables = new Set(plans.flatMap(({ nodes }) => nodes.map(({ table }) => table)))
    expect([...tables]).toEqual(
      expect.arrayContaining(['ledger_decisions', 'inbox_events', 'ledger_payments', 'orders']),
    )
    const scans = plans.flatMap(({ text, nodes }) =>
      nodes
        .filter(({ type, table }) => type === 'Seq Scan' && table !== null)
        .filter(({ table }) => !['installation', 'sources', 'migrations'].includes(table ?? ''))
        .map(({ table }) => `${table}: ${text.slice(0, 60)}`),
    )
    expect(scans).toEqual([])
  })
})

describe('a dry run under other code', () => {
  it('tells what would be decided otherwise, and how the order would end', async () => {
    await eachAlone(probe('pay', { id: 'evt_1', order: 'a' }), probe('pay', { order: 'b' }))
    hooks.decide = ({ event, order }) =>
      order.id === 'a' && event['type'] === 'pay' ? (skip('not for a') as Decision) : undefined
    const { report, found } = await run()
    expect(report.differences).toBe(2)
    expect(found).toEqual([
      {
        order_id: 'a',
        event: { id: 'evt_1', type: 'pay', source: 'stripe:probe' },
        decision_id: expect.any(String),
        recorded: 'fulfilled, pending → paid',
        now: 'skipped, pending: not for a',
        details: [],
      },
      {
        order_id: 'a',
        event: null,
        decision_id: null,
        recorded: 'paid, entitles user:a pro',
        now: 'pending',
        details: ['state: "pending", not "paid"', 'entitled, user:a pro: missing, not "1"'],
      },
    ])
  })

  it('starts each order at its recorded state', async () => {
    await decided(probe('pay', { order: 'a' }))
    const since = await now()
    await decided(probe('refund', { id: 'evt_2', order: 'a' }))
    // what is before --since is not decided again: the order is paid when the refund comes
    hooks.decide = ({ event }) =>
      event['type'] === 'pay' ? (skip('never') as Decision) : undefined
    expect((await run(since)).found).toEqual([])
    hooks.decide = ({ order, event }) =>
      event['type'] === 'refund' && order.state === 'paid'
        ? (skip('refunds are kept aside') as Decision)
        : undefined
    expect((await run(since)).found.map(({ recorded, now: would }) => [recorded, would])).toEqual([
      ['moved, paid → refunded', 'skipped, paid: refunds are kept aside'],
      ['refunded', 'paid, entitles user:a pro'],
    ])
  })

  it('tells figures that differ where the kind is the same', async () => {
    await eachAlone(probe('pay', { order: 'a' }), probe('refund', { id: 'evt_2', order: 'a' }))
    hooks.decide = (input) => {
      const decision = decideProbe(input) as { entitle?: readonly object[] }
      return (
        decision.entitle === undefined
          ? decision
          : { ...decision, entitle: [{ subject: 'user:a', entitlement: 'basic' }] }
      ) as Decision
    }
    const { found } = await run()
    expect(found.map(({ event, details }) => [event?.type ?? null, details])).toEqual([
      ['pay', ['granted: "user:a basic", not "user:a pro"']],
      ['refund', ['revoked: "user:a basic", not "user:a pro"']],
    ])
  })

  it.each([
    [1, 3],
    [3, 1],
  ])('tells how much an order would entitle to (%i, then %i)', async (was, would) => {
    const entitling =
      (quantity: number): NonNullable<ProbeHooks['decide']> =>
      (input) =>
        ({
          ...decideProbe(input),
          entitle: [{ subject: 'user:a', entitlement: 'seats', quantity }],
        }) as Decision
    hooks.decide = entitling(was)
    await decided(probe('pay', { order: 'a' }))
    expect((await run()).found).toEqual([])
    hooks.decide = entitling(would)
    expect((await run()).found).toMatchObject([
      { event: null, details: [`entitled, user:a seats: "${would}", not "${was}"`] },
    ])
  })

  it('takes a state and an effect under a new name for the same', async () => {
    await eachAlone(probe('pay', { order: 'a' }), probe('refund', { order: 'a' }))
    const renamed = probeWorkflow(
      {
        decide: (input) => {
          const decision = decideProbe(input) as { kind: string; to?: string; effects?: object[] }
          return (
            input.event['type'] === 'refund'
              ? { ...decision, to: 'returned', effects: renamedEffects(decision.effects) }
              : decision
          ) as Decision
        },
      },
      {
        states: {
          pending: {},
          paid: { entitles: true },
          returned: { renamedFrom: 'refunded' },
        },
        transitions: { pending: ['paid', 'returned'], paid: ['returned'], returned: ['paid'] },
        effects: { grant: {}, note: {}, after: {}, back: { renamedFrom: 'refund' } },
      },
    )
    const found: DryRunDifference[] = []
    const other = bench.another({ workflows: [renamed] })
    await runConfiguredDryRun(bench.db, partsOf(other).config, longAgo, {
      onDifference: (each) => found.push(each),
    })
    expect(found).toEqual([])
  })

  it('tells when the code fails on what it decided before', async () => {
    await decided(probe('pay', { id: 'evt_1', order: 'a' }))
    hooks.decide = () => {
      throw new TypeError('not a function')
    }
    expect((await run()).found[0]).toMatchObject({
      event: { id: 'evt_1' },
      now: 'fails: not a function',
    })
  })

  it('tells what would still wait, and decides what would not wait any more', async () => {
    await decided(
      probe('after', { id: 'evt_w', order: 'a', needs: 'evt_n' }),
      probe('note', { id: 'evt_n', order: 'a' }),
      probe('after', { id: 'evt_v', order: 'a', needs: 'evt_never' }),
    )
    hooks.decide = (input) =>
      input.event['id'] === 'evt_n'
        ? (skip('not a note') as Decision)
        : input.event['id'] === 'evt_v'
          ? (move({ to: 'paid', once: { type: 'after', reference: 'v' } }) as Decision)
          : undefined
    const { found } = await run()
    expect(found.map(({ event, now: would }) => [event?.id ?? null, would.split(':')[0]])).toEqual([
      ['evt_n', 'skipped, pending'],
      ['evt_v', 'moved, pending → paid'],
      ['evt_w', 'deferred'],
      [null, 'paid'],
    ])
  })

  it('looks again at what waits as soon as the order changes', async () => {
    hooks.decide = ({ event }) =>
      event['type'] === 'after' ? (skip('no such thing yet') as Decision) : undefined
    await eachAlone(
      probe('after', { id: 'evt_w', order: 'a', needs: 'evt_n' }),
      probe('note', { id: 'evt_n', order: 'a' }),
    )
    clearHooks(hooks)
    const { found } = await run()
    expect(found.map(({ event, now: would }) => [event?.id, would.split(':')[0]])).toEqual([
      ['evt_w', 'fulfilled, pending'],
    ])
  })

  it('decides events where they belong now: another order, an order at last, none at all', async () => {
    await eachAlone(
      probe('pay', { id: 'evt_1', order: 'a' }),
      probe('pay', { id: 'evt_2', waits: 'r1' }),
      probe('note', { id: 'evt_3', order: 'c' }),
    )
    hooks.order = ({ id }) =>
      id === 'evt_1' ? orderId('b') : id === 'evt_2' ? orderId('d') : notOurs('a test')
    const { found } = await run()
    expect(
      found.map(({ order_id, event, recorded, now: would }) => [
        order_id,
        event?.id ?? null,
        recorded,
        would.split(': ')[0],
      ]),
    ).toEqual(
      expect.arrayContaining([
        ['a', null, 'paid, entitles user:a pro', 'not there'],
        ['b', 'evt_1', 'fulfilled about order a', 'fulfilled, pending → paid'],
        ['b', null, 'not there', 'paid, entitles user:b pro'],
        ['d', 'evt_2', 'deferred about no order', 'fulfilled, pending → paid'],
        ['c', 'evt_3', 'fulfilled, pending', 'ignored'],
      ]),
    )
  })

  it('remembers no more than it may of what moved', async () => {
    await decided(probe('pay', { order: 'a' }), probe('pay', { order: 'b' }))
    hooks.order = ({ order }) => orderId(`new_${order ?? ''}`)
    await expect(run(longAgo, 1)).rejects.toMatchObject({ code: 'HKL_CLI_USAGE' })
  })

  it('does not run plain handlers, and says how many it left out', async () => {
    const ran: string[] = []
    const handlers = [
      { source: 'probe', types: ['noise'], run: async () => void ran.push('noise') },
    ]
    const other = bench.another({ handlers })
    await partsOf(other).register()
    await deliverTo(other, [probe('noise')])
    await workOff(other)
    const found: DryRunDifference[] = []
    const report = await runConfiguredDryRun(bench.db, partsOf(other).config, longAgo, {
      onDifference: (each) => found.push(each),
    })
    expect([ran, found, report.not_run]).toEqual([['noise'], [], 1])
  })

  it('says which role it needs where bodies may not be read', async () => {
    await decided(probe('pay', { order: 'a' }))
    await bench.rows(`drop role if exists dry_run_reader`)
    await bench.rows(`create role dry_run_reader login`)
    try {
      await bench.rows(
        `grant usage on schema hookledger to dry_run_reader; grant select on all tables in schema hookledger to dry_run_reader; revoke select on payloads, payloads_held from dry_run_reader`,
      )
      const pool = bench.database.pool({ max: 1, options: '-c role=dry_run_reader' })
      const { config } = partsOf(bench.hookledger)
      await expect(
        runConfiguredDryRun(createDatabase(pool, 'hookledger'), config, longAgo, {
          onDifference: () => {},
        }),
      ).rejects.toMatchObject({ code: 'HKL_CONFIG_INVALID' })
      await pool.end()
    } finally {
      await bench.rows(`drop owned by dry_run_reader`)
      await bench.rows(`drop role dry_run_reader`)
    }
  })
})
