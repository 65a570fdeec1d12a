import { describe, expect, it } from 'vitest'
import { repeatedKey } from '../../src/core/repeated-key.ts'

describe('repeatedKey', () => {
  it.each([
    ['{"a":1,"a":2}', 'a'],
    ['{"a":{"b":1,"c":[{"d":1},{"d":1,"d":2}]}}', 'd'],
    [String.raw`{"a":1,"\u0061" : 2}`, 'a'],
    [String.raw`{"\"":1,"\"":2}`, '"'],
    ['{"x":{"a":1},"y":[],"x":1}', 'x'],
  ])('finds the one of %s', (json, key) => {
    expect(repeatedKey(json)).toBe(key)
  })

  it.each([
    ['{"a":1,"b":{"a":1},"c":[{"a":1},{"a":1}]}'],
    [String.raw`{"a":"a\":","b":"{\"a\":1,\"a\":2}"}`],
    ['["a","a",{"a":"a"}]'],
    ['"a"'],
    ['{"constructor":1,"__proto__":2}'],
  ])('finds none in %s', (json) => {
    expect(repeatedKey(json)).toBeNull()
  })
})
