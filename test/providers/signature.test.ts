import { createHmac, generateKeyPairSync, sign } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  decodeBase64,
  decodeBase64Digest,
  decodeHexDigest,
  ed25519Key,
  findSigner,
  hmacKey,
  hmacSha256,
  judgeAge,
  parseTimestamp,
} from '../../src/providers/signature.ts'

const digest = Buffer.from(Array.from({ length: 32 }, (_, index) => index * 7))

describe('decodeHexDigest', () => {
  it('reads back every digest', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        expect(decodeHexDigest(Buffer.from(bytes).toString('hex'))).toEqual(Buffer.from(bytes))
      }),
    )
  })

  const hex = digest.toString('hex')
  it.each([
    ['empty', ''],
    ['upper case', hex.toUpperCase()],
    ['31 bytes', hex.slice(2)],
    ['33 bytes', `${hex}00`],
    ['half a byte short', hex.slice(1)],
    ['a letter that is no hex', `${hex.slice(0, 63)}g`],
    ['whitespace around', ` ${hex.slice(2)} `],
    ['a line end', `${hex}\n`],
    ['junk that a lenient decoder skips', `${hex.slice(0, 62)}zz${hex.slice(62)}`],
  ])('refuses %s', (_, text) => {
    expect(decodeHexDigest(text)).toBeUndefined()
  })
})

describe('decodeBase64Digest', () => {
  it('reads back every digest', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 32, maxLength: 32 }), (bytes) => {
        expect(decodeBase64Digest(Buffer.from(bytes).toString('base64'))).toEqual(
          Buffer.from(bytes),
        )
      }),
    )
  })

  const base64 = Buffer.alloc(32, 0xfb).toString('base64')
  it.each([
    ['empty', ''],
    ['no padding', base64.slice(0, -1)],
    ['too much padding', `${base64.slice(0, -2)}==`],
    ['31 bytes', Buffer.alloc(31).toString('base64')],
    ['33 bytes', Buffer.alloc(33).toString('base64')],
    ['the alphabet of URLs', base64.replaceAll('+', '-').replaceAll('/', '_')],
    ['spare bits that are not zero', `${base64.slice(0, -2)}${base64.at(-2) === 's' ? 't' : 's'}=`],
    ['a character that Buffer skips', `${base64.slice(0, -1)}*`],
    ['a line end', `${base64.slice(0, -1)}\n`],
  ])('refuses %s', (_, text) => {
    expect(decodeBase64Digest(text)).toBeUndefined()
  })

  it('has exactly one text for each digest', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
    const head = base64.slice(0, 42)
    const read = [...alphabet].filter((last) => decodeBase64Digest(`${head}${last}=`) !== undefined)
    // The last character has two spare bits: 16 of 64 are canonical.
    expect(read).toHaveLength(16)
  })
})

describe('decodeBase64', () => {
  it('refuses the empty text', () => {
    expect(decodeBase64('')).toBeUndefined()
  })

  it('reads only what it would write', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 60 }), (text) => {
        const bytes = decodeBase64(text)
        expect(bytes === undefined || bytes.toString('base64') === text).toBe(true)
      }),
    )
  })
})

describe('parseTimestamp', () => {
  it.each([
    ['0', 0],
    ['1', 1],
    ['1700000000', 1_700_000_000],
    ['999999999999', 999_999_999_999],
  ])('reads %s', (text, expected) => {
    expect(parseTimestamp(text)).toBe(expected)
  })

  it.each([
    '',
    ' ',
    '-1',
    '+1',
    '1.0',
    '1e3',
    '0x10',
    '01',
    '00',
    '1700000000abc',
    '1700000000 ',
    ' 1700000000',
    '1700000000\n',
    '1,700,000,000',
    '1000000000000',
    '9'.repeat(400),
    'NaN',
    'Infinity',
    '١٧٠٠٠٠٠٠٠٠',
  ])('refuses %j', (text) => {
    expect(parseTimestamp(text)).toBeUndefined()
  })
})

describe('judgeAge', () => {
  const sentAt = 1_700_000_000
  it.each([
    [0, undefined],
    [299, undefined],
    [300, undefined],
    [301, 'too_old'],
    [-299, undefined],
    [-300, undefined],
    [-301, 'too_new'],
    [1e9, 'too_old'],
    [-1e9, 'too_new'],
  ])('says of a delivery sent %d seconds ago: %s', (age, expected) => {
    expect(judgeAge(sentAt, (sentAt + age) * 1000, 300)).toBe(expected)
  })

  it('counts whole seconds, as senders do', () => {
    expect(judgeAge(sentAt, (sentAt + 300) * 1000 + 999, 300)).toBeUndefined()
    expect(judgeAge(sentAt, (sentAt - 300) * 1000 - 1, 300)).toBe('too_new')
  })

  it.each([NaN, Infinity, -Infinity])('refuses when the clock says %d', (nowMs) => {
    expect(judgeAge(sentAt, nowMs, 300)).toBeDefined()
  })
})

describe('hmacKey', () => {
  it('agrees with an HMAC over the joined bytes, whatever the bytes are', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1 }),
        fc.string({ unit: 'grapheme' }),
        fc.uint8Array({ maxLength: 500 }),
        (secret, prefix, body) => {
          const joined = Buffer.concat([Buffer.from(prefix, 'utf8'), body])
          const expected = createHmac('sha256', secret).update(joined).digest()
          expect(hmacSha256(secret, { prefix, body })).toEqual(expected)
          expect(hmacKey('v1', secret).matches({ prefix, body }, [expected])).toBe(true)
        },
      ),
    )
  })

  it('refuses a signature with any single bit flipped', () => {
    const content = { prefix: '1.', body: Buffer.from('{}') }
    const key = hmacKey('v1', Buffer.from('secret'))
    const signature = hmacSha256('secret', content)
    for (let bit = 0; bit < 256; bit++) {
      const forged = Buffer.from(signature)
      forged[bit >> 3] = (forged[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      expect(key.matches(content, [forged])).toBe(false)
    }
    expect(key.matches(content, [signature])).toBe(true)
  })

  it('answers false, and does not throw, for a signature of another length', () => {
    const content = { prefix: '', body: Buffer.from('{}') }
    const signature = hmacSha256('secret', content)
    const key = hmacKey('v1', Buffer.from('secret'))
    const others = [
      Buffer.alloc(0),
      signature.subarray(0, 31),
      Buffer.concat([signature, signature]),
    ]
    expect(key.matches(content, others)).toBe(false)
    expect(key.matches(content, [])).toBe(false)
  })

  it('shows nothing of the secret when it is printed', () => {
    const secret = 'a-secret-that-must-not-print'
    const key = hmacKey('v1', Buffer.from(secret))
    expect(JSON.stringify(key)).not.toContain(secret)
    expect(JSON.stringify(key)).not.toContain(Buffer.from(secret).toString('hex'))
  })
})

describe('ed25519Key', () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const raw = publicKey.export({ format: 'der', type: 'spki' }).subarray(-32)
  const content = { prefix: 'msg_1.1700000000.', body: Buffer.from('{"type":"a"}') }
  const message = Buffer.concat([Buffer.from(content.prefix), content.body])
  const signature = sign(null, message, privateKey)

  it('accepts what the private key signed, among other signatures', () => {
    expect(ed25519Key('v1a', raw).matches(content, [Buffer.alloc(64), signature])).toBe(true)
  })

  it('refuses another body, another key, and signatures of no length that one has', () => {
    const key = ed25519Key('v1a', raw)
    expect(key.matches({ ...content, body: Buffer.from('{"type":"b"}') }, [signature])).toBe(false)
    expect(ed25519Key('v1a', Buffer.alloc(32, 9)).matches(content, [signature])).toBe(false)
    expect(key.matches(content, [Buffer.alloc(0), signature.subarray(1)])).toBe(false)
    expect(key.matches(content, [])).toBe(false)
  })
})

describe('findSigner', () => {
  it('says which secret signed, and -1 when none did', () => {
    const content = { prefix: '1.', body: Buffer.from('{}') }
    const keys = ['one', 'two', 'three'].map((secret) => hmacKey('v1', Buffer.from(secret)))
    const signature = hmacSha256('two', content)
    expect(findSigner(keys, content, () => [Buffer.alloc(32), signature])).toBe(1)
    expect(findSigner(keys, content, () => [hmacSha256('four', content)])).toBe(-1)
    expect(findSigner([], content, () => [signature])).toBe(-1)
  })

  it('gives a key only the signatures of its own scheme', () => {
    const content = { prefix: '1.', body: Buffer.from('{}') }
    const keys = [hmacKey('v2', Buffer.from('one'))]
    const signature = hmacSha256('one', content)
    expect(findSigner(keys, content, (scheme) => (scheme === 'v1' ? [signature] : []))).toBe(-1)
    expect(findSigner(keys, content, (scheme) => (scheme === 'v2' ? [signature] : []))).toBe(0)
  })
})
