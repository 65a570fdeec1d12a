import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type pg from 'pg'
import type { GrantRequest } from 'hookledger'
import { createHookledger, defineWorkflow } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { audit } from '../../src/report/audit.ts'
import { explain } from '../../src/report/explain.ts'
import { status } from '../../src/report/status.ts'
import { checkoutSessionCompleted } from '../../src/testing/stripe-events.ts'
import { appTransaction } from '../support/app-transaction.ts'
import { createShop, type Shop } from '../support/shop.ts'

let shop: Shop
beforeAll(async () => {
  shop = await createShop()
})
afterAll(() => shop.close())

const by = { reason: 'the outage of May 3', actor: 'ada' }
let subjects = 0
const someone = (): string => `user:${++subjects}`

const inTransaction = <T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> =>
  appTransaction(shop.pool, work)

const grant = (
  request: Pick<GrantRequest, 'subject' | 'entitlements'> & Partial<GrantRequest>,
): Promise<string> => inTransaction((tx) => shop.hookledger.grant(tx, { ...by, ...request }))

describe('grant', () => {
  it('entitles by an order of its own, with a decision that says why and by whom', async () => {
    const subject = someone()
    const id = await grant({
      subject,
      entitlements: ['pro', { entitlement: 'seats', quantity: 5 }],
    })
    expect(await shop.hookledger.entitlements(subject)).toEqual([
      { entitlement: 'pro', quantity: 1, validUntil: null },
      { entitlement: 'seats', quantity: 5, validUntil: null },
    ])
    expect(
      await shop.rows(`select workflow, state, subject from orders where order_id = $1`, [id]),
    ).toEqual([{ workflow: 'grant', state: 'granted', subject }])
    const explained = await explain(shop.db, id)
    const texts = explained?.records[0]?.timeline.map(({ text }) => text)
    expect(texts).toEqual([`ada did grant order:${id}`, 'opened, granted'])
    const details = explained?.records[0]?.timeline.at(-1)?.details
    expect(details).toEqual(
      expect.arrayContaining([
        'because the outage of May 3',
        `granted ${subject} pro`,
        `granted ${subject} seats`,
      ]),
    )
  })

  it('is nothing where the app rolls back', async () => {
    const subject = someone()
    let id = ''
    await expect(
      inTransaction(async (tx) => {
        id = await shop.hookledger.grant(tx, { subject, entitlements: ['pro'], ...by })
        throw new Error('the app changed its mind')
      }),
    ).rejects.toThrow('changed its mind')
    expect(await shop.hookledger.entitlements(subject)).toEqual([])
    expect(
      await shop.rows(`select 1 from operator_acts where target = 'order:' || $1`, [id]),
    ).toEqual([])
  })

  it('holds until its end is past, by the clock of the database', async () => {
    const subject = someone()
    const [{ soon } = { soon: new Date() }] = await shop.rows<{ soon: Date }>(
      `select clock_timestamp() + interval '1.5 seconds' as soon`,
    )
    await grant({ subject, entitlements: ['pro'], until: soon })
    expect(await shop.hookledger.entitlements(subject)).toEqual([
      { entitlement: 'pro', quantity: 1, validUntil: soon },
    ])
    await shop.rows(`select pg_sleep_until($1::timestamptz + interval '50 milliseconds')`, [soon])
    expect(await shop.hookledger.entitlements(subject)).toEqual([])
  })

  it('is given once under its own id, however often it is asked for', async () => {
    const request = { subject: someone(), entitlements: ['pro'], id: 'ticket:71' }
    expect(await Promise.all([grant(request), grant(request), grant(request)])).toEqual([
      'ticket:71',
      'ticket:71',
      'ticket:71',
    ])
    expect(
      await shop.rows(`select 1 from ledger_decisions where order_id = 'ticket:71'`),
    ).toHaveLength(1)
    await expect(grant({ ...request, entitlements: ['pro', 'beta'] })).rejects.toMatchObject({
      code: 'HKL_GRANT_INVALID',
      message: expect.stringContaining('exists with another') as string,
    })
  })

  it('takes no id of another order, and wakes no event of it', async () => {
    await shop.deliver(checkoutSessionCompleted({ order: '5001' }))
    await shop.work()
    await expect(
      grant({ subject: someone(), entitlements: ['pro'], id: '5001' }),
    ).rejects.toMatchObject({ code: 'HKL_GRANT_INVALID' })
    expect(await shop.rows(`select workflow, state from orders where order_id = '5001'`)).toEqual([
      { workflow: 'license', state: 'paid' },
    ])
  })

  it.each<[string, Partial<GrantRequest>]>([
    ['a reason', { reason: ' ' }],
    ['an actor', { actor: '' }],
    ['at least one entitlement', { entitlements: [] }],
    ['positive integer', { entitlements: [{ entitlement: 'seats', quantity: 0 }] }],
    ['is named twice', { entitlements: ['pro', 'pro'] }],
    ['subject of the grant', { subject: '' }],
    ['contains NUL', { entitlements: ['p\u0000o'] }],
    ['is past', { until: new Date('2020-01-01') }],
    ['must be a Date', { until: new Date(Number.NaN) }],
  ])('refuses what could not be explained or hold: %s', async (message, wrong) => {
    await expect(
      grant({ subject: 'user:0', entitlements: ['pro'], ...wrong }),
    ).rejects.toMatchObject({
      code: 'HKL_GRANT_INVALID',
      message: expect.stringContaining(message) as string,
    })
  })

  it('keeps its name from the workflows of users', () => {
    const mine = defineWorkflow('grant', {
      sources: ['stripe'],
      initial: 'open',
      states: { open: {} },
      transitions: {},
      effects: {},
    })
    const { sources } = partsOf(shop.hookledger).config
    const options = {
      sources: Object.fromEntries([...sources].map(([name, { source }]) => [name, source])),
      workflows: [mine],
    }
    expect(() => partsOf(createHookledger(options)).config).toThrow('"grant" is reserved')
  })
})

describe('endGrant', () => {
  it('revokes by a decision, once', async () => {
    const subject = someone()
    const id = await grant({ subject, entitlements: ['pro'] })
    const end = { id, reason: 'a mistake', actor: 'bob' }
    const answers = await Promise.all([
      inTransaction((tx) => shop.hookledger.endGrant(tx, end)),
      inTransaction((tx) => shop.hookledger.endGrant(tx, end)),
    ])
    expect([...answers].sort()).toEqual(['already_ended', 'ended'])
    expect(await shop.hookledger.entitlements(subject)).toEqual([])
    expect(
      await shop.rows(
        `select kind, from_state, to_state, reason, actor from decisions where order_id = $1 order by decision_id`,
        [id],
      ),
    ).toEqual([
      { kind: 'opened', from_state: null, to_state: 'granted', ...by },
      {
        kind: 'moved',
        from_state: 'granted',
        to_state: 'ended',
        reason: 'a mistake',
        actor: 'bob',
      },
    ])
    await expect(
      grant({ subject, entitlements: ['pro'], id }),
      'an ended grant does not come back by being asked for',
    ).rejects.toMatchObject({ code: 'HKL_GRANT_INVALID' })
  })

  it('knows only grants', async () => {
    for (const id of ['5001', 'nothing'])
      await expect(
        inTransaction((tx) => shop.hookledger.endGrant(tx, { id, ...by })),
      ).rejects.toMatchObject({ code: 'HKL_GRANT_INVALID' })
  })
})

describe('after grants', () => {
  it('the database refuses an entitlement of an ended one', async () => {
    await expect(
      shop.rows(
        `update entitlements e set active = true, granted_by = e.changed_by
         from orders o where o.order_id = e.order_id and o.workflow = 'grant' and o.state = 'ended'`,
      ),
    ).rejects.toThrow('entitlements_granted_by_fkey')
  })

  it('the audit holds, the status counts them, and the next start has nothing against them', async () => {
    const report = await audit(shop.db)
    expect(report.checks.filter((check) => !check.holds)).toEqual([])
    const { orders } = await status(shop.db)
    expect(orders).toEqual(
      expect.arrayContaining([
        { workflow: 'grant', state: 'granted', orders: expect.any(Number) as number },
        { workflow: 'grant', state: 'ended', orders: 1 },
      ]),
    )
    const again = createHookledger({ ...shopAgain(), database: shop.pool })
    await expect(partsOf(again).register()).resolves.toBeDefined()
  })
})

function shopAgain(): Parameters<typeof createHookledger>[0] {
  const { sources, workflows, destinations } = partsOf(shop.hookledger).config
  return {
    environment: 'test',
    sources: Object.fromEntries([...sources].map(([name, { source }]) => [name, source])),
    destinations: Object.fromEntries(destinations),
    workflows,
  }
}
