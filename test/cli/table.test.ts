import { describe, expect, it } from 'vitest'
import { columns, duration, moment, plural, relative } from '../../src/cli/table.ts'

describe('columns', () => {
  it('aligns every column but the last, numbers to the right', () => {
    expect(
      columns(
        [
          ['a', '1', 'x'],
          ['long', '200', 'yy'],
        ],
        [1],
      ),
    ).toBe('a       1  x\nlong  200  yy')
  })

  it('takes rows of different lengths and leaves no trailing blanks', () => {
    expect(columns([['a', 'b'], ['c'], ['d', '']])).toBe('a  b\nc\nd')
  })
})

describe('duration', () => {
  it.each([
    [0, '0 ms'],
    [850, '850 ms'],
    [1000, '1 s'],
    [59_999, '1 min'],
    [61_000, '1 min 1 s'],
    [3_600_000, '1 h'],
    [11_100_000, '3 h 5 min'],
    [360_000_000, '4 d 4 h'],
  ])('says %i ms as %s', (milliseconds, text) => {
    expect(duration(milliseconds)).toBe(text)
  })
})

describe('relative', () => {
  it('says how long ago and how far ahead', () => {
    const now = Date.parse('2026-01-01T00:00:00Z')
    expect(relative('2025-12-31T23:59:00Z', now)).toBe('1 min ago')
    expect(relative('2026-01-01T02:00:00Z', now)).toBe('in 2 h')
  })
})

describe('moment', () => {
  it('is the time in UTC to the millisecond', () => {
    expect(moment('2026-01-01T12:00:00.123Z')).toBe('2026-01-01 12:00:00.123')
  })
})

describe('plural', () => {
  it.each([
    [0, 'event', '0 events'],
    [1, 'event', '1 event'],
    [2, 'delivery', '2 deliveries'],
    [2, 'batch', '2 batches'],
    [3, 'day', '3 days'],
  ])('makes %i %s into %s', (count, noun, text) => {
    expect(plural(count, noun)).toBe(text)
  })
})
