import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { stripe, type Hookledger } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import {
  serveWithClient,
  paidSession,
  type ServedClient,
} from '../testing/stripe-double/stripe-client.ts'
import { emptyTables } from '../support/probe.ts'
import { createShop, shopSecret, type Shop } from '../support/shop.ts'

let provider: ServedClient
let shop: Shop
let hookledger: Hookledger

beforeAll(async () => {
  provider = await serveWithClient()
  const source = stripe({
    environment: 'test',
    signingSecrets: [shopSecret],
    apiKey: 'sk_test_123',
    apiBase: provider.url,
  })
  shop = await createShop({ sources: { stripe: source } })
  ;({ hookledger } = shop)
})
afterAll(async () => {
  await shop.close()
  await provider[Symbol.asyncDispose]()
})
beforeEach(() => emptyTables(shop.pool))

const subject = 'email:buyer@example.com'
const asked = (id: string, order: string) => ({
  source: 'stripe',
  reference: { kind: 'checkout.session', id },
  order,
  subject,
})

describe('confirm at Stripe', () => {
  it('gives the license of a paid session before its webhook came, and once with it', async () => {
    const { result, events } = provider.double.hold(() => paidSession(provider.double, '1001'))
    const { session } = result
    const licensed = {
      outcome: 'decided',
      state: 'paid',
      entitlements: [{ entitlement: 'pro', quantity: 1, validUntil: null }],
    }
    expect(await hookledger.confirm(asked(session.id, '1001'))).toEqual(licensed)
    for (const event of events) expect(await shop.deliver(event)).toBe(200)
    await shop.work()
    expect(await hookledger.confirm(asked(session.id, '1001'))).toEqual(licensed)
    expect(
      await shop.rows(`select 1 from fulfillment_effects where effect_type = 'license'`),
    ).toHaveLength(1)
    expect(await shop.rows('select payment_id from payments')).toHaveLength(1)
    expect(await shop.rows('select kind from findings')).toEqual([])
    expect(
      await shop.rows(`select distinct state from webhook_inbox where event_type like 'checkout%'`),
    ).toEqual([{ state: 'processed' }])
  })

  it('gives no hint of the session of another order, of one that is not there, or one that is not paid', async () => {
    const { session } = paidSession(provider.double, '1002')
    const open = provider.double.createSession({ clientReferenceId: '1003' })
    for (const [id, order] of [
      [session.id, '1003'],
      ['cs_test_none', '1002'],
      [open.id, '1003'],
    ] as const)
      expect(await hookledger.confirm(asked(id, order))).toEqual({ outcome: 'unknown' })
    expect(await shop.rows('select 1 from inbox_events')).toEqual([])
  })

  it('answers pending while Stripe cannot be asked, and tells why to whoever watches', async () => {
    const { session } = paidSession(provider.double, '1004')
    const told: string[] = []
    const unhear = partsOf(hookledger).signals.on('worker.loop.failed', ({ message }) =>
      told.push(message),
    )
    const fault = provider.double.fault({ respond: { status: 503, body: 'a gateway' } })
    expect(await hookledger.confirm(asked(session.id, '1004'))).toEqual({ outcome: 'pending' })
    fault.remove()
    unhear()
    expect(told).toEqual([expect.stringContaining('the provider was not asked')])
    expect(await hookledger.confirm(asked(session.id, '1004'))).toMatchObject({ state: 'paid' })
  })

  it.each(['session', 'checkout_session', 'nonsense'])(
    'refuses the kind %s, which Stripe does not have',
    async (kind) => {
      const reference = { kind, id: 'cs_test_1' }
      await expect(hookledger.confirm({ ...asked('', '1005'), reference })).rejects.toMatchObject({
        code: 'HKL_CONFIRM_INVALID',
        message: expect.stringContaining(
          'it has event, checkout.session, subscription, payment_intent',
        ),
      })
    },
  )

  it('takes what Stripe does not list but looks up by its id', async () => {
    paidSession(provider.double, '1006')
    const reference = { kind: 'charge', id: provider.double.all('charge').at(-1)?.id ?? '' }
    expect(reference.id).toMatch(/^ch_/)
    // Stripe has it, and nothing of it is about this order
    expect(await hookledger.confirm({ ...asked('', '1006'), reference })).toEqual({
      outcome: 'unknown',
    })
  })
})
