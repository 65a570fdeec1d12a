import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type pg from 'pg'
import type { EntitlementChange, Hookledger } from 'hookledger'
import { tellEntitlementChanges } from '../../src/compose/entitlement-changes.ts'
import { createSignals } from '../../src/core/signals.ts'
import { runBatch } from '../../src/inbox/run-batch.ts'
import { anyEntitlementNews, noteEnds } from '../../src/ledger/entitlement-ends.ts'
import { takeChanges } from '../../src/ledger/tell-changes.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { Database, Executor, Statement } from '../../src/postgres/executor.ts'
import { appTransaction } from '../support/app-transaction.ts'
import { createProbe, probe, until, type Probe } from '../support/probe.ts'
import { scripted } from '../support/scripted-destination.ts'
import { subjectWorkflow } from '../support/subject-workflow.ts'

const crm = scripted()
let bench: Probe
/** The same, with nobody to be told. */
let quiet: Hookledger
beforeAll(async () => {
  bench = await createProbe({
    workflows: [subjectWorkflow()],
    entitlements: { seats: 'sum' },
    destinations: { crm },
    entitlementChanges: { to: 'crm' },
  })
  quiet = bench.another({ entitlementChanges: undefined })
})
afterAll(() => bench.close())
beforeEach(async () => {
  await bench.reset()
  crm.reset()
})

const by = { reason: 'the outage of May 3', actor: 'ada' }

const transaction = <T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
  appTransaction(bench.pool, work)

const set = (order: string, subject: string, more: object = {}): Promise<void> =>
  bench.deliver(probe('set', { order, subject, ...more }))
const inMs = async (ms: number): Promise<string> => {
  const [row] = await bench.rows<{ at: Date }>(
    `select clock_timestamp() + $1::int * interval '1 millisecond' as at`,
    [ms],
  )
  return (row?.at ?? new Date()).toISOString()
}
/** Lets what an order entitles to end so soon, after its decision; answers when. */
const endIn = async (order: string, ms: number): Promise<string> => {
  const [row] = await bench.rows<{ valid_until: Date }>(
    `update entitlements set valid_until = clock_timestamp() + $2::int * interval '1 millisecond'
     where order_id = $1 returning valid_until`,
    [order, ms],
  )
  return (row?.valid_until ?? new Date()).toISOString()
}
/** Holds an order while something is done. */
const holding = (order: string, work: (client: pg.PoolClient) => Promise<void>): Promise<void> =>
  transaction(async (client) => {
    await client.query(`select 1 from orders where order_id = $1 for no key update`, [order])
    await work(client)
  })
const past = (until: string): Promise<unknown> =>
  bench.rows(`select pg_sleep_until($1::timestamptz + interval '5 milliseconds')`, [until])

interface Told {
  readonly subject: string
  readonly because: string
  readonly order: string | null
  readonly ended: { readonly entitlement: string; readonly at: string } | null
  readonly merged_into: string | null
  readonly entitlements: readonly { readonly entitlement: string; readonly quantity: number }[]
  readonly version: string
  readonly decision: string | null
}

/** What the destination was told, in the order of the telling. */
const told = (): Told[] =>
  crm.arrived
    .map(({ body }) => JSON.parse(body) as Told)
    .sort((a, b) => Number(BigInt(a.version) - BigInt(b.version)))
const short = ({ subject, because, entitlements }: Told): string =>
  `${subject} ${because}: ${entitlements.map((each) => `${each.entitlement} ${each.quantity}`).join(', ')}`
const pending = (): Promise<unknown[]> =>
  bench.rows(`select subject, because from entitlement_changes order by change_id`)

/** What is told to listeners of one Hookledger while it works. */
async function heardOf(hookledger: Hookledger, work: () => Promise<unknown>): Promise<string[]> {
  const heard: EntitlementChange[] = []
  const stop = hookledger.onEntitlementsChanged((change) => heard.push(change))
  await work()
  // listeners are told beside the work
  await new Promise((resolve) => setTimeout(resolve, 30))
  stop()
  return heard.map(({ subject, orderId, because }) => `${subject} ${orderId} ${because}`).sort()
}

describe('entitlementChanges: { to }', () => {
  it('sends one operation for each change, with all that the subject may use then', async () => {
    await set('o1', 'org:1', { entitlement: 'seats', quantity: 3 })
    await bench.work()
    await set('o2', 'org:1', { entitlement: 'seats', quantity: 4 })
    await bench.work()
    await bench.deliver(probe('end', { order: 'o1' }))
    await bench.work()
    expect(told().map(short)).toEqual([
      'org:1 event: seats 3',
      'org:1 event: seats 7',
      'org:1 event: seats 4',
    ])
    const decisions = await bench.rows<{ id: string }>(
      `select decision_id::text as id from decisions order by decision_id`,
    )
    expect(told().map(({ decision }) => decision)).toEqual(decisions.map(({ id }) => id))
    expect(told().map(({ order }) => order)).toEqual(['o1', 'o2', 'o1'])
    expect(await pending()).toEqual([])
  })

  it('says nothing of an event that leaves everything as it is', async () => {
    await set('o1', 'org:1')
    await bench.work()
    await set('o1', 'org:1')
    await bench.work()
    expect(told()).toHaveLength(1)
  })

  it('tells of another quantity and another end', async () => {
    await set('o1', 'org:1', { quantity: 2 })
    await bench.work()
    await set('o1', 'org:1', { quantity: 5 })
    await bench.work()
    await set('o1', 'org:1', { quantity: 5, until: '2099-01-01T00:00:00Z' })
    await bench.work()
    expect(told().map(short)).toEqual([
      'org:1 event: team 2',
      'org:1 event: team 5',
      'org:1 event: team 5',
    ])
  })

  it('notes the change in the commit of its decision, and nothing where it is not configured', async () => {
    await set('o1', 'org:1')
    const { work } = await partsOf(quiet).contexts()
    await runBatch(work, { kind: 'next', after: 0n, limit: 10 })
    expect(await pending()).toEqual([])
    await set('o2', 'org:2')
    const told = await partsOf(bench.hookledger).contexts()
    await runBatch(told.work, { kind: 'next', after: 0n, limit: 10 })
    expect(await pending()).toEqual([{ subject: 'org:2', because: 'event' }])
  })

  it('tells of grants and their end, and of merges to both subjects', async () => {
    const id = await transaction((tx) =>
      bench.hookledger.grant(tx, { subject: 'user:1', entitlements: ['pro'], ...by }),
    )
    await bench.work()
    await transaction((tx) =>
      bench.hookledger.mergeSubjects(tx, { from: 'user:1', into: 'user:2', ...by }),
    )
    await bench.work()
    await transaction((tx) => bench.hookledger.endGrant(tx, { id, ...by }))
    await bench.work()
    expect(told().map(short)).toEqual([
      'user:1 grant: pro 1',
      'user:1 merge: ',
      'user:2 merge: pro 1',
      // the ledger still names user:1
      'user:2 grant: ',
    ])
    expect(told().map(({ merged_into }) => merged_into)).toEqual([null, 'user:2', null, null])
  })

  it('refuses a destination that is not configured', () => {
    expect(() => partsOf(bench.another({ entitlementChanges: { to: 'crn' } })).config).toThrow(
      'did you mean "crm"',
    )
  })
})

describe('the end of an entitlement by its date', () => {
  it('is told once, by however many watchers', async () => {
    await set('o1', 'org:1', { entitlement: 'seats', quantity: 3 })
    await set('o2', 'org:1', { entitlement: 'seats', quantity: 2 })
    await bench.work()
    const end = await endIn('o1', 400)
    expect(await noteEnds(bench.db)).toBe(0)
    await past(end)
    // nothing was written, and it is over
    expect(await bench.hookledger.entitlements('org:1')).toMatchObject([{ quantity: 2 }])
    const noted = await Promise.all(Array.from({ length: 8 }, () => noteEnds(bench.db)))
    expect(noted.reduce((sum, each) => sum + each, 0)).toBe(1)
    await bench.work()
    const [expiry] = told().filter(({ because }) => because === 'expiry')
    expect(expiry).toMatchObject({
      subject: 'org:1',
      order: 'o1',
      decision: null,
      ended: { entitlement: 'seats', at: end },
      entitlements: [{ entitlement: 'seats', quantity: 2 }],
    })
    for (let round = 0; round < 3; round += 1) await bench.work()
    expect(told().filter(({ because }) => because === 'expiry')).toHaveLength(1)
  })

  it('is told by a worker that runs, without anything that arrives', async () => {
    const heard: string[] = []
    const watcher = bench.another({})
    watcher.onEntitlementsChanged(({ because }) => heard.push(because))
    await watcher.start()
    try {
      await set('o1', 'org:1')
      await until(
        async () => heard,
        (seen) => seen.length === 1,
      )
      await endIn('o1', 100)
      await until(
        async () => heard,
        (seen) => seen.includes('expiry'),
        5000,
      )
      await until(
        async () => told(),
        (seen) => seen.some(({ because }) => because === 'expiry'),
        5000,
      )
    } finally {
      await watcher.stop()
    }
    expect(heard).toEqual(['event', 'expiry'])
  })

  it('is not told where a decision prolongs it first, and once for each end', async () => {
    await set('o1', 'org:1')
    await bench.work()
    await past(await endIn('o1', 20))
    const later = await inMs(600)
    // the order is held by whoever prolongs it: the watcher leaves it alone, and looks again
    await holding('o1', async (client) => {
      expect(await noteEnds(bench.db)).toBe(0)
      await client.query(`update entitlements set valid_until = $1`, [later])
    })
    expect(await noteEnds(bench.db)).toBe(0)
    await past(later)
    expect(await noteEnds(bench.db)).toBe(1)
    await set('o1', 'org:1', { until: await inMs(100_000) })
    await bench.work()
    expect(await noteEnds(bench.db)).toBe(0)
  })

  it('is not lost where an order is held while the mark would pass it', async () => {
    await set('o1', 'org:1')
    await set('o2', 'org:2')
    await bench.work()
    await endIn('o1', 20)
    await past(await endIn('o2', 20))
    await holding('o1', async () => {
      expect(await noteEnds(bench.db)).toBe(1)
      const [mark] = await bench.rows<{ before: boolean }>(
        `select through < (select valid_until from entitlements where order_id = 'o1') as before from entitlement_watch`,
      )
      expect(mark?.before).toBe(true)
    })
    expect(await noteEnds(bench.db)).toBe(1)
    expect(await anyEntitlementNews(bench.db)).toBe(true)
    await bench.work()
    expect(await anyEntitlementNews(bench.db)).toBe(false)
  })

  it('is told where it became visible after the mark had passed it', async () => {
    await set('o1', 'org:1', { until: '2099-01-01T00:00:00Z' })
    await bench.work()
    await bench.rows(`update entitlement_watch set through = now()`)
    // a commit that took two minutes: decided before its end, visible after
    await bench.rows(`begin; set local session_replication_role = replica;
      update entitlements set valid_until = now() - interval '1 minute';
      update ledger_decisions set decided_at = now() - interval '2 minutes'; commit`)
    expect(await noteEnds(bench.db)).toBe(1)
    expect(await noteEnds(bench.db)).toBe(0)
  })

  it('is no news where the decision itself says that it is over', async () => {
    await set('o1', 'org:1', { until: '2020-01-01T00:00:00Z' })
    await set('o2', 'org:2', { until: await inMs(-1000) })
    await bench.work()
    expect(told().map(({ because }) => because)).toEqual(['event', 'event'])
    expect(await bench.hookledger.entitlements('org:2')).toEqual([])
  })
})

describe('telling, killed at any of its statements', () => {
  it('records the operation of each change once', async () => {
    await set('o1', 'org:1', { entitlement: 'seats', quantity: 3 })
    await set('o2', 'org:2')
    const { work } = await partsOf(bench.hookledger).contexts()
    await runBatch(work, { kind: 'next', after: 0n, limit: 10 })
    await past(await endIn('o1', 20))
    let fatal = 1
    for (let ended = false; !ended && fatal < 60; fatal += 1) {
      const db = dyingAt(bench.db, fatal)
      try {
        await tellEntitlementChanges({
          db,
          to: 'crm',
          signals: createSignals(),
          addOperation: work.addOperation,
        })
        ended = true
      } catch (error) {
        expect((error as Error).message).toBe('killed')
      }
    }
    expect(fatal).toBeGreaterThan(8)
    await bench.work()
    expect(told().map(short).sort()).toEqual([
      'org:1 event: ',
      'org:1 expiry: ',
      'org:2 event: team 1',
    ])
    expect(await bench.rows(`select 1 from outbox where destination = 'crm'`)).toHaveLength(3)
  })

  it('gives a later state the higher number, whoever tells it', async () => {
    for (let n = 1; n <= 20; n += 1) await set(`o${n}`, 'org:1', { entitlement: 'seats' })
    const { work } = await partsOf(bench.hookledger).contexts()
    const batches = Array.from({ length: 20 }, async () => {
      await runBatch(work, { kind: 'next', after: 0n, limit: 1 })
      const context = { db: bench.db, to: 'crm', signals: createSignals() }
      await tellEntitlementChanges({ ...context, addOperation: work.addOperation })
    })
    await Promise.all(batches)
    await bench.work()
    const all = told()
    expect(all).toHaveLength(20)
    expect(all.at(-1)?.entitlements).toEqual([
      { entitlement: 'seats', quantity: 20, valid_until: null },
    ])
  })

  it('takes no change whose moment is later than that of its reading', async () => {
    await bench.db.transaction(async (tx) => {
      await tx.query({ text: 'select 1' })
      await set('o1', 'org:1')
      const { work } = await partsOf(bench.hookledger).contexts()
      await runBatch(work, { kind: 'next', after: 0n, limit: 10 })
      expect(await takeChanges(bench.db, tx)).toEqual([])
    })
    expect(await pending()).toHaveLength(1)
  })
})

describe('onEntitlementsChanged', () => {
  it('is called after the commit of what events, grants, merges and the clock change', async () => {
    const heard = await heardOf(quiet, async () => {
      await set('o1', 'org:1')
      await quiet.runOnce({ budgetMs: 5000 })
      await transaction(async (tx) => {
        await quiet.grant(tx, { id: 'g1', subject: 'user:1', entitlements: ['pro'], ...by })
        await quiet.mergeSubjects(tx, { from: 'user:1', into: 'user:2', ...by })
      })
      await past(await endIn('o1', 20))
      await quiet.runOnce({ budgetMs: 5000 })
    })
    expect(heard).toEqual([
      'org:1 o1 event',
      'org:1 o1 expiry',
      'user:1 null merge',
      'user:2 g1 grant',
      'user:2 null merge',
    ])
    expect(crm.arrived).toEqual([])
  })

  it('names the subject that it is now, whatever the ledger calls it', async () => {
    await transaction((tx) => quiet.mergeSubjects(tx, { from: 'user:1', into: 'user:2', ...by }))
    await quiet.runOnce({ budgetMs: 5000 })
    const heard = await heardOf(quiet, async () => {
      await set('o1', 'user:1')
      await quiet.runOnce({ budgetMs: 5000 })
    })
    expect(heard).toEqual(['user:2 o1 event'])
  })

  it('is called by the option as a function, and its failure fails nothing', async () => {
    const heard: string[] = []
    const listening = bench.another({
      entitlementChanges: ({ subject }) => {
        heard.push(subject)
        throw new Error('the app is not well')
      },
    })
    await set('o1', 'org:1')
    expect(await listening.runOnce({ budgetMs: 5000 })).toMatchObject({ events: 1 })
    await until(
      async () => heard,
      (seen) => seen.length === 1,
    )
    expect(await bench.hookledger.entitlements('org:1')).toHaveLength(1)
  })
})

/** The same database for one process, which dies at its n-th statement; what it had not committed is gone. */
function dyingAt(db: Database, fatal: number): Database {
  let statements = 0
  const step = (): void => {
    statements += 1
    if (statements >= fatal) throw new Error('killed')
  }
  return {
    ...db,
    query: <R extends object>(statement: Statement) => {
      step()
      return db.query<R>(statement)
    },
    transaction: (work, options) =>
      db.transaction((tx) => {
        const dying: Executor = {
          query: <R extends object>(statement: Statement) => {
            step()
            return tx.query<R>(statement)
          },
          execute: <R extends object>(statement: Statement) => {
            step()
            return tx.execute<R>(statement)
          },
        }
        return work(dying)
      }, options),
  }
}
