import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { arrayLiteral } from '../../src/postgres/array-literal.ts'

/** PostgreSQL's rules for reading an array literal of one dimension. */
function read(literal: string): (string | null)[] {
  const values: (string | null)[] = []
  let at = 1
  while (at < literal.length - 1) {
    let text = ''
    if (literal[at] === '"') {
      for (at++; literal[at] !== '"'; at++) {
        if (literal[at] === '\\') at++
        text += literal[at]
      }
      at++
      values.push(text)
    } else {
      while (at < literal.length - 1 && literal[at] !== ',') text += literal[at++]
      values.push(/^null$/i.test(text) ? null : text)
    }
    at++
  }
  return values
}

describe('arrayLiteral', () => {
  it('writes numbers, booleans and null without quotes', () => {
    expect(arrayLiteral([1, true, false, null, 2.5])).toBe('{1,true,false,NULL,2.5}')
    expect(arrayLiteral([])).toBe('{}')
  })

  it('keeps texts that look like something else apart', () => {
    const texts = [
      '',
      'NULL',
      'null',
      'nUlL',
      ' ',
      'a b',
      '{}',
      '{',
      '"',
      '\\',
      '\\"',
      'a,b',
      '\n',
      '\u00a0x',
      'nulls',
      '::',
      '\ufeff',
    ]
    expect(read(arrayLiteral(texts))).toEqual(texts)
  })

  it('comes back as it was for any texts', () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.string({ unit: 'binary' }))), (texts) => {
        expect(read(arrayLiteral(texts))).toEqual(texts)
      }),
    )
  })
})
