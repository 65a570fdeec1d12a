import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type pg from 'pg'
import { installFailpoints } from '../../src/core/failpoints.ts'
import { rescueWaits } from '../../src/inbox/sweep.ts'
import { explain } from '../../src/report/explain.ts'
import { audit, defaultAuditLimits } from '../../src/report/audit.ts'
import { appTransaction } from '../support/app-transaction.ts'
import { createProbe, probe, until, type Probe } from '../support/probe.ts'
import { subjectWorkflow } from '../support/subject-workflow.ts'

let bench: Probe
beforeAll(async () => {
  bench = await createProbe({ workflows: [subjectWorkflow()] })
})
afterAll(() => bench.close())
beforeEach(() => bench.reset())

const by = { reason: 'said so at sign-up', actor: 'ada' }
type Link = Parameters<Probe['hookledger']['linkCustomer']>[1]

const transaction = <T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
  appTransaction(bench.pool, work)

const link = (customer: string, subject: string, more: Partial<Link> = {}): Promise<string> =>
  transaction((tx) =>
    bench.hookledger.linkCustomer(tx, { source: 'probe', customer, subject, ...by, ...more }),
  )
const states = (): Promise<unknown[]> =>
  bench.rows(`select event_id, state from webhook_inbox order by event_id`)
const waits = (): Promise<unknown[]> =>
  bench.rows(`select kind, name from inbox_waits where kind = 'customer' order by name`)
const violations = async (): Promise<readonly string[]> =>
  (await audit(bench.db, { ...defaultAuditLimits, graceMs: 1 })).checks
    .filter((each) => !each.holds)
    .map((each) => each.check)

describe('linkCustomer', () => {
  it('lets an event that waits for the customer be decided, for the linked subject', async () => {
    await bench.deliver(probe('set', { id: 'evt_1', order: 'o1', customer: 'cus_1' }))
    await bench.work()
    expect(await states()).toEqual([{ event_id: 'evt_1', state: 'deferred' }])
    expect(await bench.rows(`select waits_for from webhook_inbox`)).toEqual([
      { waits_for: 'customer cus_1 to be linked with a subject' },
    ])
    expect(await link('cus_1', 'org:7')).toBe('linked')
    await bench.work()
    expect(await states()).toEqual([{ event_id: 'evt_1', state: 'processed' }])
    expect(await bench.hookledger.entitlements('org:7')).toMatchObject([{ entitlement: 'team' }])
    expect(await waits()).toEqual([])
  })

  it('is recorded once, with who and why, and says so when it is asked again', async () => {
    expect(await link('cus_1', 'org:7')).toBe('linked')
    expect(await link('cus_1', 'org:7')).toBe('existed')
    expect(
      await bench.rows(`select act, target, reason, actor, details from operator_acts`),
    ).toEqual([
      {
        act: 'customer link',
        target: 'customer:cus_1',
        ...by,
        details: { source: 'stripe:probe:test', subject: 'org:7' },
      },
    ])
  })

  it('refuses another subject, unless it is to replace the first', async () => {
    await link('cus_1', 'org:7')
    await expect(link('cus_1', 'org:8')).rejects.toMatchObject({
      code: 'HKL_SUBJECT_LINKED',
      message: expect.stringContaining('org:7') as string,
    })
    expect(await bench.rows(`select subject from customer_links`)).toEqual([{ subject: 'org:7' }])
    expect(await link('cus_1', 'org:8', { replace: true })).toBe('linked')
    expect(
      await bench.rows(`select details ->> 'before' as before from operator_acts order by act_id`),
    ).toEqual([{ before: null }, { before: 'org:7' }])
  })

  it('keeps the customers of two accounts apart', async () => {
    await bench.rows(
      `insert into sources (provider, provider_account, environment) values ('stripe', 'acct_other', 'test')`,
    )
    await link('cus_1', 'org:7')
    await bench.rows(
      `insert into customer_links (source_id, customer_id, subject)
       select source_id, 'cus_2', 'org:other' from sources where provider_account = 'acct_other'`,
    )
    await bench.deliver(probe('set', { id: 'evt_1', order: 'o1', customer: 'cus_2' }))
    await bench.work()
    expect(await states()).toEqual([{ event_id: 'evt_1', state: 'deferred' }])
  })

  it.each([
    ['an unknown source', { source: 'strip' }, 'HKL_CONFIG_UNKNOWN_NAME'],
    ['an account that the source does not allow', { account: 'acct_9' }, 'HKL_SUBJECT_INVALID'],
    ['an empty customer', { customer: '' }, 'HKL_SUBJECT_INVALID'],
    ['a subject with NUL', { subject: 'org:\u0000' }, 'HKL_SUBJECT_INVALID'],
    ['no reason', { reason: ' ' }, 'HKL_SUBJECT_INVALID'],
    ['no actor', { actor: '' }, 'HKL_SUBJECT_INVALID'],
  ])('refuses %s, and writes nothing', async (_, more, code) => {
    await expect(link('cus_1', 'org:7', more)).rejects.toMatchObject({ code })
    expect(await bench.rows(`select 1 from customer_links`)).toEqual([])
  })

  it('is nothing where the app rolls back', async () => {
    await bench.deliver(probe('set', { id: 'evt_1', order: 'o1', customer: 'cus_1' }))
    await bench.work()
    await expect(
      transaction(async (tx) => {
        await bench.hookledger.linkCustomer(tx, {
          source: 'probe',
          customer: 'cus_1',
          subject: 'org:7',
          ...by,
        })
        throw new Error('the app changed its mind')
      }),
    ).rejects.toThrow('changed its mind')
    await bench.work()
    expect(await states()).toEqual([{ event_id: 'evt_1', state: 'deferred' }])
    expect(await waits()).toEqual([{ kind: 'customer', name: 'cus_1' }])
  })
})

describe('a link and a wait for it', () => {
  it('meet where the link commits while the event is being deferred', async () => {
    await bench.deliver(probe('set', { id: 'evt_1', order: 'o1', customer: 'cus_1' }))
    let linked = false
    // decided, and nothing of it is written yet: the link comes between the reading and the wait
    installFailpoints(async (step) => {
      if (step !== 'W2' || linked) return
      linked = true
      await link('cus_1', 'org:7')
    })
    try {
      await bench.work()
    } finally {
      installFailpoints(null)
    }
    expect(linked).toBe(true)
    expect(await states()).toEqual([{ event_id: 'evt_1', state: 'processed' }])
    expect(await bench.hookledger.entitlements('org:7')).toHaveLength(1)
  })

  it('meet where the wait is written and not committed when the link comes', async () => {
    await bench.deliver(probe('set', { id: 'evt_1', order: 'o1', customer: 'cus_1' }))
    let linking: Promise<string> | undefined
    installFailpoints(async (step) => {
      if (step !== 'W5' || linking !== undefined) return
      linking = link('cus_1', 'org:7')
      await until(
        () =>
          bench.rows(`select 1 from pg_stat_activity where wait_event_type = 'Lock'
            and query like '%customer_links%'`),
        (rows) => rows.length > 0,
      )
    })
    try {
      await bench.hookledger.runOnce({ budgetMs: 5000 })
    } finally {
      installFailpoints(null)
    }
    expect(await linking).toBe('linked')
    await bench.work()
    expect(await states()).toEqual([{ event_id: 'evt_1', state: 'processed' }])
    expect(await waits()).toEqual([])
  })

  it('meet where the link is written and not committed when the event comes', async () => {
    const client = await bench.pool.connect()
    await client.query('begin')
    await bench.hookledger.linkCustomer(client, {
      source: 'probe',
      customer: 'cus_1',
      subject: 'org:7',
      ...by,
    })
    await bench.deliver(
      probe('set', { id: 'evt_1', order: 'o1', customer: 'cus_1' }),
      probe('set', { id: 'evt_2', order: 'o2', subject: 'user:2' }),
    )
    const working = bench.work()
    // somebody else's customer holds up nobody
    await until(
      () => bench.hookledger.entitlements('user:2'),
      (has) => has.length === 1,
    )
    await client.query('commit')
    client.release()
    await working
    await until(
      async () => {
        await bench.work()
        return bench.hookledger.entitlements('org:7')
      },
      (has) => has.length === 1,
    )
    expect(await rescueWaits(bench.db)).toBe(0)
  })

  it('leave nothing to the net, and what it would be for is found by it and by the audit', async () => {
    await bench.deliver(probe('set', { id: 'evt_1', order: 'o1', customer: 'cus_1' }))
    await bench.work()
    expect(await rescueWaits(bench.db)).toBe(0)
    // a link that went past the door wakes nobody
    await bench.rows(`update customer_links set subject = 'org:7', linked_at = now()`)
    await bench.rows(`update inbox_deferred set deferred_at = now() - interval '1 minute'`)
    await bench.rows(`update customer_links set linked_at = now() - interval '30 seconds'`)
    expect(await violations()).toEqual(expect.arrayContaining(['wake_up_lost', 'link_unexplained']))
    expect(await rescueWaits(bench.db)).toBe(1)
    await bench.work()
    expect(await bench.hookledger.entitlements('org:7')).toHaveLength(1)
  })

  it('wake every event of the customer, and of no other', async () => {
    await bench.deliver(
      ...[1, 2, 3].map((n) => probe('set', { id: `evt_${n}`, order: `o${n}`, customer: 'cus_1' })),
      probe('set', { id: 'evt_9', order: 'o9', customer: 'cus_9' }),
    )
    await bench.work()
    await link('cus_1', 'org:7')
    expect(await bench.work()).toBe(3)
    expect(await waits()).toEqual([{ kind: 'customer', name: 'cus_9' }])
  })
})

describe('explain', () => {
  it('shows what waits for a customer', async () => {
    await bench.deliver(probe('set', { id: 'evt_1', order: 'o1', customer: 'cus_1' }))
    await bench.work()
    const explained = await explain(bench.db, 'cus_1')
    expect(explained?.asked).toMatchObject({ kind: 'customer', order_ids: [] })
    expect(explained?.records[0]?.events.map((each) => each.event_id)).toEqual(['evt_1'])
  })
})

describe('defer with linkedCustomer', () => {
  it('is dead where the handler does not name that customer, since nothing could tell of its link', async () => {
    await bench.deliver(probe('wrong', { id: 'evt_1', order: 'o1' }))
    await bench.work()
    expect(await bench.rows(`select state, last_error from webhook_inbox`)).toEqual([
      {
        state: 'dead',
        last_error: expect.stringContaining(
          "whom the handler's `customer` does not name",
        ) as string,
      },
    ])
  })
})
