import { createHash } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { InboxSource } from '../../src/inbox/source.ts'
import { signStripe } from '../../src/testing/sign.ts'
import type { ReceiverBench } from './receiver-bench.ts'
import {
  createReceiverBench,
  eventBody,
  heard,
  receiverOver,
  secret,
  signed,
  storedEvents,
  stripeSource,
  until,
} from './receiver-bench.ts'

let bench: ReceiverBench

beforeAll(async () => {
  bench = await createReceiverBench({ sources: testSources() })
})

afterAll(() => bench.close())

afterEach(() =>
  bench.rows(
    'truncate hookledger.inbox_events, hookledger.payloads, hookledger.inbox_ready, hookledger.deliveries, hookledger.inbox_redeliveries, hookledger.rejections',
  ),
)

/** Beside `stripe`, sources whose naming is whatever the body's lines say, or throws. */
function testSources(): Map<string, InboxSource> {
  const lines: InboxSource = {
    ...stripeSource,
    provider: 'lines',
    name: ({ rawBody }) =>
      Buffer.from(rawBody)
        .toString()
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => ({ eventId: line, eventType: 'line' })),
  }
  const careless: InboxSource = {
    ...stripeSource,
    provider: 'careless',
    name: ({ rawBody }) => JSON.parse(Buffer.from(rawBody).toString()) as never,
  }
  const broken: InboxSource = {
    ...stripeSource,
    verify: () => {
      throw new Error('a bug in the verifier')
    },
  }
  return new Map([
    ['stripe', stripeSource],
    ['lines', lines],
    ['careless', careless],
    ['broken', broken],
  ])
}

function sha256(bytes: Uint8Array | string): string {
  return createHash('sha256').update(bytes).digest('hex')
}

async function bodyOf(eventId: string): Promise<Buffer | undefined> {
  const [row] = await bench.rows<{ body: Buffer }>(
    'select p.body from hookledger.payloads p join hookledger.inbox_events e using (event_key) where e.event_id = $1',
    [eventId],
  )
  return row?.body
}

describe('ingest', () => {
  it('stores identity, exact bytes, a ready row and a delivery before it says 200', async () => {
    const body = Buffer.from(eventBody('evt_one'))
    const [event] = storedEvents(await bench.receiver.ingest(signed(body)))
    expect(event).toMatchObject({ eventId: 'evt_one', duplicate: false, decision: null })
    const [row] = await bench.rows(
      `select e.event_key, s.provider, s.provider_account, s.environment, e.event_type, e.api_version, e.via, e.body_bytes,
         e.occurred_at, encode(e.body_sha256, 'hex') as hash, encode(d.body_sha256, 'hex') as delivered, p.body,
         r.received_on = (e.received_at at time zone 'UTC')::date and r.received_on = p.received_on as same_day
       from hookledger.inbox_events e join hookledger.sources s using (source_id)
       join hookledger.payloads p using (event_key) join hookledger.inbox_ready r using (event_key)
       join hookledger.deliveries d on d.source_id = e.source_id and d.event_id = e.event_id`,
    )
    expect(row).toEqual({
      event_key: String(event?.eventKey),
      provider: 'stripe',
      provider_account: 'acct_main',
      environment: 'test',
      event_type: 'checkout.session.completed',
      api_version: '2026-10-28.endive',
      via: 'webhook',
      body_bytes: body.length,
      occurred_at: new Date(1_790_000_000_000),
      hash: sha256(body),
      delivered: sha256(body),
      body,
      same_day: true,
    })
  })

  it('answers a duplicate 200 with the first event key, and writes a delivery for it', async () => {
    const [first] = storedEvents(await bench.receiver.ingest(signed(eventBody('evt_again'))))
    const [second] = storedEvents(await bench.receiver.ingest(signed(eventBody('evt_again'))))
    expect(second).toEqual({ ...first, duplicate: true })
    expect(await bench.count('inbox_events')).toBe(1)
    expect(await bench.count('payloads')).toBe(1)
    expect(await bench.count('deliveries')).toBe(2)
    expect(await bench.rows('select event_id from hookledger.inbox_redeliveries')).toEqual([
      { event_id: 'evt_again' },
    ])
  })

  it('leaves the ready row of a known event alone', async () => {
    await bench.receiver.ingest(signed(eventBody('evt_finished')))
    await bench.rows('delete from hookledger.inbox_ready')
    await bench.receiver.ingest(signed(eventBody('evt_finished')))
    expect(await bench.count('inbox_ready')).toBe(0)
  })

  it('tells the recorded final decision of a duplicate', async () => {
    const [event] = storedEvents(await bench.receiver.ingest(signed(eventBody('evt_decided'))))
    await bench.rows(
      `insert into hookledger.ledger_decisions (event_key, kind, final, reason, actor) values ($1, 'skipped', true, 'not ours to do', 'worker')`,
      [String(event?.eventKey)],
    )
    const [again] = storedEvents(await bench.receiver.ingest(signed(eventBody('evt_decided'))))
    expect(again).toEqual({
      eventId: 'evt_decided',
      eventKey: event?.eventKey,
      duplicate: true,
      decision: 'skipped',
    })
  })

  it('keeps the first body when the same id comes with other bytes, and the hash of the others', async () => {
    const first = eventBody('evt_changed')
    const second = eventBody('evt_changed', { pending_webhooks: 2 })
    await bench.receiver.ingest(signed(first))
    expect(await bench.receiver.ingest(signed(second))).toMatchObject({ status: 200 })
    expect((await bodyOf('evt_changed'))?.toString()).toBe(first)
    const hashes = await bench.rows<{ hash: string }>(
      `select encode(body_sha256, 'hex') as hash from hookledger.deliveries order by delivery_id`,
    )
    expect(hashes).toEqual([{ hash: sha256(first) }, { hash: sha256(second) }])
  })

  it('stores every event of a delivery, each with the whole body', async () => {
    const request = { ...signed('a\nb\nc\nb\n'), source: 'lines' }
    const events = storedEvents(await bench.receiver.ingest(request))
    expect(events.map(({ eventId, duplicate }) => [eventId, duplicate])).toEqual([
      ['a', false],
      ['b', false],
      ['c', false],
      ['b', true],
    ])
    expect(events[3]?.eventKey).toBe(events[1]?.eventKey)
    expect((await bodyOf('c'))?.toString()).toBe('a\nb\nc\nb\n')
    expect(await bench.count('payloads')).toBe(3)
  })

  it('stores a delivery that names no event, and one whose naming throws, under the hash of its bytes', async () => {
    for (const source of ['lines', 'careless']) {
      const [event] = storedEvents(await bench.receiver.ingest({ ...signed('\n'), source }))
      expect(event?.eventId).toBe(`sha256:${sha256('\n')}`)
    }
    expect(await bench.count('inbox_events')).toBe(2)
  })

  it('stores what no key can hold under the hash of the bytes', async () => {
    const names = ['', 'with\0nul', 'x'.repeat(256), 'é'.repeat(200), 'lone \ud800 surrogate', 7]
    for (const name of names) {
      const body = JSON.stringify([
        {
          eventId: name,
          eventType: name,
          providerAccount: name,
          apiVersion: name,
          occurredAt: null,
        },
      ])
      const request = { ...signed(body), source: 'careless' }
      const [event] = storedEvents(await bench.receiver.ingest(request))
      expect(event?.eventId).toBe(`sha256:${sha256(body)}`)
    }
    expect(await bench.count('inbox_ready')).toBe(names.length)
  })

  it.each([
    ['NUL in a text', '{"id":"evt_h","type":"t","x":"\\u0000"}'],
    ['a lone surrogate', '{"id":"evt_h","type":"t","x":"\\ud800"}'],
    [
      'a million levels',
      `{"id":"evt_h","type":"t","x":${'['.repeat(500_000)}${']'.repeat(500_000)}}`,
    ],
    ['numbers that no double holds', '{"id":"evt_h","type":"t","x":[1e400,18446744073709551616]}'],
    ['duplicate keys', '{"id":"evt_h","id":"evt_h2","type":"t"}'],
    [
      '__proto__',
      '{"id":"evt_h","type":"t","__proto__":{"polluted":true},"constructor":{"prototype":{}}}',
    ],
    ['a byte order mark', '\ufeff{"id":"evt_h","type":"t"}'],
    ['no JSON at all', 'id=evt_h&type=t'],
    ['an empty body', ''],
    ['an id of 10 kB', JSON.stringify({ id: 'e'.repeat(10_000), type: 't' })],
    ['an id with NUL', '{"id":"evt\\u0000h","type":"t"}'],
    ['an emoji for an id', '{"id":"🧾🧾","type":"t"}'],
  ])('stores %s, byte for byte, and answers 200', async (_what, text) => {
    const body = Buffer.from(text)
    const [event] = storedEvents(await bench.receiver.ingest(signed(body)))
    expect((await bodyOf(event?.eventId ?? ''))?.equals(body)).toBe(true)
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  it('stores bytes that are not UTF-8, and tells composed from decomposed ids', async () => {
    const invalid = Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0xc3, 0x28, 0x7d])
    const [event] = storedEvents(await bench.receiver.ingest(signed(invalid)))
    expect((await bodyOf(event?.eventId ?? ''))?.equals(invalid)).toBe(true)
    await bench.receiver.ingest(signed(eventBody('caf\u00e9')))
    await bench.receiver.ingest(signed(eventBody('cafe\u0301')))
    expect(await bench.count('inbox_events')).toBe(3)
  })

  it('gives a connected account, and an event of the other environment, a namespace of its own', async () => {
    await bench.receiver.ingest(signed(eventBody('evt_same')))
    await bench.receiver.ingest(signed(eventBody('evt_same', { account: 'acct_other' })))
    await bench.receiver.ingest(signed(eventBody('evt_same', { livemode: true })))
    expect(
      await bench.rows(
        `select s.provider_account, s.environment from hookledger.inbox_events e join hookledger.sources s using (source_id) order by 1, 2`,
      ),
    ).toEqual([
      { provider_account: 'acct_main', environment: 'live' },
      { provider_account: 'acct_main', environment: 'test' },
      { provider_account: 'acct_other', environment: 'test' },
    ])
  })

  it('registers a namespace again when the database under it was replaced', async () => {
    await bench.receiver.ingest(signed(eventBody('evt_before')))
    await bench.rows('truncate hookledger.inbox_events')
    await bench.rows('delete from hookledger.sources')
    const [event] = storedEvents(await bench.receiver.ingest(signed(eventBody('evt_after'))))
    expect(event).toMatchObject({ duplicate: false })
    expect(
      await bench.rows(
        'select s.provider_account from hookledger.inbox_events e join hookledger.sources s using (source_id)',
      ),
    ).toEqual([{ provider_account: 'acct_main' }])
    expect(await bench.count('deliveries')).toBe(2)
  })

  it('stores requests that come together in one statement each with its own body', async () => {
    const ids = Array.from({ length: 300 }, (_, n) => `evt_${n}`)
    const bodies = ids.map((id, n) => eventBody(id, { padding: 'p'.repeat(n * 7) }))
    const outcomes = await Promise.all(bodies.map((body) => bench.receiver.ingest(signed(body))))
    expect(outcomes.every(({ status }) => status === 200)).toBe(true)
    const stored = await bench.rows<{ event_id: string; body: Buffer; whole: boolean }>(
      `select e.event_id, p.body, sha256(p.body) = e.body_sha256 and length(p.body) = e.body_bytes as whole
       from hookledger.inbox_events e join hookledger.payloads p using (event_key)`,
    )
    expect(stored).toHaveLength(300)
    for (const { event_id, body, whole } of stored) {
      expect(whole).toBe(true)
      expect(body.toString()).toBe(bodies[ids.indexOf(event_id)])
    }
  })

  it('signals what was new and what was not, once for each batch', async () => {
    const details = heard(bench.signals, 'inbox.events.stored')
    await bench.receiver.ingest(signed(eventBody('evt_signal')))
    await bench.receiver.ingest(signed(eventBody('evt_signal')))
    expect(details).toEqual([
      { events: 1, duplicates: 0 },
      { events: 0, duplicates: 1 },
    ])
  })

  it('takes headers as a function, as Headers, and as a record in any case', async () => {
    const { rawBody, headers } = signed(eventBody('evt_headers'))
    const record = headers as Record<string, string>
    const signature = record['stripe-signature'] ?? ''
    for (const form of [
      (name: string) => record[name],
      new Headers(record),
      { 'Stripe-Signature': signature },
      { 'stripe-signature': [signature] },
    ]) {
      expect(
        await bench.receiver.ingest({ source: 'stripe', headers: form, rawBody }),
      ).toMatchObject({ status: 200 })
    }
  })
})

describe('refusals', () => {
  it('answers a bad signature 400, an unknown source 404 and a large body 413, and stores nothing', async () => {
    const good = signed(eventBody('evt_refused'))
    const outcomes = [
      await bench.receiver.ingest(signed(eventBody('evt_refused'), `whsec_${'x'.repeat(32)}`)),
      await bench.receiver.ingest({ ...good, headers: {} }),
      await bench.receiver.ingest({
        ...good,
        headers: signStripe(good.rawBody, secret, 1_600_000_000),
      }),
      await bench.receiver.ingest({ ...good, source: 'nobody' }),
      await bench.receiver.ingest(signed(Buffer.alloc(1024 * 1024 + 1, 0x20))),
    ]
    expect(outcomes.map(({ status }) => status)).toEqual([400, 400, 400, 404, 413])
    expect(await bench.count('deliveries')).toBe(0)
    expect(await bench.count('inbox_events')).toBe(0)
  })

  it.each([
    ['a text', '{}'],
    ['a parsed body', { id: 'evt_1' }],
    ['nothing', undefined],
    ['an ArrayBuffer', new ArrayBuffer(2)],
    ['null', null],
  ])('says what to pass where the app hands over %s in place of the bytes', async (_, rawBody) => {
    const given = {
      ...signed(eventBody('evt_not_bytes')),
      rawBody: rawBody as unknown as Uint8Array,
    }
    expect(await bench.receiver.ingest(given)).toMatchObject({
      status: 503,
      code: 'HKL_INBOX_BODY_CONSUMED',
      message: expect.stringContaining('express.raw()') as unknown,
    })
  })

  it('says the same of a wrong signature, a missing one and an old one', async () => {
    const good = signed(eventBody('evt_same_answer'))
    const wrong = await bench.receiver.ingest(
      signed(eventBody('evt_same_answer'), `whsec_${'x'.repeat(32)}`),
    )
    const missing = await bench.receiver.ingest({ ...good, headers: {} })
    const old = await bench.receiver.ingest({
      ...good,
      headers: signStripe(good.rawBody, secret, 1_600_000_000),
    })
    expect(missing).toEqual(wrong)
    expect(old).toEqual(wrong)
    expect(JSON.stringify(wrong)).not.toMatch(/[0-9a-f]{16}/)
  })

  it('asks for the event again when the verifier itself fails', async () => {
    expect(await bench.receiver.ingest({ ...signed('{}'), source: 'broken' })).toMatchObject({
      status: 503,
      code: 'HKL_INBOX_UNAVAILABLE',
      retryAfterSeconds: 5,
    })
  })

  it('queries nothing for a request that proved nothing', async () => {
    const pool = bench.database.pool()
    const idle = receiverOver(pool)
    for (let n = 0; n < 20; n++) {
      await idle.ingest(signed(eventBody('evt_no_work'), `whsec_${'x'.repeat(32)}`))
      await idle.ingest({ ...signed(eventBody('evt_no_work')), source: 'nobody' })
    }
    expect(pool.totalCount).toBe(0)
    await idle.stop()
  })

  it('counts refusals by source and reason, and adds to the count of the minute', async () => {
    const own = await createReceiverBench()
    const details = heard(own.signals, 'inbox.request.rejected')
    for (let n = 0; n < 3; n++) await own.receiver.ingest({ ...signed('{}'), headers: {} })
    await own.receiver.ingest({ ...signed('{}'), source: '<script>' })
    await until(async () => (await own.count('rejections')) === 2)
    await own.receiver.ingest({ ...signed('{}'), headers: {} })
    await own.receiver.stop()
    expect(details).toHaveLength(5)
    expect(details[0]).toEqual({ source: 'stripe', reason: 'missing', status: 400 })
    expect(
      await own.rows(
        'select source, reason, sum(times)::int as times from hookledger.rejections group by 1, 2 order by 1',
      ),
    ).toEqual([
      { source: '(unknown)', reason: 'unknown_source', times: 1 },
      { source: 'stripe', reason: 'missing', times: 4 },
    ])
    await own.close()
  })

  it('answers 503 after stop', async () => {
    const stopped = receiverOver(bench.pool)
    await stopped.stop()
    expect(await stopped.ingest(signed(eventBody('evt_late')))).toMatchObject({ status: 503 })
  })
})
