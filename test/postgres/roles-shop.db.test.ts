/** The demo shop with its receiver and its worker as separate log-ins, each with its own rights only. */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { setupCredits } from '../../examples/shop/credit-entries.ts'
import { partsOf } from '../../src/hookledger.ts'
import { runUpkeep } from '../../src/compose/upkeep.ts'
import { defaultLimits } from '../../src/core/limits.ts'
import { replayEvent } from '../../src/inbox/replay.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { roleName } from '../../src/postgres/roles.ts'
import { listDead } from '../../src/report/dead.ts'
import { explain } from '../../src/report/explain.ts'
import { listFindings } from '../../src/report/findings.ts'
import { status } from '../../src/report/status.ts'
import { signStripe } from '../../src/testing/sign.ts'
import {
  chargeDisputeClosed,
  chargeDisputeCreated,
  checkoutSessionCompleted,
  customerUpdated,
  invoicePaid,
  paymentIntentSucceeded,
  refundCreated,
  stripeBody,
} from '../../src/testing/stripe-events.ts'
import { shopOptions, shopSecret } from '../support/shop.ts'
import { createRoleBench, refusal, type RoleBench } from './role-logins.ts'

let bench: RoleBench
let receiver: Hookledger
let worker: Hookledger

beforeAll(async () => {
  bench = await createRoleBench()
  const { admin, schemaName } = bench
  await admin.query('create schema shop')
  await setupCredits(admin)
  await admin.query(
    'create table shop.customers (customer_id text primary key, email text, name text, changed_at timestamptz not null)',
  )
  // the app's own tables are the app's own to give
  await admin.query(`grant usage on schema shop to ${roleName(schemaName, 'worker')}`)
  await admin.query(
    `grant select, insert, update on all tables in schema shop to ${roleName(schemaName, 'worker')}`,
  )
  const limits = { deferralMs: 1 }
  receiver = createHookledger({
    ...shopOptions,
    schema: schemaName,
    database: bench.as.receiver,
    limits,
  })
  worker = createHookledger({
    ...shopOptions,
    schema: schemaName,
    database: bench.as.worker,
    limits,
  })
})
afterAll(async () => {
  await receiver.stop()
  await worker.stop()
  await bench.drop()
})

async function deliver(bytes: string, secret: string = shopSecret): Promise<number> {
  const outcome = await receiver.ingest({
    source: 'stripe',
    headers: signStripe(bytes, secret),
    rawBody: Buffer.from(bytes),
  })
  return outcome.status
}

async function work(): Promise<void> {
  while ((await worker.runOnce({ budgetMs: 10_000 })).events > 0);
}

async function rows<R extends object>(text: string): Promise<R[]> {
  return (await bench.admin.query(text)).rows as R[]
}

describe('the shop with separate roles', () => {
  it('starts as each of them, with nothing to warn of', async () => {
    expect((await partsOf(receiver).registration.check()).warnings).toEqual([])
    const { warnings } = await partsOf(worker).register()
    expect(warnings.filter((message) => !message.includes('workflow'))).toEqual([])
  })

  it('fulfills once, over duplicates, disorder, disputes, refunds, own SQL and plain handlers', async () => {
    const [bob, cyd] = [
      { order: '2002', email: 'bob@example.com' },
      { order: '2003', email: 'cyd@example.com' },
    ]
    const first = [
      refundCreated({ ...bob, amount: 4900, id: 're_1' }),
      checkoutSessionCompleted({ order: '2001' }),
      chargeDisputeClosed({ ...cyd, id: 'du_1', status: 'won' }),
      paymentIntentSucceeded({ order: '2001' }),
    ]
    for (const event of [...first, ...first]) expect(await deliver(stripeBody(event))).toBe(200)
    await work()
    for (const key of [bob, cyd]) {
      await deliver(stripeBody(checkoutSessionCompleted(key)))
      await work()
      await deliver(stripeBody(paymentIntentSucceeded(key)))
      await work()
    }
    await deliver(stripeBody(chargeDisputeCreated({ ...cyd, id: 'du_1' })))
    await deliver(
      stripeBody(invoicePaid({ metadata: { account_id: 'acc_1' }, amount: 2550 } as never)),
    )
    await deliver(stripeBody(customerUpdated({})))
    await work()
    expect(
      await rows(`select order_id, state from orders where workflow = 'license' order by order_id`),
    ).toEqual([
      { order_id: '2001', state: 'paid' },
      { order_id: '2002', state: 'refunded' },
      { order_id: '2003', state: 'paid' },
    ])
    expect(
      await rows(
        `select order_id from fulfillment_effects where effect_type = 'license' order by 1`,
      ),
    ).toHaveLength(3)
    expect(await rows('select subject from current_entitlements order by 1')).toEqual([
      { subject: 'email:ada@example.com' },
      { subject: 'email:cyd@example.com' },
    ])
    expect(await rows('select credits::int from shop.accounts')).toEqual([{ credits: 25 }])
    expect(await rows('select 1 from shop.customers')).toHaveLength(1)
    expect(await rows(`select event_type from webhook_inbox where state <> 'processed'`)).toEqual(
      [],
    )
    expect(await worker.entitlements('email:ada@example.com')).toEqual([
      { entitlement: 'pro', quantity: 1, validUntil: null },
    ])
  })

  it('buries what cannot be read, counts what is refused, and replays, as each role may', async () => {
    const hostile = '{"id":"evt_hostile","object":"event","type":"customer.updated","data":'
    expect(await deliver(hostile)).toBe(200)
    expect(await deliver(hostile, 'whsec_another_0123456789abcdef')).toBe(400)
    await work()
    expect(
      await rows(`select event_id, reason from webhook_inbox join inbox_dead using (event_key)`),
    ).toEqual([{ event_id: expect.any(String), reason: expect.stringContaining('unreadable') }])
    const [dead] = await rows<{ event_key: string }>('select event_key from inbox_dead')
    const asWorker = createDatabase(bench.as.worker, bench.schemaName)
    expect(
      await replayEvent(
        asWorker,
        { id: `event:${dead?.event_key}` },
        { reason: 'looked at it', actor: 'ada' },
      ),
    ).toMatchObject({ outcome: 'replayed', from: 'dead' })
    await work()
    expect(await rows('select act, database_role from operator_acts')).toEqual([
      { act: 'replay', database_role: roleName(bench.schemaName, 'worker') },
    ])
    await receiver.stop() // writes the counts of what was refused
    expect(await rows('select source, times::int from rejections')).toEqual([
      { source: 'stripe', times: 1 },
    ])
  })

  it('sweeps up waits past their deadline, delayed events and batches of dead workers', async () => {
    await deliver(stripeBody(refundCreated({ order: '2999', amount: 100, id: 're_waits' })))
    await work()
    await bench.admin
      .query(`insert into inbox_batches (batch_id, event_keys, alone, worker, started_at)
      values (gen_random_uuid(), '{}', false, 'worker:gone', now() - interval '1 minute')`)
    await bench.admin.query(`with gone as (delete from inbox_dead returning event_key, received_on)
      insert into inbox_delayed (event_key, received_on, attempts, due_at, last_error) select event_key, received_on, 1, now(), 'made to wait' from gone`)
    await worker.start({ loops: 2 })
    try {
      for (let tries = 0; tries < 400; tries++) {
        const [left] = await rows<{ left: number }>(
          `select ((select count(*) from inbox_batches) + (select count(*) from inbox_deferred where not overdue) + (select count(*) from inbox_delayed))::int as left`,
        )
        if (left?.left === 0) break
        await sleep(50)
      }
      expect(await rows('select 1 from inbox_delayed')).toEqual([])
      expect(await rows('select 1 from inbox_batches')).toEqual([])
      expect(
        await rows(`select kind from findings where kind = 'wait_overdue' and state = 'open'`),
      ).toHaveLength(1)
    } finally {
      await worker.stop()
    }
  })

  it('keeps its partitions and its retention as either of them', async () => {
    for (const pool of [bench.as.receiver, bench.as.worker]) {
      await expect(
        runUpkeep(createDatabase(pool, bench.schemaName), defaultLimits),
      ).resolves.toMatchObject({ identitiesDropped: 0 })
    }
  })

  it('is looked at by the console, without a body', async () => {
    const asConsole = createDatabase(bench.as.console, bench.schemaName)
    expect(await status(asConsole)).toBeTruthy()
    expect(await explain(asConsole, '2001')).not.toBeNull()
    expect(await listDead(asConsole, {} as never)).toHaveLength(1)
    expect((await listFindings(asConsole, {} as never)).length).toBeGreaterThan(0)
    expect(await refusal(bench.as.console, 'select body from payloads')).toBe('42501')
  })

  it('opens an order in the transaction of an app whose login is given the worker role', async () => {
    const client = await bench.as.worker.connect()
    try {
      await client.query('begin')
      const order = {
        id: '3001',
        workflow: 'license',
        subject: 'email:dan@example.com',
        expected: { amount: 4900n, currency: 'USD' },
      }
      expect(await worker.openOrder(client, order)).toBe('created')
      expect(await worker.openOrder(client, order)).toBe('existed')
      await client.query('commit')
    } finally {
      client.release()
    }
  })
})
