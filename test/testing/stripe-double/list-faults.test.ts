import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createStripeDouble } from '../../../src/testing/stripe-double/stripe-double.ts'
import { manualClock, paidSession, serveWithClient, type ServedClient } from './stripe-client.ts'

function sell(served: ServedClient, orders: number): string[] {
  for (let order = 0; order < orders; order++) paidSession(served.double, String(order))
  return served.double
    .all('payment_intent')
    .map((intent) => intent.id)
    .reverse()
}

const ids = (page: { data: readonly { id: string }[] }): string[] => page.data.map(({ id }) => id)

describe('list faults', () => {
  test('a further page is the one before it again', async () => {
    await using served = await serveWithClient()
    const made = sell(served, 6)
    served.double.fault({ match: { continued: true }, list: 'repeated' })
    const { paymentIntents } = served.stripe
    expect(ids(await paymentIntents.list({ limit: 2 }))).toEqual(made.slice(0, 2))
    const again = await paymentIntents.list({ limit: 2, starting_after: made[1]! })
    expect(ids(again)).toEqual(made.slice(0, 2))
    expect(again.has_more).toBe(true)
  })

  test('a page lies about what comes after it, either way', async () => {
    await using served = await serveWithClient()
    sell(served, 3)
    const { paymentIntents } = served.stripe
    const early = served.double.fault({ list: 'ends_early' })
    expect((await paymentIntents.list({ limit: 2 })).has_more).toBe(false)
    early.remove()
    served.double.fault({ list: 'never_ends' })
    expect((await paymentIntents.list({ limit: 3 })).has_more).toBe(true)
  })

  test('a page is empty, or lacks every third record, and says that more comes', async () => {
    await using served = await serveWithClient()
    const made = sell(served, 7)
    const { paymentIntents } = served.stripe
    const empty = served.double.fault({ list: 'empty' })
    expect(await paymentIntents.list({ limit: 6 })).toMatchObject({ data: [], has_more: true })
    empty.remove()
    served.double.fault({ list: 'shrunken' })
    const short = await paymentIntents.list({ limit: 6 })
    expect(ids(short)).toEqual([made[0], made[2], made[3], made[5]])
    expect(short.has_more).toBe(true)
  })

  test('a page shows a record from outside of its window', async () => {
    const clock = manualClock()
    await using served = await serveWithClient({ clock: clock.now })
    const [oldest] = sell(served, 1)
    clock.move(60_000)
    sell(served, 2)
    served.double.fault({ list: 'outside' })
    const created = { gte: Math.floor(clock.now() / 1000) }
    expect(ids(await served.stripe.paymentIntents.list({ created }))).toContain(oldest)
  })

  test('a cursor is lost for one list, and first pages go on', async () => {
    await using served = await serveWithClient()
    const made = sell(served, 3)
    const fault = served.double.fault({
      match: { path: '/v1/payment_intents', continued: true },
      list: 'cursor_lost',
      once: true,
    })
    const { paymentIntents } = served.stripe
    await paymentIntents.list({ limit: 2 })
    const lost = paymentIntents.list({ limit: 2, starting_after: made[1]! })
    await expect(lost).rejects.toMatchObject({ code: 'resource_missing', param: 'starting_after' })
    expect(fault.hits).toBe(1)
    const next = await paymentIntents.list({ limit: 2, starting_after: made[1]! })
    expect(ids(next)).toEqual([made[2]])
  })

  test('a fault of lists leaves everything else alone', async () => {
    await using served = await serveWithClient()
    const [intent] = sell(served, 1)
    served.double.fault({ list: 'empty' })
    expect((await served.stripe.paymentIntents.retrieve(intent!)).id).toBe(intent)
  })
})

describe('forget', () => {
  test('a forgotten object is in no list, cannot be retrieved, and is no place to go on from', async () => {
    await using served = await serveWithClient()
    const made = sell(served, 4)
    served.double.forget(made[1]!)
    const { paymentIntents } = served.stripe
    expect(ids(await paymentIntents.list())).toEqual([made[0], made[2], made[3]])
    await expect(paymentIntents.retrieve(made[1]!)).rejects.toMatchObject({ statusCode: 404 })
    const after = paymentIntents.list({ starting_after: made[1]! })
    await expect(after).rejects.toMatchObject({ code: 'resource_missing' })
    expect(ids(await paymentIntents.list({ starting_after: made[2]! }))).toEqual([made[3]])
  })

  test('it stays forgotten after a restart', () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'hookledger-forget-'))
    try {
      const options = { signingSecret: 'whsec_test', seed: 'forget', dataDir }
      const before = createStripeDouble(options)
      const { id } = before.createCustomer({ email: 'ada@example.com' })
      const kept = before.createCustomer({ email: 'bob@example.com' })
      before.forget(id)
      before.close()
      const after = createStripeDouble(options)
      expect(after.all('customer').map((customer) => customer.id)).toEqual([kept.id])
      after.close()
    } finally {
      rmSync(dataDir, { recursive: true })
    }
  })
})

describe('setup', () => {
  test('one endpoint delivers everything, unless told otherwise', async () => {
    await using served = await serveWithClient()
    const { data } = await served.stripe.webhookEndpoints.list()
    expect(data).toMatchObject([{ enabled_events: ['*'], status: 'enabled' }])
    const endpoint = await served.stripe.webhookEndpoints.retrieve(data[0]!.id)
    expect(endpoint.url).toBe(data[0]!.url)
    served.double.setWebhookEndpoints([
      { id: 'we_a', url: 'https://a.example', status: 'disabled', enabledEvents: ['a', 'b'] },
    ])
    expect(await served.stripe.webhookEndpoints.retrieve('we_a')).toMatchObject({
      status: 'disabled',
      enabled_events: ['a', 'b'],
    })
    await expect(served.stripe.webhookEndpoints.retrieve('we_b')).rejects.toMatchObject({
      statusCode: 404,
    })
  })

  test('connected accounts are listed by pages, for the platform alone', async () => {
    await using served = await serveWithClient({
      connectedAccounts: ['acct_a', 'acct_b', 'acct_c'],
    })
    const first = await served.stripe.accounts.list({ limit: 2 })
    expect(ids(first)).toEqual(['acct_c', 'acct_b'])
    expect(first.has_more).toBe(true)
    const rest = await served.stripe.accounts.list({ starting_after: 'acct_b' })
    expect(ids(rest)).toEqual(['acct_a'])
    const theirs = await served.stripe.accounts.list({}, { stripeAccount: 'acct_a' })
    expect(theirs.data).toEqual([])
  })
})
