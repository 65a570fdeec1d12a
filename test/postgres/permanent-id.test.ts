import { describe, expect, it } from 'vitest'
import { permanentId } from '../../src/postgres/permanent-id.ts'

const installation = '6ba7b810-9dad-11d1-80b4-00c04fd430c8'

describe('permanentId', () => {
  it('is the version 5 UUID of its parts under the installation, for ever', () => {
    expect(permanentId(installation, ['paid_twice', 'stripe:acct:test', 'order:1'])).toBe(
      permanentId(installation, ['paid_twice', 'stripe:acct:test', 'order:1']),
    )
    expect(permanentId(installation, ['a'])).toMatch(
      /^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    )
  })

  it('is another one for other parts, wherever one ends and the next begins, and for another installation', () => {
    const ids = [
      permanentId(installation, ['a', 'bc']),
      permanentId(installation, ['ab', 'c']),
      permanentId(installation, ['abc']),
      permanentId(installation, ['a', 'b', 'c']),
      permanentId(installation, ['a', 'bc', '']),
      permanentId(installation, ['a","bc']),
      permanentId('7ba7b810-9dad-11d1-80b4-00c04fd430c8', ['a', 'bc']),
    ]
    expect(new Set(ids).size).toBe(ids.length)
  })
})
