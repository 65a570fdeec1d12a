import { describe, expect, it } from 'vitest'
import { printable, printableData } from '../../src/observe/printable.ts'

describe('printable', () => {
  it('leaves ordinary text alone, in every script', () => {
    expect(printable('order 1001 – größer, 注文, 😀')).toBe('order 1001 – größer, 注文, 😀')
  })

  it.each([
    ['\u0000', '\\x00'],
    ['a\nb', 'a\\x0ab'],
    ['\u001b[2J', '\\x1b[2J'],
    ['\u009b31m', '\\x9b31m'],
    ['\u202eabc', '\\u202eabc'],
    ['\u2066', '\\u2066'],
    ['\ud800', '\ufffd'],
  ])('escapes %j', (text, escaped) => {
    expect(printable(text)).toBe(escaped)
  })
})

describe('printableData', () => {
  it('escapes every text of plain data and keeps everything else', () => {
    const at = new Date(0)
    expect(printableData({ 'k\n': ['\u001b', 1, null, true, 2n, at] })).toEqual({
      'k\\x0a': ['\\x1b', 1, null, true, 2n, at],
    })
  })
})
