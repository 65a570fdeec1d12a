import { describe, expect, it } from 'vitest'
import { nameFlaw, reasonFlaw } from '../../src/core/recorded-text.ts'

describe('what is recorded with an act', () => {
  it('takes a reason of up to 2,000 characters, over several lines', () => {
    expect(reasonFlaw(`because\n${'x'.repeat(1992)}`)).toBeNull()
    expect(reasonFlaw('x'.repeat(2001))).toBe('is longer than 2000 characters')
  })

  it('takes a name of up to 200 characters, whatever its letters', () => {
    expect(nameFlaw(`Ada Lovelace-Żółć ${'x'.repeat(182)}`)).toBeNull()
    expect(nameFlaw('x'.repeat(201))).toBe('is longer than 200 characters')
  })

  it.each([['\n'], ['\u001b[31m'], ['\u0000'], ['\u007f'], ['\u009b'], ['\u2028']])(
    'takes no name with the control character %j',
    (character) => {
      expect(nameFlaw(`ada${character}`)).toBe('contains a control character')
    },
  )
})
