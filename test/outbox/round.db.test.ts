import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { DispatchContext, FinishedAttempt } from '../../src/outbox/dispatch-context.ts'
import { lockDue } from '../../src/outbox/candidates.ts'
import { runRound, isAnythingDue } from '../../src/outbox/round.ts'
import { createExplainingPool, type CapturedPlan } from '../support/captured-plans.ts'
import { keyedPlans } from '../../src/postgres/keyed-plans.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { createOutboxBench, type OutboxBench } from '../support/dispatch-bench.ts'
import { done, scripted, unknown } from '../support/scripted-destination.ts'

const email = scripted({ sequence: 'order' }, { lookup: true })
let bench: OutboxBench
let plans: CapturedPlan[]
let ctx: DispatchContext

beforeAll(async () => {
  bench = await createOutboxBench({ email })
  const explaining = createExplainingPool(bench.database)
  plans = explaining.plans
  ctx = {
    db: createDatabase(explaining.pool, 'hookledger'),
    name: 'email',
    destination: email,
    findings: { parts: () => [] },
    signals: bench.parts.signals,
    dispatcher: 'test',
    batch: 200,
    lockTimeoutMs: 500,
  }
})
afterAll(() => bench.close())
beforeEach(async () => {
  email.reset()
  await bench.clear()
})

const round = (
  finished: readonly FinishedAttempt[] = [],
  wanted = 10,
  sweeps = false,
): ReturnType<typeof runRound> =>
  runRound(ctx, { finished, wanted, sweeps, from: '-infinity', others: true })

describe('a round', () => {
  it('takes the result that is here for what happened, and not that its lease ran out', async () => {
    const id = await bench.add('email', 'here at last')
    const [operation] = (await round()).leased
    await bench.age(id, 3_600_000)
    const refused = { kind: 'refused', error: 'no', settlesEarlier: true } as const
    const report = await round(
      [{ operation: operation as never, outcome: refused, finishedAt: performance.now() }],
      0,
      true,
    )
    expect(report.settled).toHaveLength(1)
    expect(await bench.operation(id)).toMatchObject({ state: 'dead', last_error: 'no' })
    expect(await bench.attempts(id)).toMatchObject([{ outcome: 'refused', late: false }])
  })

  it('tells two results of one operation apart by their leases', async () => {
    const id = await bench.add('email', 'twice')
    const [first] = (await round()).leased
    await bench.age(id, 3_600_000)
    await round([], 0, true)
    await bench.due()
    const [second] = (await round()).leased
    expect(second?.operationId).toBe(first?.operationId)
    const report = await round(
      [
        { operation: second as never, outcome: unknown, finishedAt: performance.now() },
        { operation: first as never, outcome: done, finishedAt: performance.now() },
      ],
      0,
    )
    expect(report.settled.map((each) => [each.held, each.lateProof])).toEqual([
      [true, false],
      [false, true],
    ])
    expect(await bench.operation(id)).toMatchObject({ state: 'sent', receipt: { id: 'receipt_1' } })
    expect(await bench.attempts(id)).toMatchObject([
      { outcome: 'sent', late: true },
      { outcome: 'uncertain', late: false },
    ])
  })

  it('writes a result once, however often it is brought', async () => {
    const id = await bench.add('email', 'unknown commit')
    const [operation] = (await round()).leased
    const result = [{ operation: operation as never, outcome: done, finishedAt: performance.now() }]
    await round(result, 0)
    const before = await bench.operation(id)
    await round(result, 0)
    expect(await bench.operation(id)).toEqual(before)
    expect(await bench.attempts(id)).toMatchObject([{ outcome: 'sent', late: false }])
  })

  it('counts what is under way again when it looks for leases that ran out', async () => {
    await bench.add('email', 'counted')
    await bench.rows('update outbox_destinations set under_way = 17')
    await round([], 0, true)
    const [row] = await bench.rows('select under_way from outbox_destinations')
    expect(row).toEqual({ under_way: 0 })
  })
})

const bigTables = ['outbox_operations', 'outbox_requests', 'outbox_attempts', 'outbox_answers']

/** Finished operations behind the engine's back: what a table is full of after a while. */
async function fill(many: number): Promise<void> {
  await bench.rows(`alter table outbox_operations set (autovacuum_enabled = off)`)
  await bench.rows(
    `insert into outbox_operations (operation_id, destination, name, order_id, request_sha256, request_bytes, promise,
       window_ms, state, next_attempt_at, finished_at)
     select gen_random_uuid(), 'email', 'old ' || n, 'old-' || n, '\\x00', 1, 'once', 1000, 'sent', null, now()
     from generate_series(1, $1::integer) n`,
    [many],
  )
  await bench.rows(
    `insert into outbox_attempts (operation_id, number, kind, key_generation, lease, dispatcher)
     select operation_id, 1, 'call', 1, 1000000000 + sequence, 'test' from outbox_operations where name like 'old %'`,
  )
  await bench.rows(
    `insert into outbox_answers (attempt_id, outcome) select attempt_id, 'sent' from outbox_attempts
     on conflict do nothing`,
  )
}

/** Everything that happens to operations: leased, settled, again, run out, looked up. */
async function live(prefix: string): Promise<void> {
  const add = (n: number): Promise<string> =>
    bench.add('email', `${prefix} ${n}`, n, `${prefix}${n}`)
  const ids = await Promise.all([1, 2, 3, 4, 5].map(add))
  const { leased } = await round()
  expect(leased).toHaveLength(5)
  const finished = leased.slice(0, 4).map((operation, n) => ({
    operation,
    outcome: n < 2 ? done : unknown,
    finishedAt: performance.now(),
  }))
  await round(finished, 10)
  await bench.age(ids[4] as string, 3_600_000)
  await round([], 10, true)
  await bench.rows(
    `update outbox_operations set next_attempt_at = now(), first_attempt_at = now() - interval '2 days' where state = 'uncertain'`,
  )
  expect(await isAnythingDue(ctx)).toBe(true)
  const again = await round()
  expect(again.leased.map((each) => each.kind)).toContain('lookup')
  await round(
    again.leased.map((operation, n) => ({
      operation,
      outcome:
        n === 0
          ? ({ kind: 'no_answer', error: 'silent' } as const)
          : ({ kind: 'present', receipt: {} } as const),
      finishedAt: performance.now(),
    })),
    10,
  )
}

describe('the plans of a round', () => {
  it.each([
    ['stale statistics', false],
    ['fresh statistics', true],
  ])('read no table from end to end and sort nothing that is due, with %s', async (_, analyzed) => {
    if (analyzed) await bench.rows('analyze')
    else {
      // plans that are kept are made while the tables are empty
      for (let n = 0; n < 8; n++) await live(`empty${n}-`)
      await fill(20_000)
    }
    plans.length = 0
    await live(`plans-${String(analyzed)}-`)
    const own = plans.filter(({ text }) => text.includes('outbox_'))
    expect(own.length).toBeGreaterThan(20)
    const scans = own.flatMap(({ text, nodes }) =>
      nodes
        .filter(({ type, table }) => type === 'Seq Scan' && bigTables.includes(table ?? ''))
        .map(({ table }) => `${table}: ${text.slice(0, 200)}`),
    )
    expect(scans).toEqual([])
    const claims = own.filter(({ text }) => text.includes('order by o.next_attempt_at, o.sequence'))
    expect(claims.length).toBeGreaterThan(0)
    for (const { nodes } of claims) expect(nodes.map(({ type }) => type)).not.toContain('Sort')
    for (const part of [
      'jsonb_to_record',
      'outbox_requests r',
      'nextval',
      'w.late',
      'leased_until <',
    ])
      expect(
        own.some(({ text }) => text.includes(part)),
        part,
      ).toBe(true)
  })

  it('read a few rows for each operation, however many are finished', async () => {
    await Promise.all([1, 2, 3].map((n) => bench.add('email', `few ${n}`, n)))
    // the plan is kept by then: a planner looks at the ends of an index, past whatever lies dead there
    for (let n = 0; n < 8; n++)
      await ctx.db.transaction((tx) => lockDue(ctx, tx, 10, '-infinity'), { setup: keyedPlans })
    const read = await ctx.db.transaction(
      async (tx) => {
        // what this connection has counted and not told yet is in there too
        const counted = async (): Promise<number> => {
          const [row] = await tx.query<{ n: number }>({
            text: `select (seq_tup_read + coalesce(idx_tup_fetch, 0))::integer as n
              from pg_stat_xact_user_tables where schemaname = 'hookledger' and relname = 'outbox_operations'`,
          })
          return row?.n ?? Number.NaN
        }
        const before = await counted()
        expect(await lockDue(ctx, tx, 10, '-infinity')).toHaveLength(3)
        return (await counted()) - before
      },
      { setup: keyedPlans },
    )
    expect(read).toBeGreaterThanOrEqual(3)
    expect(read).toBeLessThan(200)
  })
})
