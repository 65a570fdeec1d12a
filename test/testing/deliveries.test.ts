import { describe, expect, it } from 'vitest'
import { defineWorkflow, fulfill, money, orderId, standardWebhooks, stripe } from 'hookledger'
import {
  checkoutSessionCompleted,
  createTestClock,
  deliverTwice,
  play,
  shuffle,
  standardWebhookDelivery,
  standardWebhookEvent,
  standardWebhookId,
  stripeDelivery,
  type SignedDelivery,
} from 'hookledger/testing'

const stripeSecret = 'whsec_of_deliveries_0123456789'
const [standardSecret, otherSecret] = [7, 8].map(
  (byte) => `whsec_${Buffer.alloc(32, byte).toString('base64')}`,
) as [string, string]

/** What the receiver asks a source with. */
function request({ headers, rawBody }: SignedDelivery) {
  return { headers: (name: string) => headers[name], rawBody }
}

describe('a signed delivery of Stripe', () => {
  const event = checkoutSessionCompleted({ order: '1001' })
  const source = stripe({ signingSecrets: [stripeSecret] })

  it('is what the source accepts, names and reads', () => {
    const delivery = stripeDelivery(event, { secret: stripeSecret })
    expect(source.verify(request(delivery), Date.now())).toEqual({ ok: true, secret: 0 })
    expect(source.name(request(delivery))).toMatchObject([{ eventId: event.id }])
    expect(JSON.parse(delivery.body)).toEqual(event)
    expect(new TextDecoder().decode(delivery.rawBody)).toBe(delivery.body)
    expect(delivery.source).toBe('stripe')
  })

  it('is refused under another secret, and where it is too old', () => {
    const wrong = stripeDelivery(event, { secret: 'whsec_another_0123456789abcdef' })
    expect(source.verify(request(wrong), Date.now())).toEqual({ ok: false, reason: 'mismatch' })
    const clock = createTestClock()
    const old = stripeDelivery(event, { secret: stripeSecret, timestamp: clock.seconds() })
    clock.advance(301_000)
    expect(source.verify(request(old), clock.now())).toEqual({ ok: false, reason: 'too_old' })
  })

  it('goes to the source that is named', () => {
    expect(stripeDelivery(event, { secret: stripeSecret, source: 'stripe_eu' }).source).toBe(
      'stripe_eu',
    )
  })
})

describe('a signed delivery of Standard Webhooks', () => {
  const event = standardWebhookEvent('invoice.paid', { id: 'inv_1', order: '1001' })
  const source = standardWebhooks({ secrets: [standardSecret] })

  it.each(['webhook', 'svix'] as const)('is what the source accepts under %s names', (names) => {
    const delivery = standardWebhookDelivery(event, {
      secret: standardSecret,
      source: 'billing',
      names,
    })
    expect(source.verify(request(delivery), Date.now())).toEqual({ ok: true, secret: 0 })
    expect(source.name(request(delivery))).toMatchObject([
      { eventId: standardWebhookId(event), eventType: 'invoice.paid' },
    ])
  })

  it('has one id at every attempt, and another for another event', () => {
    const first = { secret: standardSecret, source: 'billing', timestamp: 1 }
    const ids = [
      standardWebhookDelivery(event, first),
      standardWebhookDelivery(event, { ...first, timestamp: 2 }),
      standardWebhookDelivery(standardWebhookEvent('invoice.paid', { id: 'inv_2' }), first),
    ].map(({ headers }) => headers['webhook-id'])
    expect(ids[0]).toMatch(/^msg_[A-Za-z0-9]{20,24}$/)
    expect(ids[1]).toBe(ids[0])
    expect(ids[2]).not.toBe(ids[0])
  })

  it('is refused under another secret, and with an id that was not signed', () => {
    const wrong = standardWebhookDelivery(event, { secret: otherSecret, source: 'billing' })
    expect(source.verify(request(wrong), Date.now())).toMatchObject({ ok: false })
    const right = standardWebhookDelivery(event, { secret: standardSecret, source: 'billing' })
    const renamed = { ...right, headers: { ...right.headers, 'webhook-id': 'msg_other' } }
    expect(source.verify(request(renamed), Date.now())).toMatchObject({ ok: false })
  })

  it('is played by a workflow as it is', () => {
    const bill = defineWorkflow('bill', {
      sources: ['billing'],
      initial: 'open',
      opens: 'event',
      accepts: () => true,
      states: { open: {}, paid: { entitles: true } },
      transitions: { open: ['paid'] },
      effects: { paid: {} },
    }).on('invoice.paid', {
      order: ({ event: { data } }) => orderId((data as { order: string }).order),
      decide: ({ event: { data } }) =>
        fulfill({
          to: 'paid',
          payment: { id: (data as { id: string }).id, money: money(4900, 'usd') },
          effects: [{ type: 'paid' }],
        }),
    })
    const app = play([bill])
    const delivery = standardWebhookDelivery(event, { secret: standardSecret, source: 'billing' })
    app.deliver([delivery, delivery])
    expect(app.order('1001')).toMatchObject({ state: 'paid', effects: [{ type: 'paid' }] })
    expect(app.inbox().map(({ eventId }) => eventId)).toEqual([standardWebhookId(event)])
  })
})

describe('delivering twice', () => {
  it('has both copies of an event under way at the same moment, one event after the other', async () => {
    const calls: string[] = []
    let underWay = 0
    const answers = await deliverTwice(['a', 'b'], async (event) => {
      underWay += 1
      await new Promise((resolve) => setTimeout(resolve, 5))
      calls.push(`${event}${underWay}`)
      return calls.length
    })
    expect(calls).toEqual(['a2', 'a2', 'b4', 'b4'])
    expect(answers).toEqual([
      [1, 2],
      [3, 4],
    ])
  })

  it('later has every event once before the first comes again', async () => {
    const calls: string[] = []
    const deliver = (event: string): number => calls.push(event)
    const answers = await deliverTwice(['a', 'b'], deliver, { again: 'later' })
    expect(calls).toEqual(['a', 'b', 'a', 'b'])
    expect(answers).toEqual([
      [1, 3],
      [2, 4],
    ])
  })

  it('passes on that a delivery failed', async () => {
    const failing = deliverTwice(['a'], () => Promise.reject(new Error('the endpoint is off')))
    await expect(failing).rejects.toThrow('the endpoint is off')
  })
})

describe('shuffling', () => {
  const list = [1, 2, 3, 4, 5, 6]

  it('gives the same order for the same seed, and leaves the list as it is', () => {
    expect(shuffle(list, 3)).toEqual(shuffle(list, 3))
    expect(shuffle(list)).toEqual(shuffle(list, 1))
    expect(list).toEqual([1, 2, 3, 4, 5, 6])
  })

  it('keeps every item, and comes to every order of three', () => {
    expect(shuffle(list, 2).sort()).toEqual(list)
    const orders = Array.from({ length: 200 }, (_, seed) => shuffle([1, 2, 3], seed).join(''))
    expect(new Set(orders).size).toBe(6)
  })
})

describe('the clock', () => {
  it('stands still until it is moved', () => {
    const clock = createTestClock()
    expect(clock.date().toISOString()).toBe('2026-01-01T00:00:00.000Z')
    expect(clock.now()).toBe(clock.now())
    expect(clock.advance(1500)).toBe(clock.now())
    expect(clock.seconds()).toBe(Date.UTC(2026, 0, 1) / 1000 + 1)
    clock.set(new Date('2025-12-31T00:00:00Z'))
    expect(clock.date().toISOString()).toBe('2025-12-31T00:00:00.000Z')
  })

  it('hands out dates that nobody can move it by', () => {
    const clock = createTestClock()
    clock.date().setFullYear(1999)
    expect(clock.date().getUTCFullYear()).toBe(2026)
  })

  it('refuses to go back by accident, and moments that there are not', () => {
    const clock = createTestClock()
    expect(() => clock.advance(-1)).toThrow(/to go back, use set/)
    expect(() => clock.advance(Number.NaN)).toThrow(/whole milliseconds/)
    expect(() => clock.set(new Date('never'))).toThrow(/invalid date/)
    expect(() => createTestClock(new Date('never'))).toThrow(/invalid date/)
    expect(clock.date().toISOString()).toBe('2026-01-01T00:00:00.000Z')
  })
})
