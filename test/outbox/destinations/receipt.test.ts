import { describe, expect, it } from 'vitest'
import { keptReceipt, pickReceipt } from '../../../src/outbox/destinations/receipt.ts'
import { createRedactor } from '../../../src/outbox/destinations/redact.ts'

describe('keptReceipt', () => {
  it('keeps ids and figures, and leaves out what it would change', () => {
    expect(
      keptReceipt({ id: 'a', n: 1.5, yes: true, none: null, list: [1], inner: {}, f: () => 1 }),
    ).toEqual({ id: 'a', n: 1.5, yes: true, none: null })
    // eslint-disable-next-line no-loss-of-precision
    expect(keptReceipt({ id: 9007199254740993, nan: Number.NaN, big: 9007199254740993n })).toEqual({
      big: '9007199254740993',
    })
  })

  it('cuts long texts and many fields, and what PostgreSQL cannot store', () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`k${at}`, at]))
    expect(Object.keys(keptReceipt(many))).toHaveLength(20)
    expect(keptReceipt({ t: 'x'.repeat(999) })['t']).toHaveLength(255)
    expect(keptReceipt({ 'a\0': 'b\0c', d: '\ud800' })).toEqual({ a: 'bc', d: '\ufffd' })
    expect(keptReceipt({ t: `${'x'.repeat(254)}😀` })['t']).toBe(`${'x'.repeat(254)}\ufffd`)
  })

  it.each([undefined, null, 'text', 7, []])('takes %j as nothing', (value) => {
    expect(keptReceipt(value)).toEqual({})
    expect(pickReceipt(value, ['id', 'length'])).toEqual({})
  })
})

describe('createRedactor', () => {
  const redactor = createRedactor(['hunter2-hunter2', 'a/b c+secret'])
  const kept = (text: string): string =>
    new TextDecoder().decode(redactor.answer(new TextEncoder().encode(text)))

  it('replaces a secret in every form that an echo gives it', () => {
    for (const form of [
      'hunter2-hunter2',
      Buffer.from('hunter2-hunter2').toString('base64'),
      'a/b c+secret',
      encodeURIComponent('a/b c+secret'),
    ]) {
      expect(kept(`<${form}>`)).toBe('<[redacted]>')
      expect(redactor.text(`<${form}>`)).toBe('<[redacted]>')
    }
  })

  it('keeps no beginning of a secret that the end of an answer cut', () => {
    expect(kept('key: hunter2-hun')).toBe('key: ')
    expect(kept('key: hun')).toBe('key: hun')
  })

  it('keeps at most 4 KiB, and bytes that are no text as they are', () => {
    expect(redactor.answer(new Uint8Array(10_000).fill(255))).toHaveLength(4096)
    expect([...redactor.answer(Uint8Array.of(0, 128, 255))]).toEqual([0, 128, 255])
  })
})
