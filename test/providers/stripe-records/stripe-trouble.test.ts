import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { stripeRecords } from '../../../src/providers/stripe-records/stripe-records.ts'
import { RecordsError } from '../../../src/workflow/records.ts'
import { paidSession } from '../../testing/stripe-double/stripe-client.ts'
import { going, serveRecords, troubleOf } from './served-records.ts'

const error = (type: string, code?: string) => ({
  error: {
    type,
    message: 'sk_test_123 is in a text of Stripe',
    ...(code !== undefined && { code }),
  },
})

describe('trouble', () => {
  test.each([
    [429, error('invalid_request_error', 'rate_limit'), 'unavailable'],
    [429, 'slow down', 'unavailable'],
    [408, '', 'unavailable'],
    [500, error('api_error'), 'unavailable'],
    [503, '<html>no healthy upstream</html>', 'unavailable'],
    [502, {}, 'unavailable'],
    [409, error('invalid_request_error', 'lock_timeout'), 'unavailable'],
    [401, error('invalid_request_error'), 'refused'],
    [403, error('invalid_request_error', 'more_permissions_required'), 'refused'],
    [400, error('invalid_request_error', 'parameter_unknown'), 'refused'],
    [404, error('invalid_request_error'), 'refused'],
    [404, '<html>not found</html>', 'garbage'],
    [403, 'blocked by the firewall', 'garbage'],
  ] as const)('an answer of %i is %s', async (status, body, trouble) => {
    await using served = await serveRecords()
    paidSession(served.double)
    served.double.fault({ respond: { status, body } })
    const listing = await troubleOf(served.walk('event'))
    expect(listing).toBeInstanceOf(RecordsError)
    expect(listing.trouble).toBe(trouble)
    const reference = { kind: 'event', id: 'evt_1', account: 'stripe' }
    expect((await troubleOf(served.records.fetch(reference, going))).trouble).toBe(trouble)
    expect(listing.message).toContain('/v1/events')
    expect(listing.message).not.toContain('sk_test')
    // nothing is repeated behind our back
    expect(served.double.log.entries('api_call')).toHaveLength(2)
  })

  test('a provider that asks for patience is given the time that it names', async () => {
    await using served = await serveRecords()
    const fault = served.double.fault({
      respond: { status: 429, body: error('x', 'rate_limit'), headers: { 'retry-after': '7' } },
    })
    expect((await troubleOf(served.walk('event'))).retryAfterMs).toBe(7_000)
    fault.remove()
    served.double.fault({
      respond: {
        status: 503,
        body: '',
        headers: {
          date: 'Mon, 30 Nov 2026 12:00:00 GMT',
          'retry-after': 'Mon, 30 Nov 2026 12:02:00 GMT',
        },
      },
    })
    expect((await troubleOf(served.walk('event'))).retryAfterMs).toBe(120_000)
  })

  test('a cut connection and a provider that is not there are unavailable', async () => {
    await using served = await serveRecords()
    served.double.fault({ reset: true })
    const cut = await troubleOf(served.walk('event'))
    expect(cut).toMatchObject({ trouble: 'unavailable' })
    expect(cut.message).toContain('was closed before an answer came')
    const nobody = stripeRecords({ base: 'http://127.0.0.1:9', key: 'sk_test_123' })
    const reference = { kind: 'event', id: 'evt_1', account: 'stripe' }
    expect(await troubleOf(nobody.fetch(reference, going))).toMatchObject({
      trouble: 'unavailable',
    })
  })

  test('an answer that is cut is said so, and one that does not end is garbage', async () => {
    const piece = Buffer.alloc(4 * 1024 * 1024, ' ')
    const server = createServer((request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('{')
      if (request.url?.startsWith('/v1/refunds') === true) {
        setTimeout(() => response.destroy(), 20)
        return
      }
      const go = (): void => {
        while (!response.destroyed && response.write(piece));
        if (!response.destroyed) response.once('drain', go)
      }
      go()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const records = stripeRecords({ base: `http://127.0.0.1:${port}`, key: 'sk_test_123' })
    const of = (kind: string, id: string) =>
      troubleOf(records.fetch({ kind, id, account: 'stripe' }, going))
    try {
      const cut = await of('refund', 're_1')
      expect(cut.trouble).toBe('unavailable')
      expect(cut.message).toContain('closed before the answer was whole')
      const endless = await of('event', 'evt_1')
      expect(endless.trouble).toBe('garbage')
      expect(endless.message).toContain('longer than 64 MiB')
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })

  test('whoever is told to stop does not wait for an answer', async () => {
    await using served = await serveRecords()
    served.double.fault({ delayMs: 20_000 })
    const stopping = new AbortController()
    setTimeout(() => stopping.abort(), 20)
    const { records } = served
    const listing = records.list({
      kind: 'event',
      account: 'stripe',
      from: new Date(0),
      to: new Date(served.clock.now()),
      cursor: null,
      signal: stopping.signal,
    })
    expect(await troubleOf(listing)).toMatchObject({ trouble: 'unavailable' })
  })

  test('a wrong key is refused, and never shown', async () => {
    await using served = await serveRecords({ apiKey: 'sk_test_right' }, { key: 'sk_test_wrong_1' })
    const trouble = await troubleOf(served.walk('event'))
    expect(trouble).toMatchObject({ trouble: 'refused' })
    expect(trouble.message).toContain('apiKey')
    expect(trouble.message).not.toContain('sk_test_wrong')
  })

  test('a key of the other environment is refused as soon as it shows a record', async () => {
    await using served = await serveRecords({ livemode: true })
    paidSession(served.double)
    const trouble = await troubleOf(served.walk('payment_intent'))
    expect(trouble).toMatchObject({ trouble: 'refused' })
    expect(trouble.message).toContain('live environment')
  })

  test('a cursor that cannot be read is lost', async () => {
    await using served = await serveRecords()
    const query = { kind: 'event', account: 'stripe', from: new Date(0), signal: going }
    const listing = served.records.list({ ...query, to: new Date(), cursor: 'page 2 of 7' })
    expect(await troubleOf(listing)).toMatchObject({ trouble: 'cursor_lost' })
  })
})

describe('fetch', () => {
  test('the record is the one that the list shows, as it is now', async () => {
    await using served = await serveRecords({ listLagMs: 60_000 })
    const { intent } = paidSession(served.double)
    served.double.refund({ paymentIntent: intent, amount: 900 })
    const reference = { kind: 'payment_intent', id: intent, account: 'stripe' }
    const fetched = await served.records.fetch(reference, going)
    served.clock.move(60_000)
    expect((await served.walk('payment_intent')).records).toEqual([fetched])
  })

  test('what the provider does not have is null, and only that', async () => {
    await using served = await serveRecords()
    for (const [kind, id] of [
      ['payment_intent', 'pi_none'],
      ['checkout.session', 'cs_none'],
      ['refund', 're_none'],
      ['charge', 'ch_none'],
      ['event', 'evt_none'],
    ] as const) {
      const reference = { kind, id, account: 'stripe' }
      expect(await served.records.fetch(reference, going)).toBeNull()
    }
    const unknown = { kind: 'payout', id: 'po_1', account: 'stripe' }
    expect(await troubleOf(served.records.fetch(unknown, going))).toMatchObject({
      trouble: 'refused',
    })
  })

  test('an answer that is another record is garbage', async () => {
    await using served = await serveRecords()
    const body = { id: 're_2', object: 'refund', created: 1 }
    served.double.fault({ respond: { status: 200, body } })
    const reference = { kind: 'refund', id: 're_1', account: 'stripe' }
    expect(await troubleOf(served.records.fetch(reference, going))).toMatchObject({
      trouble: 'garbage',
    })
  })
})
