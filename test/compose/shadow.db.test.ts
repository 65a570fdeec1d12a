import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { Adoption } from '../../src/compose/adopt.ts'
import type { AppEntitlements } from '../../src/compose/options.ts'
import { compareShadow, endShadow } from '../../src/compose/shadow.ts'
import { watchShadow } from '../../src/compose/shadow-watch.ts'
import { partsOf } from '../../src/hookledger.ts'
import { audit } from '../../src/report/audit.ts'
import { explain } from '../../src/report/explain.ts'
import { listShadowDifferences } from '../../src/report/shadow.ts'
import { status } from '../../src/report/status.ts'
import {
  checkoutSessionCompleted,
  invoicePaid,
  refundCreated,
} from '../../src/testing/stripe-events.ts'
import { createShop, shopOptions, type Shop } from '../support/shop.ts'
import { writeTemporary } from '../support/temporary-file.ts'

let shop: Shop
/** What the app of the test says that it gives. */
let app: Awaited<ReturnType<AppEntitlements>>
beforeEach(async () => {
  app = []
  shop = await createShop({
    shadow: ['license', 'credits'],
    appEntitlements: async ({ subjects }) => app.filter((each) => subjects.includes(each.subject)),
  })
})
afterEach(() => shop.close())

const ada = 'email:ada@example.com'
const bob = 'email:bob@example.com'

async function pay(order: string, email: string): Promise<void> {
  expect(await shop.deliver(checkoutSessionCompleted({ order, email }))).toBe(200)
}

/** As if the orders had changed longer ago than an app takes to answer. */
const wait = (): Promise<unknown> =>
  shop.rows(`update orders set updated_at = updated_at - interval '10 minutes'`)

async function differences(): Promise<(readonly [string, string, string])[]> {
  await wait()
  await compareShadow(shop.db, partsOf(shop.hookledger).config)
  const rows = await listShadowDifferences(shop.db, 100)
  return rows.map(({ subject, entitlement, kind }) => [subject, entitlement, kind] as const)
}

/** The same configuration without (or with other) workflows in shadow. */
function live(shadow: readonly string[] = []): Hookledger {
  return createHookledger({ ...shopOptions, shadow, database: shop.pool })
}

async function requireAudit(): Promise<void> {
  const report = await audit(shop.db)
  expect(report.checks.filter((each) => !each.holds)).toEqual([])
}

describe('a workflow in shadow', () => {
  it('decides and records, and grants and sends nothing', async () => {
    await pay('1001', 'ada@example.com')
    await shop.work()
    expect(await shop.rows(`select state from orders`)).toEqual([{ state: 'paid' }])
    expect(await shop.rows(`select count(*)::int as n from fulfillment_effects`)).toEqual([
      { n: 2 },
    ])
    expect(await shop.rows(`select 1 from ledger_payments where applied`)).toHaveLength(1)
    expect(await shop.hookledger.entitlements(ada)).toEqual([])
    expect(await shop.rows(`select stated, active from entitlements`)).toEqual([
      { stated: true, active: false },
    ])
    expect(await shop.rows(`select 1 from outbox_operations`)).toEqual([])
    const explained = await explain(shop.db, '1001')
    const details = explained?.records[0]?.timeline.flatMap((entry) => entry.details)
    expect(details).toEqual(
      expect.arrayContaining([
        `in shadow: would grant ${ada} pro`,
        'in shadow: would send license to email',
      ]),
    )
    await requireAudit()
  })

  it('runs no SQL of its effects', async () => {
    await shop.deliver(invoicePaid({ metadata: { account_id: 'acc_1' }, amount: 2550 } as never))
    await shop.work()
    expect(await shop.rows(`select kind from decisions`)).toEqual([{ kind: 'fulfilled' }])
    expect(await shop.rows(`select 1 from shop.accounts`)).toEqual([])
  })

  it('cannot be made to grant: the database refuses it', async () => {
    await pay('1001', 'ada@example.com')
    await shop.work()
    await expect(
      shop.rows(`update entitlements set active = true, granted_by = changed_by`),
    ).rejects.toThrow('entitlements_granted_by_fkey')
  })

  it('adopts without granting', async () => {
    const file = writeTemporary(
      JSON.stringify({
        order: '1001',
        workflow: 'license',
        state: 'paid',
        effects: [{ type: 'license' }],
        entitlements: [{ subject: ada, entitlement: 'pro' }],
      }),
    )
    const adoption = new Adoption(shop.db, partsOf(shop.hookledger).config, file)
    await adoption.write(await adoption.check(), { reason: 'moving in', actor: 'ada' })
    expect(await shop.hookledger.entitlements(ada)).toEqual([])
    app = [{ subject: ada, entitlement: 'pro' }]
    expect(await differences()).toEqual([])
    await requireAudit()
  })

  it('is refused once it has granted', async () => {
    const other = await createShop()
    try {
      await other.deliver(checkoutSessionCompleted({ order: '1001' }))
      await other.work()
      const again = createHookledger({
        ...shopOptions,
        shadow: ['license'],
        database: other.pool,
      })
      await expect(partsOf(again).register()).rejects.toMatchObject({
        code: 'HKL_CONFIG_INVALID',
        message: expect.stringContaining('has granted already') as string,
      })
    } finally {
      await other.close()
    }
  })

  it('is named by a configuration that knows it', () => {
    expect(() => partsOf(live(['licence'])).config).toThrow('did you mean "license"')
  })
})

describe('the list of differences', () => {
  it('tells what only one side gives, and nothing where both agree', async () => {
    await pay('1001', 'ada@example.com')
    await pay('1002', 'bob@example.com')
    await shop.work()
    app = [
      { subject: ada, entitlement: 'pro' },
      { subject: bob, entitlement: 'beta' },
    ]
    expect(await differences()).toEqual([
      [bob, 'beta', 'only_there'],
      [bob, 'pro', 'only_here'],
    ])
    const [, { order_ids: orders } = { order_ids: [] }] = await listShadowDifferences(shop.db, 2)
    expect(orders).toEqual(['1002'])
  })

  it('compares quantities and ends where the app tells them', async () => {
    await pay('1001', 'ada@example.com')
    await shop.work()
    app = [{ subject: ada, entitlement: 'pro', quantity: 1, validUntil: null }]
    expect(await differences()).toEqual([])
    app = [{ subject: ada, entitlement: 'pro', quantity: '2' }]
    expect(await differences()).toEqual([[ada, 'pro', 'quantity']])
    app = [{ subject: ada, entitlement: 'pro', validUntil: new Date('2030-01-01') }]
    expect(await differences()).toEqual([[ada, 'pro', 'valid_until']])
  })

  it('forgets a difference that is none any more, and keeps since when another is', async () => {
    await pay('1001', 'ada@example.com')
    await shop.work()
    expect(await differences()).toEqual([[ada, 'pro', 'only_here']])
    const [first] = await listShadowDifferences(shop.db, 1)
    expect(await differences()).toEqual([[ada, 'pro', 'only_here']])
    const [second] = await listShadowDifferences(shop.db, 1)
    expect(second?.first_seen_at).toBe(first?.first_seen_at)
    await shop.deliver(refundCreated({ order: '1001', id: 're_1' }))
    await shop.work()
    expect(await shop.rows(`select state from orders`)).toEqual([{ state: 'refunded' }])
    expect(await differences()).toEqual([])
  })

  it('leaves alone what changed a moment ago: the app may not have answered yet', async () => {
    await pay('1001', 'ada@example.com')
    await shop.work()
    const { config } = partsOf(shop.hookledger)
    expect(await compareShadow(shop.db, config)).toMatchObject({
      subjects: 0,
      tooYoung: 1,
      differences: 0,
    })
  })

  it('goes through more subjects than one page', async () => {
    await shop.rows(
      `insert into orders (order_id, workflow, state) select 'o' || n, 'license', 'paid' from generate_series(1, 1100) n`,
    )
    await shop.rows(
      `insert into entitlements (order_id, subject, entitlement, active, changed_by)
       select 'o' || n, 'user:' || n, 'pro', false, 0 from generate_series(1, 1100) n`,
    )
    app = Array.from({ length: 1100 }, (_, n) => ({
      subject: `user:${n + 1}`,
      entitlement: 'pro',
    })).filter((each) => each.subject !== 'user:700')
    expect(await differences()).toEqual([['user:700', 'pro', 'only_here']])
  })

  it('is in the status, with the time of the last look', async () => {
    await pay('1001', 'ada@example.com')
    await shop.work()
    expect((await status(shop.db)).shadow).toMatchObject({
      workflows: [{ workflow: 'credits' }, { workflow: 'license' }],
      last: null,
    })
    await differences()
    expect((await status(shop.db)).shadow?.last).toMatchObject({ subjects: 1, differences: 1 })
  })

  it('is kept fresh by a worker, now and then, whatever the app answers', async () => {
    await pay('1001', 'ada@example.com')
    await shop.work()
    await wait()
    const { config, signals } = partsOf(shop.hookledger)
    const failures: string[] = []
    signals.on('worker.loop.failed', ({ loop }) => failures.push(loop))
    const failing = {
      ...config,
      appEntitlements: () => Promise.reject(new Error('the app is being rebuilt')),
    }
    expect(await watchShadow(shop.db, failing, signals)).toBe(false)
    expect(failures).toEqual(['shadow'])
    expect(await watchShadow(shop.db, config, signals)).toBe(true)
    expect(await listShadowDifferences(shop.db, 2)).toHaveLength(1)
    expect(await watchShadow(shop.db, config, signals)).toBe(false)
    await shop.rows(`update shadow_comparisons set compared_at = now() - interval '11 minutes'`)
    expect(await watchShadow(shop.db, config, signals)).toBe(true)
    expect(await watchShadow(shop.db, partsOf(live()).config, signals)).toBe(false)
  })

  it('asks in a transaction that can change nothing', async () => {
    await pay('1001', 'ada@example.com')
    await shop.work()
    await wait()
    const { config } = partsOf(shop.hookledger)
    const writing = {
      ...config,
      appEntitlements: async ({ db }: Parameters<AppEntitlements>[0]) => {
        await db.query(`delete from shop.accounts`)
        return []
      },
    }
    await expect(compareShadow(shop.db, writing)).rejects.toThrow('read-only')
    const { appEntitlements, ...silent } = config
    expect(appEntitlements).toBeDefined()
    await expect(
      compareShadow(shop.db, { ...silent, appEntitlements: undefined }),
    ).rejects.toMatchObject({ code: 'HKL_CONFIG_INVALID' })
  })
})

describe('the end of a shadow', () => {
  const by = { reason: 'the two agree', actor: 'ada' }

  it('lets what was stated count, and sends nothing of what was decided before', async () => {
    await pay('1001', 'ada@example.com')
    await pay('1002', 'bob@example.com')
    await shop.work()
    await shop.deliver(refundCreated({ order: '1002', email: 'bob@example.com', id: 're_2' }))
    await shop.work()
    await expect(
      endShadow(shop.db, partsOf(shop.hookledger).config, 'license', by),
    ).rejects.toMatchObject({ code: 'HKL_CONFIG_INVALID' })
    const after = live(['credits'])
    const { warnings } = await partsOf(after).register()
    expect(warnings.filter((each) => each.includes('shadow end license'))).toHaveLength(1)
    const { config } = partsOf(after)
    expect(await endShadow(shop.db, config, 'license', by)).toEqual({
      workflow: 'license',
      orders: 1,
      entitlements: 1,
      complete: true,
    })
    expect(await after.entitlements(ada)).toHaveLength(1)
    expect(await after.entitlements(bob)).toEqual([])
    expect(
      await shop.rows(
        `select from_state, to_state, reason, actor from decisions where kind = 'adopted'`,
      ),
    ).toEqual([{ from_state: 'paid', to_state: 'paid', ...by }])
    expect(await shop.rows(`select 1 from outbox_operations`)).toEqual([])
    expect(await endShadow(shop.db, config, 'license', by)).toMatchObject({ orders: 0 })
    expect((await status(shop.db)).shadow?.workflows).toMatchObject([{ workflow: 'credits' }])
    await requireAudit()
  })

  it('makes the same workflow grant and send what comes after', async () => {
    const after = live()
    await partsOf(after).register()
    await pay('1001', 'ada@example.com')
    await after.runOnce({ budgetMs: 10_000 })
    expect(await after.entitlements(ada)).toHaveLength(1)
    expect(await shop.rows(`select destination from outbox_operations`)).toEqual([
      { destination: 'email' },
    ])
  })

  it('until it is told, the audit takes nothing for withheld', async () => {
    await pay('1001', 'ada@example.com')
    await shop.work()
    await requireAudit()
    await shop.rows(`update shadow_workflows set ended_at = now()`)
    const report = await audit(shop.db)
    expect(report.checks.filter((each) => !each.holds).map((each) => each.check)).toEqual([
      'entitlement_withheld',
    ])
  })
})
