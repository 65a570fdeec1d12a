import { createHash, generateKeyPairSync, sign } from 'node:crypto'
import { inspect } from 'node:util'
import fc from 'fast-check'
import { Webhook } from 'standardwebhooks'
import { Webhook as SvixWebhook } from 'svix'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { NamedEvent } from '../../src/providers/provider.ts'
import { standardWebhooks } from '../../src/providers/standard-webhooks.ts'
import { signStandardWebhook } from '../../src/testing/sign.ts'
import { delivery, now, nowMs, otherSharedSecret, sharedSecret } from './deliveries.ts'

const source = standardWebhooks({ secrets: [sharedSecret] })
const id = 'msg_2KWPBgLlAfxdpx2AI54pPJ85f4W'
const body =
  '{"type":"invoice.paid","timestamp":"2023-11-14T22:13:20.123456Z","data":{"id":"in_1"}}'
const signed = signStandardWebhook(body, sharedSecret, { id, timestamp: now })
const token = signed['webhook-signature'] ?? ''

function verdictOf(
  changes: Readonly<Record<string, string | undefined>>,
  sent: string | Uint8Array = body,
): string {
  const verdict = source.verify(delivery(sent, { ...signed, ...changes }), nowMs)
  return verdict.ok ? 'valid' : verdict.reason
}

describe('standardWebhooks().verify', () => {
  it('accepts what a sender signs, under either family of names', () => {
    expect(source.verify(delivery(body, signed), nowMs)).toEqual({ ok: true, secret: 0 })
    const svix = signStandardWebhook(body, sharedSecret, { id, timestamp: now, names: 'svix' })
    expect(source.verify(delivery(body, svix), nowMs)).toEqual({ ok: true, secret: 0 })
  })

  it.each([
    ['no id', { 'webhook-id': undefined }, 'missing'],
    ['an empty id', { 'webhook-id': '' }, 'missing'],
    ['no timestamp', { 'webhook-timestamp': undefined }, 'missing'],
    ['no signature', { 'webhook-signature': undefined }, 'missing'],
    ['an empty signature', { 'webhook-signature': '' }, 'missing'],
    ['a timestamp that came twice', { 'webhook-timestamp': `${now}, ${now}` }, 'malformed'],
    ['a timestamp with junk', { 'webhook-timestamp': `${now}abc` }, 'malformed'],
    ['a timestamp with a leading zero', { 'webhook-timestamp': `0${now}` }, 'malformed'],
    ['a fraction of a second', { 'webhook-timestamp': `${now}.0` }, 'malformed'],
    ['an id that came twice', { 'webhook-id': `${id}, ${id}` }, 'mismatch'],
    ['another id', { 'webhook-id': 'msg_other' }, 'mismatch'],
    ['another timestamp', { 'webhook-timestamp': String(now + 1) }, 'mismatch'],
    ['a signature that came twice', { 'webhook-signature': `${token}, ${token}` }, 'malformed'],
    ['a signature without a version', { 'webhook-signature': token.slice(3) }, 'malformed'],
    ['an empty v1', { 'webhook-signature': 'v1,' }, 'mismatch'],
    ['many empty v1', { 'webhook-signature': 'v1, v1, v1,' }, 'mismatch'],
    ['a truncated v1', { 'webhook-signature': token.slice(0, -1) }, 'mismatch'],
    ['a v1 that is too long', { 'webhook-signature': `${token}AAAA` }, 'mismatch'],
    ['the alphabet of URLs', { 'webhook-signature': `v1,${'-'.repeat(43)}=` }, 'mismatch'],
    [
      'the signature under another version',
      { 'webhook-signature': token.replace('v1', 'v2') },
      'mismatch',
    ],
    [
      'a version named like a method',
      { 'webhook-signature': `toString,${token.slice(3)}` },
      'mismatch',
    ],
    [
      'a version named like a prototype',
      { 'webhook-signature': `__proto__,${token.slice(3)}` },
      'mismatch',
    ],
    ['the signature as v1a', { 'webhook-signature': token.replace('v1', 'v1a') }, 'mismatch'],
  ])('refuses %s', (_, changes, reason) => {
    expect(verdictOf(changes)).toBe(reason)
  })

  it('refuses the body with any single bit flipped, and any other body', () => {
    for (let at = 0; at < body.length; at++) {
      const forged = Buffer.from(body)
      forged[at] = (forged[at] ?? 0) ^ (1 << (at & 7))
      expect(verdictOf({}, forged)).toBe('mismatch')
    }
    expect(verdictOf({}, `${body} `)).toBe('mismatch')
    expect(verdictOf({}, '')).toBe('mismatch')
  })

  it('never mixes the two families of names', () => {
    const svix = signStandardWebhook(body, sharedSecret, { id, timestamp: now, names: 'svix' })
    const { 'svix-id': _, ...withoutId } = svix
    const judge = (headers: Record<string, string>): unknown =>
      source.verify(delivery(body, headers), nowMs)
    expect(judge({ ...withoutId, 'webhook-id': id })).toEqual({ ok: false, reason: 'missing' })
    expect(judge({ ...svix, 'webhook-signature': token })).toEqual({ ok: false, reason: 'missing' })
    expect(judge({ ...svix, 'webhook-id': 'msg_evil' })).toEqual({ ok: true, secret: 0 })
    const named = source.name(delivery(body, { ...svix, 'webhook-id': 'msg_evil' }))
    expect(named[0]?.eventId).toBe(id)
  })

  it('verifies under every secret of a rotation, and says which one', () => {
    const rotating = standardWebhooks({ secrets: [sharedSecret, otherSharedSecret] })
    const sentWith = (secrets: string[]): unknown =>
      rotating.verify(
        delivery(body, signStandardWebhook(body, secrets, { id, timestamp: now })),
        nowMs,
      )
    const unknown = `whsec_${Buffer.alloc(32, 1).toString('base64')}`
    expect(sentWith([otherSharedSecret])).toEqual({ ok: true, secret: 1 })
    expect(sentWith([unknown, sharedSecret])).toEqual({ ok: true, secret: 0 })
    expect(sentWith([unknown])).toEqual({ ok: false, reason: 'mismatch' })
  })

  it.each([
    [299, 'valid'],
    [300, 'valid'],
    [301, 'too_old'],
    [-299, 'valid'],
    [-300, 'valid'],
    [-301, 'too_new'],
  ])('says of an authentic delivery sent %d seconds ago: %s', (age, expected) => {
    expect(verdictOf(signStandardWebhook(body, sharedSecret, { id, timestamp: now - age }))).toBe(
      expected,
    )
  })

  it('verifies bytes that are no text', () => {
    const bytes = Buffer.from([0xef, 0xbb, 0xbf, 0xff, 0x00])
    const headers = signStandardWebhook(bytes, sharedSecret, { id, timestamp: now })
    expect(source.verify(delivery(bytes, headers), nowMs).ok).toBe(true)
  })

  it('verifies v1a under a public key, beside a shared secret', () => {
    const { publicKey, privateKey } = generateKeyPairSync('ed25519')
    const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
    const both = standardWebhooks({ secrets: [sharedSecret, `whpk_${raw.toString('base64')}`] })
    const signature = sign(null, Buffer.from(`${id}.${now}.${body}`), privateKey).toString('base64')
    const judge = (text: string): unknown =>
      both.verify(delivery(body, { ...signed, 'webhook-signature': text }), nowMs)
    expect(judge(`v1a,${signature}`)).toEqual({ ok: true, secret: 1 })
    expect(judge(`v1,${signature} v1a,${signature}`)).toEqual({ ok: true, secret: 1 })
    expect(judge(`v1,${signature}`)).toEqual({ ok: false, reason: 'mismatch' })
    expect(judge('v1a,')).toEqual({ ok: false, reason: 'mismatch' })
    expect(judge(token)).toEqual({ ok: true, secret: 0 })
  })
})

describe('standardWebhooks().verify beside the official packages', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'], now: nowMs })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  const text = fc
    .string({ unit: 'binary', maxLength: 200 })
    .filter((one) => one.isWellFormed() && !one.startsWith('\ufeff'))
  const messageId = fc.stringMatching(/^[A-Za-z0-9_.-]{1,40}$/)

  function accepts(run: () => unknown): boolean {
    try {
      run()
      return true
    } catch {
      return false
    }
  }

  it('accepts everything that they sign', () => {
    fc.assert(
      fc.property(text, messageId, fc.integer({ min: -300, max: 300 }), (payload, eventId, age) => {
        for (const [Signer, names] of [
          [Webhook, 'webhook'],
          [SvixWebhook, 'svix'],
        ] as const) {
          const signature = new Signer(sharedSecret).sign(
            eventId,
            new Date(nowMs - age * 1000),
            payload,
          )
          const headers = {
            [`${names}-id`]: eventId,
            [`${names}-timestamp`]: String(now - age),
            [`${names}-signature`]: signature,
          }
          expect(source.verify(delivery(payload, headers), nowMs)).toEqual({ ok: true, secret: 0 })
        }
      }),
    )
  })

  it('signs so that they accept', () => {
    fc.assert(
      fc.property(fc.jsonValue(), messageId, (payload, eventId) => {
        const sent = JSON.stringify(payload)
        const asWebhook = signStandardWebhook(sent, sharedSecret, { id: eventId })
        const asSvix = signStandardWebhook(sent, sharedSecret, { id: eventId, names: 'svix' })
        expect(accepts(() => new Webhook(sharedSecret).verify(sent, asWebhook))).toBe(true)
        expect(accepts(() => new SvixWebhook(sharedSecret).verify(sent, asSvix))).toBe(true)
      }),
    )
  })

  it('never accepts what they refuse, and refuses more only for a lenient spelling', () => {
    const aged = (age: number): string =>
      signStandardWebhook(body, sharedSecret, { id, timestamp: now - age })['webhook-signature'] ??
      ''
    const element = fc.constantFrom(
      token,
      aged(299),
      aged(301),
      token.replace('v1', 'v2'),
      token.slice(0, -1),
      `${token},`,
      'v1,',
      'v1',
      '',
      ',',
      signStandardWebhook(body, otherSharedSecret, { id, timestamp: now })['webhook-signature'] ??
        '',
    )
    const sentAt = fc.constantFrom(
      String(now),
      String(now - 299),
      String(now - 301),
      `${now}x`,
      `0${now}`,
    )
    let accepted = 0
    fc.assert(
      fc.property(fc.array(element, { maxLength: 4 }), sentAt, (elements, timestamp) => {
        const headers = {
          'webhook-id': id,
          'webhook-timestamp': timestamp,
          'webhook-signature': elements.join(' '),
        }
        const ours = source.verify(delivery(body, headers), nowMs).ok
        const official = accepts(() => new Webhook(sharedSecret).verify(body, headers))
        if (ours) accepted++
        if (ours) expect(official).toBe(true)
        const lenient =
          !/^[1-9]\d*$/.test(timestamp) ||
          elements.some((one) => one !== '' && one.split(',').length !== 2)
        if (official && !lenient) expect(ours).toBe(true)
      }),
      { numRuns: 2_000 },
    )
    expect(accepted).toBeGreaterThan(20)
  })
})

describe('standardWebhooks().name', () => {
  function nameOf(
    sent: string | Uint8Array,
    headers: Readonly<Record<string, string>> = signed,
  ): NamedEvent {
    const names = source.name(delivery(sent, headers))
    expect(names).toHaveLength(1)
    return names[0] as NamedEvent
  }
  const hashOf = (sent: string): string =>
    `sha256:${createHash('sha256').update(sent).digest('hex')}`

  it('takes the id from the signed header, type and time from the body', () => {
    expect(nameOf(body)).toEqual({
      eventId: id,
      eventType: 'invoice.paid',
      occurredAt: new Date('2023-11-14T22:13:20.123Z'),
    })
  })

  it('does not take an id from the body', () => {
    expect(nameOf('{"id":"evt_body","type":"a"}').eventId).toBe(id)
  })

  it.each([
    ['no timestamp', '{"type":"a"}'],
    ['a timestamp that is no moment', '{"type":"a","timestamp":"2023-13-45T99:00:00Z"}'],
    ['a timestamp without a zone', '{"type":"a","timestamp":"2023-11-14T22:13:20"}'],
    ['a number', '{"type":"a","timestamp":1700000000123}'],
    ['no object', '[]'],
  ])('takes the time of the delivery when the body has %s', (_, sent) => {
    expect(nameOf(sent).occurredAt).toEqual(new Date(nowMs))
  })

  it.each([
    ['too long', 'm'.repeat(256)],
    ['too long in UTF-8', 'é'.repeat(128)],
    ['with NUL', 'msg_\0'],
  ])('names an event by its bytes when its id is %s', (_, hostile) => {
    expect(nameOf(body, { ...signed, 'webhook-id': hostile }).eventId).toBe(hashOf(body))
  })

  it.each([['{"type":7}'], ['{}'], ['no json'], ['{"type":"\\u0000"}'], ['']])(
    'calls the type unknown in %j',
    (sent) => {
      expect(nameOf(sent)).toMatchObject({ eventId: id, eventType: 'unknown' })
    },
  )

  it('never throws, whatever the bytes are', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 200 }),
        fc.string({ unit: 'binary' }),
        (bytes, hostile) => {
          const named = nameOf(bytes, { ...signed, 'webhook-id': hostile })
          expect(Buffer.byteLength(named.eventId)).toBeLessThanOrEqual(255)
          expect(named.eventId).not.toMatch(/\0|^$/)
        },
      ),
    )
  })
})

describe('standardWebhooks() options', () => {
  const messageOf = (secrets: unknown): string => {
    const { problem } = standardWebhooks({ secrets: secrets as string[] })
    if (problem === undefined) return 'accepted'
    expect(problem).toMatchObject({ code: 'HKL_CONFIG_SECRET' })
    return problem.message
  }

  it.each([
    ['unset', [undefined], 'secrets[0] is not set'],
    ['empty', [''], 'secrets[0] is not set'],
    ['with a line end', [`${sharedSecret}\n`], 'secrets[0] contains whitespace'],
    ['no base64', ['whsec_not*base64'], 'secrets[0] is not base64'],
    ['only a prefix', ['whsec_'], 'secrets[0] is not base64'],
    ['base64 without its padding', [sharedSecret.replace(/=+$/, '')], 'secrets[0] is not base64'],
    [
      '23 bytes',
      [`whsec_${Buffer.alloc(23).toString('base64')}`],
      'secrets[0] decodes to fewer than 24',
    ],
    [
      'a private key',
      [`whsk_${Buffer.alloc(64).toString('base64')}`],
      'secrets[0] is a private key',
    ],
    [
      'a public key of 31 bytes',
      [`whpk_${Buffer.alloc(31).toString('base64')}`],
      'not a public key of 32',
    ],
    ['bad in second place', [sharedSecret, ''], 'secrets[1] is not set'],
    ['none', [], 'secrets must be an array'],
    ['no array', sharedSecret, 'secrets must be an array'],
  ])('refuses a secret that is %s', (_, secrets, message) => {
    expect(messageOf(secrets)).toContain(message)
  })

  it('accepts 24 bytes, with and without the prefix', () => {
    const secret = Buffer.alloc(24, 7).toString('base64')
    expect(messageOf([secret])).toBe('accepted')
    expect(messageOf([`whsec_${secret}`])).toBe('accepted')
  })

  it('lets only its own account act', () => {
    const own = standardWebhooks({ secrets: [sharedSecret], account: 'org_1', environment: 'test' })
    expect(own).toMatchObject({
      provider: 'standard-webhooks',
      account: 'org_1',
      environment: 'test',
    })
    expect(own.allowsAccount('org_1')).toBe(true)
    expect(own.allowsAccount('org_2')).toBe(false)
  })

  it('shows no secret when it is printed', () => {
    const bare = sharedSecret.replace('whsec_', '')
    expect(inspect(source, { depth: 9 }) + JSON.stringify(source)).not.toContain(bare)
  })
})
