import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createHookledger, stripe, type Hookledger } from 'hookledger'
import { createDatabase } from '../../src/postgres/pool.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { partsOf } from '../../src/hookledger.ts'
import {
  createProbe,
  deliverTo,
  probe,
  probeOptions,
  probeSecret,
  probeWorkflow,
  workOff,
  type Probe,
} from '../support/probe.ts'

let bench: Probe
let connect: Hookledger
beforeAll(async () => {
  bench = await createProbe({ workflows: [probeWorkflow()] })
  connect = bench.another({
    sources: {
      probe: stripe({
        environment: 'test',
        signingSecrets: [probeSecret],
        account: 'acct_own',
        connect: ['acct_a', 'acct_b'],
      }),
    },
  })
  await partsOf(connect).register()
})
afterAll(() => bench.close())
beforeEach(() => bench.reset())

const decisions = (): Promise<unknown> =>
  bench.rows(
    `select event_id, provider_account as account, kind from decisions where event_id is not null order by event_id, account`,
  )

describe('two connected accounts', () => {
  it('may use one event id each, and each is decided for itself', async () => {
    await deliverTo(connect, [
      probe('pay', { id: 'evt_same', order: 'a', account: 'acct_a' }),
      probe('pay', { id: 'evt_same', order: 'b', account: 'acct_b' }),
      probe('pay', { id: 'evt_same', order: 'own' }),
    ])
    await workOff(connect)
    expect(await decisions()).toEqual([
      { event_id: 'evt_same', account: 'acct_a', kind: 'fulfilled' },
      { event_id: 'evt_same', account: 'acct_b', kind: 'fulfilled' },
      { event_id: 'evt_same', account: 'acct_own', kind: 'fulfilled' },
    ])
    expect(await bench.rows(`select order_id, provider_account from orders order by 1`)).toEqual([
      { order_id: 'a', provider_account: 'acct_a' },
      { order_id: 'b', provider_account: 'acct_b' },
      { order_id: 'own', provider_account: 'acct_own' },
    ])
  })

  it('cannot share an order: the second account is a contradiction and grants nothing', async () => {
    await deliverTo(connect, [
      probe('pay', { id: 'evt_a', order: 'x', account: 'acct_a', payment: 'p_a' }),
    ])
    await workOff(connect)
    await deliverTo(connect, [
      probe('pay', { id: 'evt_b', order: 'x', account: 'acct_b', payment: 'p_b' }),
      probe('refund', { id: 'evt_r', order: 'x', account: 'acct_b' }),
    ])
    await workOff(connect)
    expect(await decisions()).toEqual([
      { event_id: 'evt_a', account: 'acct_a', kind: 'fulfilled' },
      { event_id: 'evt_b', account: 'acct_b', kind: 'contradicted' },
      { event_id: 'evt_r', account: 'acct_b', kind: 'contradicted' },
    ])
    expect(await bench.rows(`select state from orders`)).toEqual([{ state: 'paid' }])
    expect(await bench.rows(`select payment_id from ledger_payments where applied`)).toEqual([
      { payment_id: 'p_a' },
    ])
    expect(await bench.rows(`select kind, severity from findings`)).toEqual([
      { kind: 'foreign_account', severity: 'high' },
      { kind: 'foreign_account', severity: 'high' },
    ])
  })

  it('have names and payments of their own under one id', async () => {
    await deliverTo(connect, [
      probe('pay', { order: 'a', account: 'acct_a', learns: 'ref_1', payment: 'p_1' }),
      probe('pay', { order: 'b', account: 'acct_b', learns: 'ref_1', payment: 'p_1' }),
      probe('refund', { id: 'evt_r', waits: 'ref_1', account: 'acct_b', payment: 'p_1' }),
    ])
    await workOff(connect)
    expect(await bench.rows(`select order_id, state from orders order by 1`)).toEqual([
      { order_id: 'a', state: 'paid' },
      { order_id: 'b', state: 'refunded' },
    ])
    expect(await bench.rows(`select order_id, payment_id from ledger_payments order by 1`)).toEqual(
      [
        { order_id: 'a', payment_id: 'p_1' },
        { order_id: 'b', payment_id: 'p_1' },
      ],
    )
  })
})

describe('an account that the source does not allow', () => {
  it('opens nothing and grants nothing, and is a finding', async () => {
    await deliverTo(connect, [probe('pay', { id: 'evt_f', order: 'x', account: 'acct_foreign' })])
    await workOff(connect)
    expect(await decisions()).toEqual([
      { event_id: 'evt_f', account: 'acct_foreign', kind: 'contradicted' },
    ])
    expect(
      await bench.rows(
        `select 1 from orders union all select 1 from ledger_payments union all select 1 from entitlements union all select 1 from fulfillment_effects`,
      ),
    ).toEqual([])
    expect(await bench.rows(`select kind, owner from findings`)).toEqual([
      { kind: 'foreign_account', owner: 'operations' },
    ])
  })

  it('does not take an order that the app opened for its own', async () => {
    const byApp = bench.another({
      workflows: [probeWorkflow({}, { opens: 'app' })],
      sources: {
        probe: stripe({
          environment: 'test',
          signingSecrets: [probeSecret],
          account: 'acct_own',
          connect: ['acct_a', 'acct_b'],
        }),
      },
    })
    await byApp.openOrder(bench.pool, { id: 'x', workflow: 'probe', subject: 'user:1' })
    await deliverTo(byApp, [probe('pay', { id: 'evt_f', order: 'x', account: 'acct_foreign' })])
    await workOff(byApp)
    await deliverTo(byApp, [probe('pay', { id: 'evt_own', order: 'x' })])
    await workOff(byApp)
    expect(await decisions()).toEqual([
      { event_id: 'evt_f', account: 'acct_foreign', kind: 'contradicted' },
      { event_id: 'evt_own', account: 'acct_own', kind: 'fulfilled' },
    ])
  })

  it('teaches no names: a refund that follows one does not find the order', async () => {
    await deliverTo(connect, [
      probe('pay', { order: 'x', account: 'acct_foreign', learns: 'ref_1' }),
      probe('refund', { id: 'evt_r', waits: 'ref_1', account: 'acct_foreign' }),
    ])
    await workOff(connect)
    expect(await bench.rows(`select state from webhook_inbox where event_id = 'evt_r'`)).toEqual([
      { state: 'deferred' },
    ])
    expect(await bench.rows(`select order_id from order_names`)).toEqual([{ order_id: null }])
  })
})

describe('test and live', () => {
  it('keep one order id and one event id apart, in a schema each', async () => {
    const live = createDatabase(bench.pool, 'live_ledger')
    await migrate(live, { environment: 'live', partitionsAheadDays: 1 })
    const workflows = [probeWorkflow()]
    const lived = createHookledger({
      ...probeOptions(workflows),
      environment: 'live',
      schema: 'live_ledger',
      sources: { probe: stripe({ environment: 'live', signingSecrets: [probeSecret] }) },
      database: bench.pool,
    })
    await partsOf(lived).register()
    await deliverTo(lived, [probe('pay', { id: 'evt_1', order: '1001', livemode: true })])
    await deliverTo(bench.hookledger, [
      probe('pay', { id: 'evt_1', order: '1001' }),
      probe('refund', { id: 'evt_2', order: '1001' }),
    ])
    await workOff(lived)
    await workOff(bench.hookledger)
    expect(await bench.rows(`select state from live_ledger.orders`)).toEqual([{ state: 'paid' }])
    expect(await bench.rows(`select state from hookledger.orders`)).toEqual([{ state: 'refunded' }])
    expect(await lived.entitlements('user:1001')).toHaveLength(1)
    expect(await bench.hookledger.entitlements('user:1001')).toEqual([])
  })

  it('do not mix: an event of the other environment is stored, acknowledged and ignored with that reason', async () => {
    await bench.deliver(
      probe('pay', { id: 'evt_1', order: '1', livemode: true }),
      probe('pay', { id: 'evt_1', order: '1' }),
    )
    await bench.work()
    expect(await bench.rows(`select environment, state from webhook_inbox order by 1`)).toEqual([
      { environment: 'live', state: 'ignored' },
      { environment: 'test', state: 'processed' },
    ])
    expect(await bench.rows(`select reason from decisions where kind = 'ignored'`)).toEqual([
      { reason: 'it is of the live environment; this schema holds test' },
    ])
  })

  it('are two configurations: a start on the schema of the other is refused', async () => {
    const wrong = createHookledger({
      ...probeOptions([probeWorkflow()]),
      environment: 'live',
      sources: { probe: stripe({ environment: 'live', signingSecrets: [probeSecret] }) },
      database: bench.pool,
    })
    await expect(partsOf(wrong).register()).rejects.toMatchObject({
      code: 'HKL_CONFIG_ENVIRONMENT',
    })
  })
})
