/** Passes over what came through the doors: adopted orders, grants, workflows in shadow. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Adoption } from '../../src/compose/adopt.ts'
import { partsOf } from '../../src/hookledger.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { audit } from '../../src/report/audit.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../src/testing/stripe-double/stripe-double.ts'
import { createReconcileProof, type ReconcileProof } from '../support/reconcile-proof.ts'
import { shopSecret } from '../support/shop.ts'
import { writeTemporary } from '../support/temporary-file.ts'

let proof: ReconcileProof
beforeEach(async () => {
  proof = await createReconcileProof()
})
afterEach(() => proof.close())

const orders = 12

interface LiveOrder {
  readonly id: string
  readonly session: string
  readonly intent: string
  readonly amount: number
  readonly currency: string
  readonly subject: string
  /** The refund of all of it, where it was given back. */
  readonly refund: string | null
}

/** An account that has sold for an hour before Hookledger was there; every third order was given back. */
function liveAccount(): { readonly double: StripeDouble; readonly sold: readonly LiveOrder[] } {
  let clock = Date.now() - 3_600_000
  const double = createStripeDouble({
    seed: 'live',
    signingSecret: shopSecret,
    clock: () => clock,
  })
  const sold = Array.from({ length: orders }, (_, n): LiveOrder => {
    clock += 60_000
    const email = `c${n}@example.com`
    const { id: session } = double.createSession({
      clientReferenceId: `live-${n}`,
      customerEmail: email,
    })
    const done = double.completeSession(session)
    const intent = String(done.payment_intent)
    const refund = n % 3 === 0 ? double.refund({ paymentIntent: intent }).id : null
    return {
      id: `live-${n}`,
      session,
      intent,
      amount: done.amount_total ?? 0,
      currency: done.currency ?? '',
      subject: `email:${email}`,
      refund,
    }
  })
  clock = Date.now()
  return { double, sold }
}

function lineOf({ id, session, intent, amount, currency, subject, refund }: LiveOrder): object {
  return {
    order: id,
    workflow: 'license',
    state: refund === null ? 'paid' : 'refunded',
    subject,
    names: [
      { kind: 'session', value: session },
      { kind: 'payment_intent', value: intent },
    ],
    payments: [{ id: intent, amount, currency }],
    effects: [
      { type: 'license' },
      { type: 'buyer', reference: session, data: { by: 'session', subject } },
      ...(refund === null
        ? []
        : [{ type: 'refund', reference: refund, amount, currency, payment: intent }]),
    ],
    entitlements: [{ subject, entitlement: 'pro' }],
  }
}

async function adopt(lines: readonly object[]): Promise<void> {
  const file = writeTemporary(lines.map((line) => JSON.stringify(line)).join('\n'))
  const db = createDatabase(proof.pool, 'hookledger')
  const adoption = new Adoption(db, partsOf(proof.hookledger).config, file)
  const checked = await adoption.check()
  expect(checked.problems).toEqual([])
  await adoption.write(checked, { reason: 'moving in', actor: 'ada' })
}

async function rows(text: string): Promise<unknown[]> {
  return (await proof.pool.query<Record<string, unknown>>(text)).rows
}

const fulfilled = (): Promise<unknown[]> =>
  rows(
    `select order_id, effect_type, effect_reference, decision_id from fulfillment_effects order by 1, 2, 3`,
  )

describe('the first pass over a live account', () => {
  it('fulfills nothing twice, sends nothing, and finds nothing', async () => {
    const { double, sold } = liveAccount()
    await adopt(sold.map(lineOf))
    const before = await fulfilled()
    proof.ask(double)
    const { runs } = await proof.pass()
    expect(runs.map((run) => [run.state, run.error])).toEqual([['complete', null]])
    expect(runs[0]?.injected).toBeGreaterThan(orders)
    expect(await fulfilled()).toEqual(before)
    expect(await rows(`select 1 from outbox_operations`)).toEqual([])
    expect(await rows(`select 1 from ledger_payments`)).toHaveLength(orders)
    expect(await rows(`select kind, evidence from findings where state <> 'closed'`)).toEqual([])
    expect(
      await rows(`select state, count(*)::int as n from orders group by 1 order by 1`),
    ).toEqual([
      { state: 'paid', n: 8 },
      { state: 'refunded', n: 4 },
    ])
    const report = await audit(createDatabase(proof.pool, 'hookledger'))
    expect(report.checks.filter((each) => !each.holds)).toEqual([])
  })

  it('puts in no event of which the file said that it was handled', async () => {
    const { double, sold } = liveAccount()
    const handled = double.unacknowledged().map(({ id, type }) => ({
      event: id,
      source: 'stripe',
      type,
    }))
    await adopt([...sold.map(lineOf), ...handled])
    proof.ask(double)
    const { runs } = await proof.pass()
    expect(runs.map((run) => [run.state, run.injected])).toEqual([['complete', 0]])
    expect(await rows(`select distinct state from webhook_inbox`)).toEqual([{ state: 'ignored' }])
    expect(await rows(`select 1 from findings`)).toEqual([])
  })

  it('does what the app had missed, and only that', async () => {
    const { double, sold } = liveAccount()
    const missed = sold.find(({ refund }) => refund !== null)
    await adopt(sold.map((order) => lineOf(order === missed ? { ...order, refund: null } : order)))
    proof.ask(double)
    await proof.pass()
    expect(
      await rows(
        `select d.order_id, d.to_state, f.effect_reference from decisions d
         join fulfillment_effects f using (decision_id) where d.kind = 'fulfilled'`,
      ),
    ).toEqual([{ order_id: missed?.id, to_state: 'refunded', effect_reference: missed?.refund }])
    expect(await rows(`select name from outbox_operations`)).toEqual([{ name: 'refund' }])
  })
})

describe('a pass', () => {
  it('has nothing to ask about what was given away', async () => {
    const client = await proof.pool.connect()
    const by = { reason: 'an outage', actor: 'ada' }
    const request = { subject: 'user:1', entitlements: ['pro'], until: new Date('2999-01-01') }
    await proof.hookledger.grant(client, { ...request, ...by })
    const id = await proof.hookledger.grant(client, { ...request, ...by })
    await proof.hookledger.endGrant(client, { id, ...by })
    client.release()
    await proof.pool.query(
      `update orders set opened_at = now() - interval '3 days', updated_at = now() - interval '3 days'`,
    )
    proof.ask(createStripeDouble({ seed: 'empty', signingSecret: shopSecret }))
    const { runs } = await proof.pass({ how: 'deep' })
    expect(runs.map((run) => run.state)).toEqual(['complete'])
    expect(await rows(`select kind, evidence from findings`)).toEqual([])
    expect(await proof.hookledger.entitlements('user:1')).toHaveLength(1)
  })

  it('decides in shadow what never arrived, and finds nothing wrong with what is dormant', async () => {
    await proof.close()
    proof = await createReconcileProof({ options: { shadow: ['license'] } })
    const { double } = liveAccount()
    proof.ask(double)
    for (let pass = 0; pass < 2; pass++) {
      const { runs } = await proof.pass()
      expect(runs.map((run) => [run.state, run.error])).toEqual([['complete', null]])
    }
    expect(
      await rows(`select state, count(*)::int as n from orders group by 1 order by 1`),
    ).toEqual([
      { state: 'paid', n: 8 },
      { state: 'refunded', n: 4 },
    ])
    expect(await rows(`select kind, evidence from findings where state <> 'closed'`)).toEqual([])
    expect(await rows(`select 1 from current_entitlements`)).toEqual([])
    expect(await rows(`select 1 from outbox_operations`)).toEqual([])
    const report = await audit(createDatabase(proof.pool, 'hookledger'))
    expect(report.checks.filter((each) => !each.holds)).toEqual([])
  })
})
