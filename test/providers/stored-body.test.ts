import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readBody } from '../../src/providers/body.ts'
import { readStoredBody } from '../../src/providers/stored-body.ts'
import { invoicePaid, stripeBody } from '../../src/testing/stripe-events.ts'

const limits = { depth: 64, keys: 10_000 }
const bytes = (text: string): Buffer => Buffer.from(text)

function isDeeplyFrozen(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  return Object.isFrozen(value) && Object.values(value).every(isDeeplyFrozen)
}

/** A body of two sizes: as it is, and so long that the other way of reading is taken. */
const sizes = (text: string): Buffer[] => [bytes(text), bytes(text + ' '.repeat(70_000))]

describe('readStoredBody', () => {
  it('reads what JSON.parse reads, frozen to its leaves', () => {
    for (const body of sizes(stripeBody(invoicePaid()))) {
      const read = readStoredBody(body, limits)
      expect(read).toEqual({ ok: true, value: JSON.parse(body.toString()) as unknown })
      expect(read.ok && isDeeplyFrozen(read.value)).toBe(true)
    }
  })

  it('agrees with readBody about every object, whatever its size', () => {
    const { any } = fc.letrec((tie) => ({
      any: fc.oneof(
        { maxDepth: 5 },
        fc.constant(null),
        fc.boolean(),
        fc.integer(),
        fc.string({ unit: 'binary', maxLength: 8 }),
        fc.array(tie('any'), { maxLength: 4 }),
        fc.dictionary(fc.string({ unit: 'binary', maxLength: 5 }), tie('any'), {
          maxKeys: 4,
          noNullPrototype: true,
        }),
      ),
    }))
    fc.assert(
      fc.property(any, (value) => {
        const text = JSON.stringify(value)
        const expected = readBody(bytes(text))
        for (const body of sizes(text)) {
          const read = readStoredBody(body, limits)
          expect(read).toEqual(expected.ok ? { ok: true, value: expected.value } : expected)
        }
      }),
    )
  })

  it('says why a body cannot be read', () => {
    const deep = (depth: number): string => `${'{"a":'.repeat(depth - 1)}{}${'}'.repeat(depth - 1)}`
    const wide = (keys: number): string =>
      JSON.stringify(Object.fromEntries(Array.from({ length: keys }, (_, n) => [n, 0])))
    const reason = (body: Uint8Array, given = limits): unknown => {
      const read = readStoredBody(body, given)
      return read.ok ? 'ok' : read.reason
    }
    for (const [text, expected] of [
      ['{', 'not_json'],
      ['', 'not_json'],
      ['[]', 'not_object'],
      ['null', 'not_object'],
      ['1', 'not_object'],
      [deep(64), 'ok'],
      [deep(65), 'too_deep'],
      [deep(5000), 'too_deep'],
    ] as const) {
      for (const body of sizes(text))
        expect([text.length, reason(body)]).toEqual([text.length, expected])
    }
    for (const body of sizes(wide(20))) {
      expect(reason(body, { ...limits, keys: 20 })).toBe('ok')
      expect(reason(body, { ...limits, keys: 19 })).toBe('too_many_keys')
    }
    expect(reason(Buffer.from([0x7b, 0xff, 0x7d]))).toBe('not_utf8')
    expect(reason(Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x7d]))).toBe('not_json')
  })

  it('leaves members named __proto__ out, at any depth', () => {
    for (const body of sizes('{"__proto__":{"a":1},"b":[{"__proto__":1,"c":2}]}')) {
      expect(readStoredBody(body, limits)).toEqual({ ok: true, value: { b: [{ c: 2 }] } })
    }
  })
})
