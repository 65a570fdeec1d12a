import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { stripe } from '../../../src/providers/stripe.ts'
import { paidSession } from '../../testing/stripe-double/stripe-client.ts'
import { going, idsOf, serveRecords, troubleOf } from './served-records.ts'

const secret = 'whsec_1234567890123456'

describe('connected accounts', () => {
  test('without Connect, the source’s own account is all there is, and nobody is asked', async () => {
    await using served = await serveRecords()
    expect(await served.records.accounts('stripe', going)).toEqual(['stripe'])
    expect(served.double.log.entries('api_call')).toEqual([])
  })

  test('all connected accounts are listed, over more than one page, the own one first', async () => {
    const connectedAccounts = Array.from({ length: 230 }, (_, at) => `acct_c${at}`)
    await using served = await serveRecords({ connectedAccounts }, { connect: true })
    const accounts = await served.records.accounts('stripe', going)
    expect(accounts[0]).toBe('stripe')
    expect([...accounts].sort()).toEqual([...connectedAccounts, 'stripe'].sort())
    expect(served.double.log.entries('api_call')).toHaveLength(3)
  })

  test('named accounts are gone through without asking who else is connected', async () => {
    await using served = await serveRecords({}, { connect: ['acct_a', 'acct_own'] })
    expect(await served.records.accounts('acct_own', going)).toEqual(['acct_own', 'acct_a'])
    expect(served.double.log.entries('api_call')).toEqual([])
  })

  test('records and events of a connected account are asked for there, and belong there', async () => {
    await using served = await serveRecords({ connectedAccounts: ['acct_a'] }, { connect: true })
    const { double, records } = served
    const own = paidSession(double)
    const theirs = double.forAccount('acct_a')
    const { id } = theirs.createSession({ clientReferenceId: '1' })
    const intent = theirs.completeSession(id).payment_intent as string

    const found = await served.walk('payment_intent', { account: 'acct_a' })
    expect(idsOf(found.records)).toEqual([intent])
    expect(found.records[0]).toMatchObject({ account: 'acct_a' })
    expect(idsOf((await served.walk('payment_intent')).records)).toEqual([own.intent])
    const reference = { kind: 'payment_intent', id: intent, account: 'stripe' }
    expect(await records.fetch(reference, going)).toBeNull()

    const events = await served.walk('event', { account: 'acct_a' })
    for (const record of [...found.records, ...events.records]) {
      expect(record.account).toBe('acct_a')
      for (const made of records.eventsOf(record)) {
        const source = stripe({ account: 'acct_1', signingSecrets: [secret], connect: true })
        const rawBody = new TextEncoder().encode(JSON.stringify(made.body))
        const [named] = source.name({ headers: () => undefined, rawBody })
        expect(named).toMatchObject({ eventId: made.eventId, providerAccount: 'acct_a' })
      }
    }
  })

  test('an event that does not say where it happened gets the account that it was listed for', async () => {
    await using served = await serveRecords({}, { connect: ['acct_a'] })
    const object = { id: 'evt_1', object: 'event', type: 'refund.created', created: 1 }
    const record = { kind: 'event', id: 'evt_1', createdAt: new Date(1000), object }
    const bodyIn = (account: string): unknown =>
      served.records.eventsOf({ ...record, account })[0]!.body
    expect(bodyIn('acct_a')).toEqual({ ...object, account: 'acct_a' })
    expect(bodyIn('stripe')).toEqual(object)
  })

  test('a list of accounts that goes wrong is garbage', async () => {
    await using served = await serveRecords({ connectedAccounts: ['acct_a'] }, { connect: true })
    const body = { object: 'list', data: [], has_more: true }
    served.double.fault({ match: { path: '/v1/accounts' }, respond: { status: 200, body } })
    const asking = served.records.accounts('stripe', going)
    expect(await troubleOf(asking)).toMatchObject({ trouble: 'garbage' })
  })
})

describe('endpoints', () => {
  test('every endpoint is told, with what it delivers and in which version', async () => {
    await using served = await serveRecords({
      webhookEndpoints: [
        { url: 'https://shop.example/a' },
        { url: 'https://shop.example/b', status: 'disabled', enabledEvents: ['refund.created'] },
        { url: 'https://shop.example/c', apiVersion: null },
      ],
    })
    const all = await served.records.endpoints!('stripe', going)
    expect([...all].reverse()).toEqual([
      {
        url: 'https://shop.example/a',
        enabled: true,
        types: null,
        apiVersion: served.records.apiVersion,
      },
      {
        url: 'https://shop.example/b',
        enabled: false,
        types: ['refund.created'],
        apiVersion: served.records.apiVersion,
      },
      { url: 'https://shop.example/c', enabled: true, types: null, apiVersion: null },
    ])
    served.double.setWebhookEndpoints([])
    expect(await served.records.endpoints!('stripe', going)).toEqual([])
  })

  test('a key without the right to see endpoints is refused', async () => {
    await using served = await serveRecords()
    const body = { error: { type: 'invalid_request_error', code: 'more_permissions_required' } }
    served.double.fault({ match: { path: /webhook_endpoints/ }, respond: { status: 403, body } })
    const asking = served.records.endpoints!('stripe', going)
    expect(await troubleOf(asking)).toMatchObject({ trouble: 'refused' })
  })
})

describe('stripe()', () => {
  test('a source has records when it is given a key for the API, and only then', () => {
    const apiKey = 'rk_test_1234567890'
    expect(stripe({ signingSecrets: [secret] }).records).toBeUndefined()
    expect(stripe({ signingSecrets: [secret], apiKey: '' }).records).toBeUndefined()
    const source = stripe({ signingSecrets: [secret], apiKey })
    expect(source.records?.kinds.map(({ kind }) => kind)).toEqual([
      'event',
      'checkout.session',
      'subscription',
      'payment_intent',
      'invoice',
      'invoice_payment',
      'refund',
      'dispute',
    ])
    expect(inspect(source, { depth: 9, getters: true })).not.toContain(apiKey)
    expect(JSON.stringify(source)).not.toContain(apiKey)
  })

  test('objects are asked for in the version that is given, and events say so', async () => {
    await using served = await serveRecords({}, { apiVersion: '2026-03-25.dahlia' })
    const { intent } = paidSession(served.double)
    expect(served.records.apiVersion).toBe('2026-03-25.dahlia')
    const reference = { kind: 'payment_intent', id: intent, account: 'stripe' }
    const record = await served.records.fetch(reference, going)
    const [made] = served.records.eventsOf(record!)
    expect(made).toMatchObject({
      apiVersion: '2026-03-25.dahlia',
      body: { api_version: '2026-03-25.dahlia' },
    })
    const { problem } = stripe({
      signingSecrets: [secret],
      apiKey: 'sk_test_1',
      apiVersion: 'the newest',
    })
    expect(problem).toMatchObject({ code: 'HKL_CONFIG_INVALID' })
    expect(problem?.message).toContain('apiVersion')
  })
})
