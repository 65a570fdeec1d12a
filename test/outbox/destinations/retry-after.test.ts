import { describe, expect, it } from 'vitest'
import { httpDate, retryAfterMs } from '../../../src/outbox/destinations/retry-after.ts'

const now = Date.UTC(2026, 10, 30, 12, 0, 0)
const hour = 3_600_000
const wait = (retryAfter: string | undefined, date?: string): number | undefined =>
  retryAfterMs({ retryAfter, date }, now, hour)

describe('retryAfterMs', () => {
  it.each([
    ['0', 0],
    ['1', 1000],
    ['120', 120_000],
    [' 7 ', 7000],
    ['007', 7000],
  ])('takes %j as seconds', (text, expected) => {
    expect(wait(text)).toBe(expected)
  })

  it.each(['3601', '1000000000', '9'.repeat(400), 'Fri, 31 Dec 9999 23:59:59 GMT'])(
    'caps %s',
    (text) => {
      expect(wait(text)).toBe(hour)
    },
  )

  it.each([
    'Mon, 30 Nov 2026 12:00:30 GMT',
    'Monday, 30-Nov-26 12:00:30 GMT',
    'Mon Nov 30 12:00:30 2026',
  ])('counts %s from this clock where the answer has no date', (text) => {
    expect(wait(text)).toBe(30_000)
  })

  it('counts from the date of the answer, so that a wrong clock on either side changes nothing', () => {
    const theirs = 'Tue, 01 Dec 2026 18:00:00 GMT'
    expect(wait('Tue, 01 Dec 2026 18:00:45 GMT', theirs)).toBe(45_000)
    expect(wait('Tue, 01 Dec 2026 17:00:00 GMT', theirs)).toBe(0)
    expect(wait('Mon, 30 Nov 2026 12:00:10 GMT', 'nonsense')).toBe(10_000)
  })

  it('takes a date that is past as now', () => {
    expect(wait('Sun, 06 Nov 1994 08:49:37 GMT')).toBe(0)
  })

  it.each([
    undefined,
    '',
    ' ',
    '-1',
    '+5',
    '1.5',
    '1e3',
    '0x10',
    'soon',
    '5, 10',
    '2026-11-30T12:00:30Z',
    'Mon, 30 Nov 2026 12:00:30',
    'Mon, 30 Nov 2026 12:00:30 CET',
    'Mon, 31 Nov 2026 12:00:30 GMT',
    'Mon, 30 Now 2026 12:00:30 GMT',
    'Mon, 30 Nov 2026 24:00:00 GMT',
    'Mon, 30 Nov 2026 12:60:00 GMT',
    '\u0000',
  ])('takes %j as nothing said', (text) => {
    expect(wait(text)).toBeUndefined()
  })
})

describe('httpDate', () => {
  it('reads the three forms of one time as the same', () => {
    const at = Date.UTC(1994, 10, 6, 8, 49, 37)
    expect(httpDate('Sun, 06 Nov 1994 08:49:37 GMT', now)).toBe(at)
    expect(httpDate('Sunday, 06-Nov-94 08:49:37 GMT', now)).toBe(at)
    expect(httpDate('Sun Nov  6 08:49:37 1994', now)).toBe(at)
  })

  it('takes two digits of a year as at most fifty years ahead', () => {
    expect(httpDate('Monday, 01-Jan-76 00:00:00 GMT', now)).toBe(Date.UTC(2076, 0, 1))
    expect(httpDate('Monday, 01-Jan-77 00:00:00 GMT', now)).toBe(Date.UTC(1977, 0, 1))
  })

  it('knows leap days and leap seconds', () => {
    expect(httpDate('Thu, 29 Feb 2024 00:00:00 GMT', now)).toBe(Date.UTC(2024, 1, 29))
    expect(httpDate('Sat, 29 Feb 2025 00:00:00 GMT', now)).toBeUndefined()
    expect(httpDate('Sat, 31 Dec 2016 23:59:60 GMT', now)).toBe(Date.UTC(2017, 0, 1))
  })
})
