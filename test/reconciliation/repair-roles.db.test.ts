/** Repairs with separate log-ins: what the worker's role may do suffices. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { checkoutSessionCompleted, stripeBody } from '../../src/testing/stripe-events.ts'
import { signStripe } from '../../src/testing/sign.ts'
import { createRoleBench, type RoleBench } from '../postgres/role-logins.ts'
import { PaymentProvider, repairOptions } from '../support/repair-bench.ts'
import { shopSecret } from '../support/shop.ts'

const provider = new PaymentProvider()
let bench: RoleBench
let worker: Hookledger
let findingId: string

beforeAll(async () => {
  bench = await createRoleBench()
  const options = { ...repairOptions(provider), schema: bench.schemaName }
  worker = createHookledger({ ...options, database: bench.as.worker })
  const receiver = createHookledger({ ...options, database: bench.as.receiver })
  const payment = provider.pay('r1')
  const body = Buffer.from(
    stripeBody(checkoutSessionCompleted({ order: 'r1', email: 'r1@example.com' })),
  )
  await receiver.ingest({
    source: 'stripe',
    headers: signStripe(body, shopSecret),
    rawBody: body,
  })
  await receiver.stop()
  while ((await worker.runOnce({ budgetMs: 10_000 })).events > 0);
  provider.refund(payment)
  const { rows } = await bench.admin.query<{ id: string }>(
    `insert into findings (finding_id, kind, class, severity, owner, order_id, evidence, due_at, source_id, reference)
     select gen_random_uuid(), 'refunded_there', 'contradiction', 'high', 'operations', 'r1', '{}', now() + interval '1 day', source_id,
       jsonb_build_object('kind', 'payment_intent', 'id', $1::text, 'account', 'stripe')
     from sources where provider = 'stripe' returning finding_id as id`,
    [payment],
  )
  findingId = rows[0]?.id ?? ''
})
afterAll(async () => {
  await worker.stop()
  await bench.drop()
})

describe('a repair', () => {
  it('is refused to a role that may only look', async () => {
    const options = { ...repairOptions(provider), schema: bench.schemaName }
    const looking = createHookledger({ ...options, database: bench.as.console })
    await expect(partsOf(looking).repairs()).rejects.toMatchObject({ code: '42501' })
    await looking.stop()
  })

  it('is applied and verified with the rights of the worker', async () => {
    const repairs = await partsOf(worker).repairs()
    const report = await repairs.apply(findingId, { reason: 'given back', actor: 'ada' })
    expect(report).toMatchObject({ outcome: 'applied', finding: 'closed', problem: null })
    const { rows } = await bench.admin.query(`select state from orders where order_id = 'r1'`)
    expect(rows).toEqual([{ state: 'refunded' }])
  })
})
