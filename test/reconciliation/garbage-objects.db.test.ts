/** Objects that cannot be true: nothing of them is stored, and what was poisoned before is told again. */
import { afterEach, describe, expect, it } from 'vitest'
import { stripe } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import type { RunReport } from '../../src/reconciliation/pass-report.ts'
import { serveStripeDouble } from '../../src/testing/stripe-double/serve.ts'
import { createStripeDouble } from '../../src/testing/stripe-double/stripe-double.ts'
import type { MadeEvent, ProviderRecord } from '../../src/workflow/records.ts'
import { createReconcileProbe, type ReconcileProbe } from '../support/reconcile-probe.ts'
import { createShop, shopSecret } from '../support/shop.ts'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

const hour = 3_600_000

describe('a pass over a Stripe whose amounts are no integers', () => {
  it('is incomplete and puts nothing in, and is right as soon as Stripe is', async () => {
    const double = createStripeDouble({
      signingSecret: shopSecret,
      seed: 'garbage',
      clock: () => Date.now() - hour,
    })
    closing.push(() => double.close())
    const served = await serveStripeDouble(double)
    closing.push(() => served.close())
    const access = { apiKey: 'sk_test_garbage', apiBase: served.url }
    const shop = await createShop({
      sources: {
        stripe: stripe({ environment: 'test', signingSecrets: [shopSecret], ...access }),
      },
      reconcile: { callsPerSecond: 10_000 },
    })
    closing.push(shop.close)
    await shop.rows(`update installation set created_at = now() - interval '3 hours'`)
    const { result } = double.hold(() => {
      const { id } = double.createSession({ clientReferenceId: 'g1' })
      const session = double.completeSession(id, { email: 'g1@example.com' })
      return double.refund({ paymentIntent: session.payment_intent as string, amount: 900 })
    })
    const pass = async (): Promise<RunReport> => {
      const reconciler = await partsOf(shop.hookledger).reconciler({ decides: true })
      const { runs } = await reconciler.pass({ how: 'manual', actor: 'test' })
      return runs[0] as RunReport
    }
    const fault = double.fault({ garble: 'amounts' })
    const run = await pass()
    expect(run).toMatchObject({ state: 'incomplete', injected: 0 })
    expect(run.error).toContain(`amount of refund ${result.id}`)
    expect(run.error).not.toContain('about')
    expect(await shop.rows(`select 1 from inbox_events`)).toEqual([])
    expect(await shop.rows(`select kind from findings`)).toEqual([])
    fault.remove()
    expect(await pass()).toMatchObject({ state: 'complete' })
    expect(await shop.rows(`select order_id, state from orders`)).toEqual([
      { order_id: 'g1', state: 'paid' },
    ])
    expect(await pass()).toMatchObject({ state: 'complete', injected: 0, opened: 0, closed: 0 })
  })
})

/** What a payment tells: that it was paid, and a note of it. */
function eventsOf({ id, createdAt, object }: ProviderRecord): MadeEvent[] {
  const { order, amount } = object
  const make = (type: string, more: object): MadeEvent => {
    const eventId = `object:${type}:${id}`
    const body = { id: eventId, type, order, ...more }
    return { eventId, eventType: type, occurredAt: createdAt, apiVersion: null, body }
  }
  return [make('pay', { payment: id, amount }), make('custom', { amount })]
}

const suffixed = /^object:pay:pay_1~[0-9a-f]{12}$/

interface Poisoned extends ReconcileProbe {
  /** The provider comes to its senses. */
  mend(): void
}

/** A database in which what the payment tells is dead, as garbage of the provider's made it. */
async function poisoned(): Promise<Poisoned> {
  const made = await createReconcileProbe({
    kinds: [{ kind: 'payment', holds: 'objects', reachMs: null }],
    eventsOf,
    hooks: {
      order: (event) => {
        if (typeof event.amount !== 'number') throw new TypeError('an amount must be an integer')
        return undefined
      },
    },
  })
  closing.push(made.close)
  const held = (amount: unknown): ProviderRecord => ({
    kind: 'payment',
    id: 'pay_1',
    createdAt: new Date(Date.now() - hour),
    account: 'acct_1',
    object: { order: '1', amount },
  })
  made.records.held.push(held('forty-nine'))
  await made.pass()
  await killFailing(made)
  return { ...made, mend: () => void made.records.held.splice(0, 1, held(4900)) }
}

/** A function of the user's that throws gets further attempts, an hour apart in the end: they are over now. */
async function killFailing(made: ReconcileProbe): Promise<void> {
  for (let tries = 0; tries < 30; tries++) {
    const left = await made.rows(`select 1 from inbox_delayed union all select 1 from inbox_ready`)
    if (left.length === 0) break
    await made.rows(`update inbox_delayed set due_at = now()`)
    await made.work()
  }
}

describe('facts that garbage has poisoned', () => {
  it('are told again under an id of their own, and the findings of the dead ones close', async () => {
    const made = await poisoned()
    expect(await made.rows(`select event_id, state from webhook_inbox order by 1`)).toEqual([
      { event_id: 'object:custom:pay_1', state: 'dead' },
      { event_id: 'object:pay:pay_1', state: 'dead' },
    ])
    expect(await made.rows(`select 1 from findings where kind = 'dead_event'`)).toHaveLength(2)
    expect(await made.pass()).toMatchObject({ injected: 0 })

    made.mend()
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 2 })
    expect(await made.rows(`select order_id, state from orders`)).toEqual([
      { order_id: '1', state: 'paid' },
    ])
    const alive = await made.rows<{ event_id: string }>(
      `select event_id from webhook_inbox where state = 'processed' order by 1`,
    )
    expect(alive[1]?.event_id).toMatch(suffixed)
    expect(
      await made.rows(`select right(event_id, 12) = left(encode(body_sha256, 'hex'), 12) as is_hash
        from inbox_events where event_id like '%~%'`),
    ).toEqual([{ is_hash: true }, { is_hash: true }])
    expect(await made.rows(`select kind from findings where state <> 'closed'`)).toEqual([])
    expect(
      await made.rows(`select distinct closed_because from findings where kind = 'dead_event'`),
    ).toEqual([{ closed_because: 'the same was told again, and decided' }])

    const { opened, closed, injected } = await made.pass()
    expect({ opened, closed, injected }).toEqual({ opened: 0, closed: 0, injected: 0 })
    expect(await made.rows(`select 1 from inbox_events`)).toHaveLength(4)
  })

  it('stay dead while the provider says the same garbage', async () => {
    const made = await poisoned()
    for (let again = 0; again < 2; again++)
      expect(await made.pass()).toMatchObject({ injected: 0, opened: 0 })
    expect(await made.rows(`select state from findings where kind = 'dead_event'`)).toEqual([
      { state: 'open' },
      { state: 'open' },
    ])
  })

  it('are told again by the success page, and once', async () => {
    const made = await poisoned()
    made.mend()
    const question = {
      source: 'probe',
      reference: { kind: 'payment', id: 'pay_1' },
      order: '1',
      subject: 'user:1',
    }
    for (let again = 0; again < 2; again++)
      expect(await made.hookledger.confirm(question)).toMatchObject({
        outcome: 'decided',
        state: 'paid',
      })
    expect(await made.rows(`select via from inbox_events where event_id like '%~%'`)).toEqual([
      { via: 'confirm' },
      { via: 'confirm' },
    ])
    expect(await made.pass()).toMatchObject({ state: 'complete', injected: 0 })
    expect(await made.rows(`select kind from findings where state <> 'closed'`)).toEqual([])
  })
})
