import { describe, expect, it } from 'vitest'
import { diffLines } from '../../console/src/diff.ts'
import {
  amountText,
  bytesText,
  countOf,
  groupedText,
  shortCount,
} from '../../console/src/figures.ts'
import { agoText, durationText } from '../../console/src/moments.ts'
import { isPassing, Problem, problemOf, unreachable } from '../../console/src/problem.ts'
import { lineOf, visibleText } from '../../console/src/visible-text.ts'
import { sentence, toneOf } from '../../console/src/words.ts'

const plain = (text: string): string => text.replaceAll('\u202f', ' ')

describe('amountText', () => {
  it('shows minor units exactly, by the digits of the currency, at any size', () => {
    expect(amountText('4900', 'USD')).toBe('49.00')
    expect(plain(amountText('-123456789', 'EUR'))).toBe('−1 234 567.89')
    expect(amountText('5', 'EUR')).toBe('0.05')
    expect(plain(amountText('5000', 'JPY'))).toBe('5 000')
    expect(plain(amountText('1234567', 'KWD'))).toBe('1 234.567')
    expect(plain(amountText('900719925474099312345', 'USD'))).toBe('9 007 199 254 740 993 123.45')
    expect(amountText('many', 'USD')).toBe('many')
  })
})

describe('groupedText', () => {
  it('sets thousands apart and leaves other text alone', () => {
    expect(plain(groupedText(1234567))).toBe('1 234 567')
    expect(groupedText(999)).toBe('999')
    expect(groupedText('abc')).toBe('abc')
  })
})

describe('shortCount', () => {
  it('is exact while it fits and says its unit past that', () => {
    expect(plain(shortCount(9999))).toBe('9 999')
    expect(shortCount(12_345)).toBe('12.3k')
    expect(shortCount(1_000_000)).toBe('1M')
    expect(shortCount(250_000)).toBe('250k')
  })
})

describe('bytesText', () => {
  it('says the unit', () => {
    expect([bytesText(12), bytesText(2764), bytesText(1_000_000)]).toEqual([
      '12 B',
      '2.8 KB',
      '1 MB',
    ])
  })
})

describe('countOf', () => {
  it('knows one from many', () => {
    expect(countOf(1, 'event')).toBe('1 event')
    expect(countOf('0', 'event')).toBe('0 events')
    expect(countOf(2, 'delivery', 'deliveries')).toBe('2 deliveries')
  })
})

describe('durationText', () => {
  it('tells a duration in its two largest units', () => {
    const second = 1000
    expect([12, 45 * second, 200 * second, 60 * second].map(durationText)).toEqual([
      '12 ms',
      '45 s',
      '3 min 20 s',
      '1 min',
    ])
    expect(durationText(11_520 * second)).toBe('3 h 12 min')
    expect(durationText(90_000 * second)).toBe('1 d 1 h')
    expect(durationText(40 * 86_400 * second)).toBe('40 d')
  })
})

describe('agoText', () => {
  it('tells before from after, and calls five seconds now', () => {
    const now = 1_000_000_000
    expect(agoText(now - 4000, now)).toBe('now')
    expect(agoText(now - 65_000, now)).toBe('1 min ago')
    expect(agoText(now + 7_200_000, now)).toBe('in 2 h')
    expect(agoText(now - 47 * 3_600_000, now)).toBe('47 h ago')
    expect(agoText(now - 49 * 3_600_000, now)).toBe('2 d ago')
  })
})

describe('visibleText', () => {
  it('writes what would reorder, hide or control text as its escape, and leaves letters alone', () => {
    expect(visibleText('user\u202egnp.exe')).toBe('user\\u202egnp.exe')
    expect(visibleText('a\u200bb\u0000c\u001b[31m')).toBe('a\\u200bb\\u0000c\\u001b[31m')
    expect(visibleText('tab\tline\né 漢 🙂 <b>')).toBe('tab\tline\né 漢 🙂 <b>')
  })
})

describe('lineOf', () => {
  it('is one line, cut with an ellipsis', () => {
    expect(lineOf('a\n  b', 10)).toBe('a b')
    expect(lineOf('abcdefgh', 5)).toBe('abcd…')
  })
})

describe('diffLines', () => {
  it('keeps what stays and marks what goes and comes, in place', () => {
    expect(diffLines(['state: open', 'paid: no', 'end'], ['state: paid', 'end', 'more'])).toEqual([
      { mark: 'gone', text: 'state: open' },
      { mark: 'gone', text: 'paid: no' },
      { mark: 'new', text: 'state: paid' },
      { mark: 'same', text: 'end' },
      { mark: 'new', text: 'more' },
    ])
  })

  it('leads from the one to the other: the lines not gone are the new text, those not new the old', () => {
    const before = ['a', 'b', 'c', 'a', 'd']
    const after = ['b', 'a', 'a', 'e', 'd']
    const lines = diffLines(before, after)
    const without = (mark: string): string[] =>
      lines.filter((line) => line.mark !== mark).map(({ text }) => text)
    expect(without('new')).toEqual(before)
    expect(without('gone')).toEqual(after)
  })
})

describe('problemOf', () => {
  it('reads the answer of the API, and knows one that is not from it', () => {
    const own = problemOf(409, { error: { code: 'HKL_OUTBOX_CHANGED', message: 'Read it again.' } })
    expect([own.status, own.code, own.message]).toEqual([
      409,
      'HKL_OUTBOX_CHANGED',
      'Read it again.',
    ])
    expect(problemOf(502, undefined).code).toBe('HKL_CONSOLE_UNREACHABLE')
  })
})

describe('isPassing', () => {
  it('holds for what can succeed by itself, and not for what somebody has to change', () => {
    expect(isPassing(unreachable())).toBe(true)
    expect(isPassing(new Problem(503, 'HKL_DATABASE_UNREACHABLE', ''))).toBe(true)
    expect(isPassing(new Problem(409, 'HKL_OUTBOX_CHANGED', ''))).toBe(false)
    expect(isPassing(new Error('a fault of the page'))).toBe(false)
  })
})

describe('toneOf', () => {
  it('is calm for a state that only a workflow knows', () => {
    expect([toneOf('dead'), toneOf('processed'), toneOf('trialing')]).toEqual([
      'bad',
      'good',
      'calm',
    ])
  })
})

describe('sentence', () => {
  it('makes a heading of a name', () => {
    expect(sentence('waiting_approval')).toBe('Waiting approval')
  })
})
