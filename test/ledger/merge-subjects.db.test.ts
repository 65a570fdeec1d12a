import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type pg from 'pg'
import { money } from 'hookledger'
import { installFailpoints } from '../../src/core/failpoints.ts'
import { readOrderFor } from '../../src/inbox/confirm-reads.ts'
import { audit } from '../../src/report/audit.ts'
import { appTransaction } from '../support/app-transaction.ts'
import { createProbe, probe, until, type Probe } from '../support/probe.ts'
import { subjectWorkflow } from '../support/subject-workflow.ts'

let bench: Probe
beforeAll(async () => {
  bench = await createProbe({
    workflows: [subjectWorkflow()],
    entitlements: { seats: 'sum', tier: 'max' },
  })
})
afterAll(() => bench.close())
beforeEach(() => bench.reset())

const by = { reason: 'one person, two accounts', actor: 'ada' }

const transaction = <T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
  appTransaction(bench.pool, work)

const merge = (from: string, into: string): Promise<string> =>
  transaction((tx) => bench.hookledger.mergeSubjects(tx, { from, into, ...by }))
const set = (order: string, subject: string, more: object = {}): Promise<void> =>
  bench.deliver(probe('set', { order, subject, ...more }))
const has = async (subject: string): Promise<Record<string, number>> =>
  Object.fromEntries(
    (await bench.hookledger.entitlements(subject)).map(({ entitlement, quantity }) => [
      entitlement,
      quantity,
    ]),
  )

describe('mergeSubjects', () => {
  it('gives to one subject what two had, combined as declared', async () => {
    await set('o1', 'user:1', { entitlement: 'seats', quantity: 3 })
    await set('o2', 'user:2', { entitlement: 'seats', quantity: 4 })
    await set('o3', 'user:1', { entitlement: 'tier', quantity: 2 })
    await set('o4', 'user:2', { entitlement: 'tier', quantity: 1 })
    await set('o5', 'user:1', { entitlement: 'pro' })
    await bench.work()
    expect(await merge('user:1', 'user:2')).toBe('merged')
    const all = { pro: 1, seats: 7, tier: 2 }
    expect(await has('user:2')).toEqual(all)
    // asked under the old name it is the same
    expect(await has('user:1')).toEqual(all)
    expect(
      await bench.rows(`select distinct subject from current_entitlements order by subject`),
    ).toEqual([{ subject: 'user:2' }])
  })

  it('changes nothing of what decisions recorded', async () => {
    await set('o1', 'user:1')
    await bench.work()
    await merge('user:1', 'user:2')
    expect(await bench.rows(`select subject from entitlements`)).toEqual([{ subject: 'user:1' }])
    expect(await bench.rows(`select subject from orders`)).toEqual([{ subject: 'user:1' }])
    expect((await audit(bench.db)).checks.filter((each) => !each.holds)).toEqual([])
  })

  it('is recorded with who and why, and once', async () => {
    expect(await merge('user:1', 'user:2')).toBe('merged')
    expect(await merge('user:1', 'user:2')).toBe('existed')
    expect(
      await bench.rows(`select act, target, reason, actor, details from operator_acts`),
    ).toEqual([
      { act: 'subject merge', target: 'subject:user:1', ...by, details: { into: 'user:2' } },
    ])
  })

  it('follows what it was merged into, however long the chain', async () => {
    await set('o1', 'user:1')
    await bench.work()
    await merge('user:1', 'user:2')
    await merge('user:2', 'user:3')
    await merge('user:4', 'user:1')
    expect(await has('user:3')).toEqual({ team: 1 })
    expect(
      await bench.rows(`select from_subject, into_subject from subject_merges order by 1`),
    ).toEqual([
      { from_subject: 'user:1', into_subject: 'user:3' },
      { from_subject: 'user:2', into_subject: 'user:3' },
      { from_subject: 'user:4', into_subject: 'user:3' },
    ])
    expect(await merge('user:1', 'user:3')).toBe('existed')
  })

  it('refuses a circle, a second home, and oneself', async () => {
    await merge('user:1', 'user:2')
    for (const [from, into, message] of [
      ['user:2', 'user:1', 'one already'],
      ['user:1', 'user:9', 'was merged into user:2 already'],
      ['user:5', 'user:5', 'into itself'],
    ] as const) {
      await expect(merge(from, into)).rejects.toMatchObject({
        code: 'HKL_SUBJECT_INVALID',
        message: expect.stringContaining(message) as string,
      })
    }
    expect(await bench.rows(`select 1 from subject_merges`)).toHaveLength(1)
  })

  it('leaves no chain where two merges meet', async () => {
    for (let round = 0; round < 10; round += 1) {
      const [a, b, c] = ['a', 'b', 'c'].map((each) => `${each}:${round}`) as [
        string,
        string,
        string,
      ]
      await Promise.all([merge(a, b), merge(b, c)])
      expect(
        await bench.rows(
          `select into_subject from subject_merges where from_subject in ($1, $2) order by from_subject`,
          [a, b],
        ),
      ).toEqual([{ into_subject: c }, { into_subject: c }])
    }
    const { checks } = await audit(bench.db)
    expect(checks.find(({ check }) => check === 'merge_unexplained')?.holds).toBe(true)
  })

  it('is named by the audit where it has no act, or leads to one that was merged', async () => {
    await merge('user:1', 'user:2')
    await bench.rows(
      `insert into subject_merges (from_subject, into_subject, act_id) values ('user:2', 'user:3', 0)`,
    )
    const { checks } = await audit(bench.db)
    const found = checks.find(({ check }) => check === 'merge_unexplained')?.examples
    expect(found?.map(({ key }) => key).sort()).toEqual(['subject:user:1', 'subject:user:2'])
  })

  it('does not lose what a worker grants to the old subject meanwhile', async () => {
    await set('o1', 'user:1')
    let merged = false
    installFailpoints(async (step) => {
      if (step !== 'W5' || merged) return
      merged = true
      await merge('user:1', 'user:2') // the worker has written, and not committed
    })
    try {
      await bench.work()
    } finally {
      installFailpoints(null)
    }
    expect(merged).toBe(true)
    expect(await has('user:2')).toEqual({ team: 1 })
    await set('o2', 'user:1', { entitlement: 'pro' })
    await bench.work()
    expect(await has('user:2')).toEqual({ pro: 1, team: 1 })
    await bench.deliver(probe('end', { order: 'o1' }))
    await bench.work()
    expect(await has('user:2')).toEqual({ pro: 1 })
  })

  it('gives events of a linked customer the subject that it is now', async () => {
    await transaction((tx) =>
      bench.hookledger.linkCustomer(tx, {
        source: 'probe',
        customer: 'cus_1',
        subject: 'user:1',
        ...by,
      }),
    )
    await merge('user:1', 'user:2')
    await bench.deliver(probe('set', { order: 'o1', customer: 'cus_1' }))
    await bench.work()
    expect(await bench.rows(`select subject from entitlements`)).toEqual([{ subject: 'user:2' }])
    // and the link is one with both names
    const again = transaction((tx) =>
      bench.hookledger.linkCustomer(tx, {
        source: 'probe',
        customer: 'cus_1',
        subject: 'user:2',
        ...by,
      }),
    )
    expect(await again).toBe('existed')
  })

  it('lets the app open its order again under the new subject', async () => {
    const open = (subject: string): Promise<string> =>
      transaction((tx) => bench.hookledger.openOrder(tx, { id: 'o1', workflow: 'seats', subject }))
    expect(await open('user:1')).toBe('created')
    expect(await open('user:2')).toBe('mismatch')
    await bench.rows(`update findings set state = 'closed', closed_at = now()`)
    await merge('user:1', 'user:2')
    expect(await open('user:2')).toBe('existed')
    expect(await open('user:1')).toBe('existed')
    expect(await open('user:3')).toBe('mismatch')
  })

  it('keeps the recorded subject where the app completes its order under the new one', async () => {
    await set('o1', 'user:1')
    await bench.work()
    await merge('user:1', 'user:2')
    const opened = transaction((tx) =>
      bench.hookledger.openOrder(tx, {
        id: 'o1',
        workflow: 'seats',
        subject: 'user:2',
        expected: money(900, 'usd'),
      }),
    )
    expect(await opened).toBe('existed')
    expect(await bench.rows(`select subject, expected_amount::int from orders`)).toEqual([
      { subject: 'user:1', expected_amount: 900 },
    ])
  })

  it('lets the success page ask for either of the two', async () => {
    await set('o1', 'user:1')
    await bench.work()
    await merge('user:1', 'user:2')
    for (const subject of ['user:1', 'user:2'])
      expect(await readOrderFor(bench.db, { order: 'o1', subject })).toMatchObject({
        subject,
        hasSubject: true,
        hasOthers: false,
        entitlements: [{ entitlement: 'team' }],
      })
    expect(await readOrderFor(bench.db, { order: 'o1', subject: 'user:3' })).toMatchObject({
      subject: 'user:1',
      hasSubject: false,
      hasOthers: true,
      entitlements: [],
    })
  })

  it('waits for another merge that is not committed, and holds up no reader', async () => {
    const client = await bench.pool.connect()
    await client.query('begin')
    await bench.hookledger.mergeSubjects(client, { from: 'user:1', into: 'user:2', ...by })
    const second = merge('user:2', 'user:3')
    await until(
      () =>
        bench.rows(`select 1 from pg_stat_activity where wait_event_type = 'Lock'
          and query like '%share row exclusive%'`),
      (rows) => rows.length > 0,
    )
    await set('o1', 'user:1')
    await bench.work()
    expect(await has('user:1')).toEqual({ team: 1 })
    await client.query('commit')
    client.release()
    await second
    expect(await has('user:3')).toEqual({ team: 1 })
  })
})

describe('current_entitlements', () => {
  it('sums the seats of several orders of one subject, and ends each by its own date', async () => {
    const [{ soon } = { soon: new Date() }] = await bench.rows<{ soon: Date }>(
      `select clock_timestamp() + interval '1.2 seconds' as soon`,
    )
    await set('o1', 'org:1', { entitlement: 'seats', quantity: 3 })
    await set('o2', 'org:1', { entitlement: 'seats', quantity: 4, until: soon.toISOString() })
    await bench.work()
    expect(await bench.hookledger.entitlements('org:1')).toEqual([
      { entitlement: 'seats', quantity: 7, validUntil: null },
    ])
    await bench.rows(`select pg_sleep_until($1::timestamptz + interval '20 milliseconds')`, [soon])
    expect(await has('org:1')).toEqual({ seats: 3 })
  })

  it('is read by indexes, in both of its halves', async () => {
    await bench.rows(`insert into ledger_decisions (decision_id, order_id, workflow, kind, final, to_state, entitles, reason, actor)
      select n, 'b' || n, 'seats', 'moved', false, 'active', true, 'granted', 'test' from generate_series(1000001, 1020000) n`)
    await bench.rows(`insert into entitlements (order_id, subject, entitlement, active, granted_by, changed_by)
      select 'b' || n, 'user:' || n, 'pro', true, n, n from generate_series(1000001, 1020000) n`)
    await bench.rows(`insert into subject_merges (from_subject, into_subject, act_id)
      select 'user:' || n, 'user:' || n + 1, 0 from generate_series(1000001, 1020000, 2) n`)
    await bench.rows('analyze entitlements')
    await bench.rows('analyze subject_merges')
    const plans: string[] = []
    for (const subject of [
      `$1`,
      `coalesce((select m.into_subject from subject_merges m where m.from_subject = $1::text), $1::text)`,
    ]) {
      const rows = await bench.rows<{ 'QUERY PLAN': string }>(
        `explain select entitlement, quantity, valid_until from current_entitlements where subject = ${subject}`.replaceAll(
          /\$1(::text)?/g,
          `'user:1000002'::text`,
        ),
      )
      plans.push(rows.map((row) => row['QUERY PLAN']).join('\n'))
    }
    for (const plan of plans) {
      expect(plan).not.toMatch(/Seq Scan on (entitlements|subject_merges)/)
      expect(plan.match(/entitlements_subject_idx/g)).toHaveLength(2)
      expect(plan).toMatch(/subject_merges_into_idx/)
    }
    expect(await has('user:1000002')).toEqual({ pro: 1 })
  })
})
