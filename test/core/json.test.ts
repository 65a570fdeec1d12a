import { describe, expect, it } from 'vitest'
import { toJson } from '../../src/core/json.ts'

describe('toJson', () => {
  it('writes what JSON.stringify writes where there is no bigint', () => {
    for (const value of [
      null,
      1.5,
      'a"b',
      [],
      {},
      { a: [undefined, 'x', { b: null }], c: undefined },
      new Date(0),
    ]) {
      expect(toJson(value)).toBe(JSON.stringify(value))
    }
  })

  it('writes bigints as integers, exact at any size and depth', () => {
    const value = {
      small: 4900n,
      list: [1n, { deep: -7n }],
      big: 2n ** 63n - 1n,
      text: 'x',
      none: undefined,
    }
    expect(toJson(value)).toBe(
      '{"small":4900,"list":[1,{"deep":-7}],"big":9223372036854775807,"text":"x"}',
    )
    expect(toJson(9007199254740993n)).toBe('9007199254740993')
    expect(toJson({ at: new Date(0), amount: 2n ** 60n })).toBe(
      '{"at":"1970-01-01T00:00:00.000Z","amount":1152921504606846976}',
    )
  })

  it('leaves the value as it was', () => {
    const value = Object.freeze({ amount: 1n, nested: Object.freeze({ amount: 2n }) })
    expect(toJson(value)).toBe('{"amount":1,"nested":{"amount":2}}')
    expect(value).toEqual({ amount: 1n, nested: { amount: 2n } })
  })
})
