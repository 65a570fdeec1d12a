import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { ReadBody } from '../../src/providers/body.ts'
import { readBody } from '../../src/providers/body.ts'
import { invoicePaid, stripeBody } from '../../src/testing/stripe-events.ts'

const read = (text: string, limits = {}): ReadBody => readBody(Buffer.from(text), limits)

function nested(depth: number, open = '{"a":', close = '}'): string {
  return `${open.repeat(depth - 1)}{}${close.repeat(depth - 1)}`
}

describe('readBody', () => {
  it('reads what JSON.parse reads, without a warning', () => {
    const body = stripeBody(invoicePaid())
    expect(read(body)).toEqual({ ok: true, value: JSON.parse(body), warnings: [] })
  })

  it('agrees with JSON.parse about every object', () => {
    const key = fc.string({ unit: 'binary', maxLength: 5 }).filter((one) => one !== '__proto__')
    const value = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 5 },
        fc.constant(null),
        fc.boolean(),
        fc.integer(),
        fc.double({ noNaN: true, noDefaultInfinity: true, min: -1e15, max: 1e15 }),
        fc.string({ unit: 'binary', maxLength: 8 }),
        fc.array(tie('any'), { maxLength: 4 }),
        fc.dictionary(key, tie('any'), { maxKeys: 4, noNullPrototype: true }),
      ),
    })).any
    fc.assert(
      fc.property(
        fc.dictionary(key, value, { noNullPrototype: true }),
        fc.boolean(),
        (object, indent) => {
          const text = JSON.stringify(object, null, indent ? 2 : undefined)
          expect(read(text)).toEqual({ ok: true, value: JSON.parse(text), warnings: [] })
        },
      ),
      { numRuns: 500 },
    )
  })

  it('says of any text whether JSON.parse would refuse it', () => {
    const fragment = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '"',
      ':',
      ',',
      '\\',
      '"a"',
      '-',
      '1',
      '.',
      'e',
      'null',
    )
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 9 }), (fragments) => {
        const text = fragments.join('')
        const result = read(text)
        const expected = classify(text)
        expect(result.ok ? 'object' : result.reason).toBe(expected)
      }),
      { numRuns: 20_000 },
    )
  })

  function classify(text: string): string {
    try {
      const value: unknown = JSON.parse(text)
      return typeof value === 'object' && value !== null && !Array.isArray(value)
        ? 'object'
        : 'not_object'
    } catch {
      return 'not_json'
    }
  }

  it.each([
    ['nothing', '', 'not_json'],
    ['no JSON', 'hello', 'not_json'],
    ['a byte order mark', '\ufeff{}', 'not_json'],
    ['two values', '{}{}', 'not_json'],
    ['a number', '1', 'not_object'],
    ['null', 'null', 'not_object'],
    ['a text', '"{}"', 'not_object'],
    ['an array', '[{}]', 'not_object'],
    ['65 objects deep', nested(65), 'too_deep'],
    ['65 arrays deep', `{"a":${'['.repeat(64)}${']'.repeat(64)}}`, 'too_deep'],
    ['a million deep', `{"a":${'['.repeat(1e6)}${']'.repeat(1e6)}}`, 'too_deep'],
    ['a million deep and never closed', '['.repeat(1e6), 'too_deep'],
  ])('refuses %s', (_, text, reason) => {
    expect(read(text)).toEqual({ ok: false, reason })
  })

  it.each([
    ['a stray byte', [0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]],
    ['a surrogate written in UTF-8', [0x22, 0xed, 0xa0, 0x80, 0x22]],
    ['an overlong form', [0x22, 0xc0, 0xaf, 0x22]],
    ['UTF-16', [0xff, 0xfe, 0x7b, 0x00, 0x7d, 0x00]],
  ])('refuses bytes that are no UTF-8: %s', (_, bytes) => {
    expect(readBody(Buffer.from(bytes))).toEqual({ ok: false, reason: 'not_utf8' })
  })

  it('permits a depth of exactly 64, or what the limits say', () => {
    expect(read(nested(64)).ok).toBe(true)
    expect(read(nested(3), { depth: 3 }).ok).toBe(true)
    expect(read(nested(4), { depth: 3 })).toEqual({ ok: false, reason: 'too_deep' })
  })

  it('permits exactly 10,000 keys, or what the limits say', () => {
    const keys = (count: number): string =>
      JSON.stringify(
        Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 0])),
      )
    expect(read(keys(10_000)).ok).toBe(true)
    expect(read(keys(10_001))).toEqual({ ok: false, reason: 'too_many_keys' })
    expect(read('{"a":{"b":1}}', { keys: 1 })).toEqual({ ok: false, reason: 'too_many_keys' })
  })

  it('counts neither brackets nor colons inside of strings', () => {
    const text = '{"a":"[[[{{{:::\\"[:","b\\\\":1}'
    expect(read(text, { depth: 1, keys: 2 })).toEqual({
      ok: true,
      value: JSON.parse(text),
      warnings: [],
    })
  })

  const warningsOf = (text: string): unknown => {
    const result = read(text)
    return result.ok ? result.warnings : result.reason
  }

  it.each([
    ['side by side', '{"a":1,"a":2}'],
    ['in a nested object', '{"x":[{"a":1,"b":2,"a":1}]}'],
    ['spelled differently', '{"a":1,"\\u0061":1}'],
    ['hiding an object', '{"a":{"b":1},"a":0}'],
    ['of the prototype', '{"__proto__":1,"__proto__":2}'],
  ])('warns of a key that came twice: %s', (_, text) => {
    expect(warningsOf(text)).toContain('duplicate_key')
  })

  it('does not take equal keys of different objects for one that came twice', () => {
    expect(warningsOf('{"a":{"a":1},"b":{"a":1},"c":[{"a":1},{"a":1}]}')).toEqual([])
  })

  it.each([
    '9007199254740992',
    '9007199254740993',
    '-9007199254740993',
    '12345678901234567890',
    '18446744073709551616',
    '1e16',
    '1e400',
    '-1e400',
    '1e-400',
    '0.12345678901234567890',
    '4900.000000000000000001',
    '123456789012345.678',
    '9'.repeat(400),
  ])('warns of a number that is not read as it was written: %s', (number) => {
    expect(warningsOf(`{"n":${number}}`)).toEqual(['inexact_number'])
    expect(warningsOf(`{"n":[1,{"n":${number}}]}`)).toEqual(['inexact_number'])
  })

  it.each([
    '0',
    '-0',
    '4900',
    '9007199254740991',
    '-9007199254740991',
    '1.10',
    '1e3',
    '1E+3',
    '100e-2',
    '0.1',
    '-12.5e2',
    '123456789012.345',
    '0.1000000000000000000000',
    '0e999',
    '1700000000.000000000000',
    '5e-324',
  ])('does not warn of %s', (number) => {
    expect(warningsOf(`{"n":${number}}`)).toEqual([])
  })

  it('warns of no number that JSON.stringify wrote, up to the largest exact integer', () => {
    const number = fc.double({
      noNaN: true,
      min: -Number.MAX_SAFE_INTEGER,
      max: Number.MAX_SAFE_INTEGER,
    })
    fc.assert(
      fc.property(number, (value) => {
        expect(warningsOf(JSON.stringify({ value }))).toEqual([])
      }),
    )
  })

  it('warns of every integer past the largest exact one', () => {
    fc.assert(
      fc.property(
        fc.bigInt({ min: 2n ** 53n, max: 2n ** 200n }),
        fc.boolean(),
        (value, negative) => {
          expect(warningsOf(`{"n":${negative ? '-' : ''}${value}}`)).toEqual(['inexact_number'])
        },
      ),
    )
  })

  it('does not look for numbers inside of strings', () => {
    expect(warningsOf('{"n":"12345678901234567890","1e400":"1e400"}')).toEqual([])
  })

  it('keeps lone surrogates and NUL, which JSON permits', () => {
    expect(read('{"a":"\\ud800","\\u0000":"\\u0000"}')).toEqual({
      ok: true,
      value: { a: '\ud800', '\0': '\0' },
      warnings: [],
    })
  })

  it('leaves out keys named __proto__, at every depth, and says so', () => {
    const result = read(
      '{"__proto__":{"admin":true},"a":[{"\\u005f_proto__":{"admin":true},"b":1}]}',
    )
    expect(result).toEqual({ ok: true, value: { a: [{ b: 1 }] }, warnings: ['proto_key'] })
    const copy = Object.assign({}, result.ok ? result.value : undefined) as { admin?: unknown }
    expect(copy.admin).toBeUndefined()
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype)
    expect(({} as { admin?: unknown }).admin).toBeUndefined()
  })

  it('keeps other names that mean something to JavaScript', () => {
    const text = '{"constructor":{"prototype":{"polluted":1}},"toString":1,"hasOwnProperty":2}'
    expect(read(text)).toEqual({ ok: true, value: JSON.parse(text), warnings: [] })
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })

  it('reads a view into a larger buffer and nothing around it', () => {
    const whole = Buffer.from('xx{"a":1}yy')
    const view = new Uint8Array(whole.buffer, whole.byteOffset + 2, whole.length - 4)
    expect(readBody(view)).toEqual({ ok: true, value: { a: 1 }, warnings: [] })
  })

  it.each([
    ['digits', `{"n":${'9'.repeat(1e6)}}`],
    ['zeros with a digit behind', `{"n":1.${'0'.repeat(1e6)}1}`],
    ['an endless exponent', `{"n":1e${'9'.repeat(1e6)}}`],
    ['signs', `{"n":${'-'.repeat(1e6)}}`],
    ['backslashes', `{"n":"${'\\'.repeat(1e6)}`],
    ['an open string', `{"n":"${'x'.repeat(1e6)}`],
    ['many long numbers', `{"n":[${'12345678901234567,'.repeat(55_000)}1]}`],
    ['brackets that do not match', ']}'.repeat(5e5)],
  ])('comes to an end on a megabyte of %s', (_, text) => {
    const result = read(text)
    expect(result.ok ? result.warnings[0] : result.reason).toMatch(/^(?:inexact_number|not_json)$/)
  })
})
