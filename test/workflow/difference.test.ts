import { describe, expect, test } from 'vitest'
import { differences, stableText } from '../../src/workflow/difference.ts'

describe('stableText', () => {
  test('is the same whatever the order of keys, and not of lists', () => {
    expect(stableText({ a: 1, b: [1, 2] })).toBe(stableText({ b: [1, 2], a: 1 }))
    expect(stableText([1, 2])).not.toBe(stableText([2, 1]))
  })

  test('tells apart what JSON does not', () => {
    const values = [
      1,
      1n,
      '1',
      new Date(1),
      null,
      undefined,
      [],
      {},
      new Map([[1, 2]]),
      new Set([1]),
      [undefined],
    ]
    expect(new Set(values.map(stableText)).size).toBe(values.length)
    expect(stableText(new Set([2, 1]))).toBe(stableText(new Set([1, 2])))
    expect(stableText(new Date(NaN))).toBe('Date(invalid)')
  })
})

describe('differences', () => {
  test('name the part that differs, what it is and what was expected', () => {
    const actual = { order: { state: 'paid', amount: 1n }, extra: 1 }
    const expected = { order: { state: 'refunded', amount: 1n }, gone: [1] }
    expect(differences(actual, expected)).toEqual([
      'order, state: "paid", not "refunded"',
      'gone: missing, not [1]',
      'extra: 1, not missing',
    ])
  })

  test('are none of equal values', () => {
    expect(differences({ a: [1, { b: 2 }] }, { a: [1, { b: 2 }] })).toEqual([])
  })

  test('are cut after some, and long values are cut short', () => {
    const many = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`k${index}`, index]))
    expect(differences(many, {}, 3)).toHaveLength(4)
    expect(differences(many, {}, 3)[3]).toBe('and 6 more')
    expect(differences('x'.repeat(500), 1)[0]?.length).toBeLessThan(230)
  })

  test('see own keys that are called like parts of every object', () => {
    expect(differences({}, JSON.parse('{"constructor":1}'))).toEqual([
      'constructor: missing, not 1',
    ])
  })
})
