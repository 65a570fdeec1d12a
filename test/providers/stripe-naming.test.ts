import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { NamedEvent } from '../../src/providers/provider.ts'
import { stripe } from '../../src/providers/stripe.ts'
import { checkoutSessionCompleted, stripeBody } from '../../src/testing/stripe-events.ts'
import { delivery, stripeSecret } from './deliveries.ts'

const source = stripe({ signingSecrets: [stripeSecret] })
const ofAccount = stripe({ signingSecrets: [stripeSecret], account: 'acct_own', connect: true })

function nameOf(body: string | Uint8Array, by = source): NamedEvent {
  const names = by.name(delivery(body, {}))
  expect(names).toHaveLength(1)
  return names[0] as NamedEvent
}

function hashOf(body: string | Uint8Array): string {
  return `sha256:${createHash('sha256').update(body).digest('hex')}`
}

describe('stripe().name', () => {
  it('takes id, type, environment, time and version from the body', () => {
    const event = checkoutSessionCompleted({ order: '1001', created: 1_700_000_000 })
    expect(nameOf(stripeBody(event))).toEqual({
      eventId: event.id,
      eventType: 'checkout.session.completed',
      environment: 'test',
      occurredAt: new Date('2023-11-14T22:13:20Z'),
      apiVersion: event.api_version,
    })
  })

  it('takes the connected account, and live from livemode', () => {
    const event = checkoutSessionCompleted({ account: 'acct_connected', livemode: true })
    const named = nameOf(stripeBody(event), ofAccount)
    expect(named).toMatchObject({ providerAccount: 'acct_connected', environment: 'live' })
  })

  it('reads a thin event: time as text, account at the end of its context', () => {
    const thin = {
      id: 'evt_thin',
      object: 'v2.core.event',
      type: 'v2.core.account.updated',
      livemode: true,
      created: '2026-01-02T03:04:05.678Z',
      context: 'acct_own/acct_member',
    }
    expect(nameOf(JSON.stringify(thin), ofAccount)).toEqual({
      eventId: 'evt_thin',
      eventType: 'v2.core.account.updated',
      providerAccount: 'acct_member',
      environment: 'live',
      occurredAt: new Date('2026-01-02T03:04:05.678Z'),
    })
  })

  it('takes a context for another account only when our own is known', () => {
    const body = JSON.stringify({ id: 'evt_1', type: 'a', context: 'acct_member' })
    expect(nameOf(body).providerAccount).toBeUndefined()
    expect(nameOf(body, ofAccount).providerAccount).toBe('acct_member')
    const own = JSON.stringify({ id: 'evt_1', type: 'a', context: 'acct_own' })
    expect(nameOf(own, ofAccount).providerAccount).toBeUndefined()
    const both = JSON.stringify({ id: 'evt_1', account: 'acct_a', context: 'acct_b' })
    expect(nameOf(both, ofAccount).providerAccount).toBe('acct_a')
  })

  it.each([
    ['missing', {}],
    ['null', { id: null }],
    ['a number', { id: 42 }],
    ['an object', { id: { evil: true } }],
    ['empty', { id: '' }],
    ['256 bytes long', { id: 'e'.repeat(256) }],
    ['over 255 bytes in UTF-8', { id: 'é'.repeat(128) }],
    ['10,000 bytes long', { id: 'e'.repeat(10_000) }],
    ['with NUL', { id: 'evt_\0' }],
    ['with a lone surrogate', { id: 'evt_\ud800' }],
    ['only inherited', { __proto__: { id: 'evt_evil' } }],
  ])('names an event by its bytes when its id is %s', (_, fields) => {
    const body = JSON.stringify({ ...fields, type: 'a.b' })
    expect(nameOf(body)).toMatchObject({ eventId: hashOf(body), eventType: 'a.b' })
  })

  it.each([
    ['255 bytes', 'e'.repeat(255)],
    ['255 bytes in UTF-8', `${'é'.repeat(127)}e`],
    ['an emoji', 'evt_🎈'],
    ['a composed letter', 'evt_\u00e9'],
    ['a decomposed letter', 'evt_e\u0301'],
    ['an escape sequence', 'evt_\u001b[31m'],
    ['quotes and backslashes', 'evt_"\\'],
  ])('keeps an id byte for byte: %s', (_, id) => {
    expect(nameOf(JSON.stringify({ id })).eventId).toBe(id)
  })

  it.each([[undefined], [null], [7], [''], ['t'.repeat(256)], ['a\0b'], ['\udfff'], [['a']]])(
    'calls the type unknown when it is %j',
    (type) => {
      expect(nameOf(JSON.stringify({ id: 'evt_1', type }))).toMatchObject({
        eventId: 'evt_1',
        eventType: 'unknown',
      })
    },
  )

  it.each([
    ['a number', '7'],
    ['an object', '{"id":"acct_1"}'],
    ['empty', '""'],
    ['too long', `"${'a'.repeat(256)}"`],
    ['with NUL', '"acct_\\u0000"'],
    ['false', 'false'],
  ])('never takes an account that is %s for our own, and admits it nowhere', (_, account) => {
    const body = `{"id":"evt_1","type":"a","account":${account}}`
    const { providerAccount } = nameOf(body, ofAccount)
    expect(providerAccount).toBe(hashOf(body))
    expect(ofAccount.allowsAccount(providerAccount ?? '')).toBe(false)
  })

  it('reads an account of null as none', () => {
    expect(nameOf('{"id":"evt_1","account":null}')).not.toHaveProperty('providerAccount')
  })

  it.each([[undefined], ['true'], [1], [null]])(
    'says no environment when livemode is %j',
    (livemode) => {
      expect(nameOf(JSON.stringify({ id: 'evt_1', livemode }))).not.toHaveProperty('environment')
    },
  )

  it.each([['yesterday'], [-1], [1e12], [1e300], [null], ['2026-01-02'], [{}], ['9999999999999']])(
    'says no time when created is %j',
    (created) => {
      expect(nameOf(JSON.stringify({ id: 'evt_1', created }))).not.toHaveProperty('occurredAt')
    },
  )

  it.each([
    ['no JSON', 'hello'],
    ['nothing', ''],
    ['an array', '[{"id":"evt_1"}]'],
    ['a text', '"evt_1"'],
    ['null', 'null'],
    ['not closed', '{"id":"evt_1"'],
    ['closed twice', '{"id":"evt_1"}}'],
    ['two values', '{"id":"evt_1"} {}'],
    ['a byte order mark in front', '\ufeff{"id":"evt_1"}'],
    ['a trailing comma', '{"id":"evt_1",}'],
    ['single quotes', "{'id':'evt_1'}"],
    ['a bare value', '{"id":evt_1}'],
    ['a text with a raw line end', '{"id":"evt_\n1"}'],
    ['a text with a bad escape', '{"id":"evt_\\x"}'],
  ])('names a body by its bytes when it is %s', (_, body) => {
    expect(nameOf(body)).toEqual({ eventId: hashOf(body), eventType: 'unknown' })
  })

  it('names a body by its bytes when they are no UTF-8', () => {
    const body = Buffer.concat([
      Buffer.from('{"id":"evt_1","a":"'),
      Buffer.from([0xff]),
      Buffer.from('"}'),
    ])
    expect(nameOf(body)).toEqual({ eventId: hashOf(body), eventType: 'unknown' })
  })

  it('gives bytes that differ in a lone surrogate names that differ', () => {
    const [a, b] = ['\\ud800', '\\ud801'].map((escape) => nameOf(`{"id":"evt_${escape}"}`).eventId)
    expect(a).not.toBe(b)
  })

  it('names a body nested a million deep without parsing it', () => {
    const deep = `{"id":"evt_deep","data":${'['.repeat(1e6)}${']'.repeat(1e6)},"type":"a.b"}`
    expect(nameOf(deep)).toEqual({ eventId: 'evt_deep', eventType: 'a.b' })
    const open = '{"a":'.repeat(2e5)
    expect(nameOf(open).eventId).toBe(hashOf(open))
  })

  it('takes the last of a repeated key, as JSON.parse does', () => {
    expect(nameOf('{"id":"evt_1","id":"evt_2"}').eventId).toBe('evt_2')
    expect(nameOf('{"id":"evt_1","\\u0069d":"evt_3"}').eventId).toBe('evt_3')
  })

  it('leaves prototypes alone', () => {
    nameOf('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}},"id":"evt_1"}')
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  it('never throws, and always gives names that a key can hold', () => {
    const hostile = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.json().map((text) => Buffer.from(text)),
      fc
        .record({
          id: fc.anything(),
          type: fc.anything(),
          account: fc.anything(),
          created: fc.anything(),
        })
        .map((fields) =>
          Buffer.from(JSON.stringify(fields, (_, value: unknown) => jsonable(value)) ?? ''),
        ),
    )
    fc.assert(
      fc.property(hostile, (body) => {
        const { eventId, eventType, providerAccount = 'none', occurredAt } = nameOf(body, ofAccount)
        for (const name of [eventId, eventType, providerAccount]) {
          expect(name).not.toBe('')
          expect(Buffer.byteLength(name)).toBeLessThanOrEqual(255)
          expect(name).not.toContain('\0')
          expect(Buffer.from(name).toString()).toBe(name)
        }
        expect(Number.isNaN(occurredAt?.getTime())).toBe(false)
      }),
      { numRuns: 500 },
    )
  })
})

function jsonable(value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

describe('requestKey', () => {
  it.each([
    ['the key of the request', { id: 'req_1', idempotency_key: 'key 1' }, 'key 1'],
    ['nothing where the request had no key', { id: 'req_1', idempotency_key: null }, null],
    ['nothing where nobody asked', { id: null, idempotency_key: null }, null],
    ['nothing in the form of old API versions', 'req_1', null],
    ['nothing where there is no request', null, null],
    ['nothing where the field is absent', undefined, null],
    ['nothing for a key that is no text', { idempotency_key: 5 }, null],
  ])('is %s', (_, request, key) => {
    expect(source.requestKey?.({ id: 'evt_1', request })).toBe(key)
  })
})
