import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  Numeral,
  parseAnswer,
  parseExact,
  writeExact,
  type ExactJson,
} from '../../console/src/exact-json.ts'

describe('parseExact', () => {
  it('reads whatever JSON.parse reads, to the same value, where no numeral is changed by it', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), (text) => {
        const plain = JSON.parse(text) as unknown
        expect(asNumbers(parseExact(text))).toEqual(plain)
      }),
    )
  })

  it('refuses whatever JSON.parse refuses', () => {
    const broken = [
      '',
      '{',
      '[1,]',
      '{"a":1,}',
      '01',
      '1.',
      '+1',
      "'a'",
      '"\u0001"',
      '[1] 2',
      'nul',
      '{a:1}',
    ]
    for (const text of [...broken, '"\\x"', '{"a" 1}', '[1 2]', '\ufeff1']) {
      expect(() => JSON.parse(text) as unknown, text).toThrow()
      expect(() => parseExact(text), text).toThrow(SyntaxError)
    }
  })

  it('keeps the digits of a numeral that a double cannot hold', () => {
    const text = '{"id":9007199254740993,"rate":1.10,"far":1e400,"small":-0.00000000000000000001}'
    expect(writeExact(parseExact(text)).replace(/\s/g, '')).toBe(text)
    expect(parseExact('9007199254740993')).toEqual(new Numeral('9007199254740993'))
    expect(parseExact('9007199254740992')).toBe(9007199254740992)
  })

  it('takes a field named __proto__ as a field, and changes no prototype', () => {
    const value = parseExact('{"__proto__":{"polluted":true}}') as Record<string, unknown>
    expect(Object.keys(value)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })

  it('gives up on nesting that would exhaust the stack', () => {
    expect(() => parseExact('['.repeat(100_000))).toThrow('deeper than 200')
  })
})

describe('parseAnswer', () => {
  it('gives plain numbers for an ordinary answer and the digits of a number past 2^53', () => {
    expect(parseAnswer('{"count":12,"share":0.5}')).toEqual({ count: 12, share: 0.5 })
    expect(parseAnswer('{"evidence":{"key":12345678901234567890}}')).toEqual({
      evidence: { key: new Numeral('12345678901234567890') },
    })
  })
})

describe('writeExact', () => {
  it('writes what reads back to the same value', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
        expect(JSON.parse(writeExact(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })
})

function asNumbers(value: ExactJson): unknown {
  if (value instanceof Numeral) return Number(value.text)
  if (Array.isArray(value)) return value.map((item: ExactJson) => asNumbers(item))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, asNumbers(item)]))
}
