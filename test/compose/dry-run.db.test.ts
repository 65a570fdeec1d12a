/** Dry runs over what people did: it happens again as it is recorded, and events go on from there. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Adoption } from '../../src/compose/adopt.ts'
import { runConfiguredDryRun } from '../../src/compose/dry-run.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { DryRunDifference } from '../../src/inbox/dry-run-compare.ts'
import {
  checkoutSessionCompleted,
  paymentIntentSucceeded,
  refundCreated,
} from '../../src/testing/stripe-events.ts'
import { createRepairBench, type RepairBench } from '../support/repair-bench.ts'

const by = { reason: 'the customer wrote in', actor: 'ada' }
let bench: RepairBench
beforeAll(async () => {
  bench = await createRepairBench()
})
afterAll(() => bench.close())

async function differences(since: Date): Promise<DryRunDifference[]> {
  const found: DryRunDifference[] = []
  await runConfiguredDryRun(bench.db, partsOf(bench.hookledger).config, since, {
    onDifference: (each) => found.push(each),
  })
  return found
}

/** Nothing differs, wherever in history it begins. */
async function expectTheSame(): Promise<void> {
  const moments = await bench.rows<{ at: Date }>(
    `select distinct date_trunc('milliseconds', decided_at) as at from ledger_decisions order by 1`,
  )
  for (const { at } of [{ at: new Date(0) }, ...moments]) expect(await differences(at)).toEqual([])
}

describe('a dry run over what people did', () => {
  it('goes on from a repair that recorded a payment, and from one that took it back', async () => {
    const payment = bench.provider.pay('r1')
    await bench.repairs.apply(await bench.find({ kind: 'paid_there', payment }), by)
    await bench.deliver(checkoutSessionCompleted({ order: 'r1', email: 'r1@example.com' }))
    await bench.work()
    const other = await bench.buy('r2')
    bench.provider.refund(other)
    const refunded = await bench.find({ kind: 'refunded_there', order: 'r2', payment: other })
    await bench.repairs.apply(refunded, by)
    expect((await bench.order('r2')).state).toBe('refunded')
    await expectTheSame()
  })

  it('goes on from what was given away, ended, and adopted', async () => {
    const client = await bench.pool.connect()
    await client.query('begin')
    const id = await bench.hookledger.grant(client, {
      ...by,
      subject: 'user:1',
      entitlements: ['pro'],
    })
    await client.query('commit')
    await client.query('begin')
    await bench.hookledger.endGrant(client, { ...by, id })
    await client.query('commit')
    client.release()
    const session = checkoutSessionCompleted({ order: 'a1' }).data.object
    const line = {
      order: 'a1',
      workflow: 'license',
      state: 'paid',
      subject: 'email:ada@example.com',
      names: [{ kind: 'payment_intent', value: session.payment_intent }],
      payments: [
        { id: session.payment_intent, amount: session.amount_total, currency: session.currency },
      ],
      effects: [
        { type: 'license' },
        {
          type: 'buyer',
          reference: session.id,
          data: { by: 'session', subject: 'email:ada@example.com' },
        },
      ],
      entitlements: [{ entitlement: 'pro', subject: 'email:ada@example.com' }],
    }
    const directory = mkdtempSync(join(tmpdir(), 'dry-run-'))
    try {
      const file = join(directory, 'orders.jsonl')
      writeFileSync(file, `${JSON.stringify(line)}\n`)
      const adoption = new Adoption(bench.db, partsOf(bench.hookledger).config, file)
      const checked = await adoption.check()
      expect(checked.problems).toEqual([])
      await adoption.write(checked, by)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
    await bench.deliver(paymentIntentSucceeded({ order: 'a1' }))
    await bench.work()
    await bench.deliver(refundCreated({ order: 'a1' }))
    await bench.work()
    await expectTheSame()
  })

  it('leaves what somebody changed behind the ledger’s back to its own finding', async () => {
    await bench.buy('t1')
    await bench.rows(`update orders set state = 'lost' where order_id = 't1'`)
    await bench.rows(`update entitlements set active = false where order_id = 't1'`)
    await expectTheSame()
  })
})
