import { describe, expect, it } from 'vitest'
import { writeExact } from '../../console/src/exact-json.ts'
import { payloadText } from '../../console/src/payload-text.ts'

const base64 = (bytes: string | Uint8Array): string => Buffer.from(bytes).toString('base64')

describe('payloadText', () => {
  it('reads JSON with its big numbers exact and its text as it was', () => {
    const text = '{"amount": 9007199254740993, "note": "<b>é</b>"}\n'
    const shown = payloadText(base64(text))
    expect(shown).toMatchObject({ kind: 'json', text })
    if (shown.kind === 'json') expect(writeExact(shown.value)).toContain('9007199254740993')
  })

  it('shows other text as it is, with its byte order mark', () => {
    expect(payloadText(base64('\ufeffid=1&type=payment'))).toEqual({
      kind: 'text',
      text: '\ufeffid=1&type=payment',
    })
    expect(payloadText('')).toEqual({ kind: 'text', text: '' })
  })

  it('dumps bytes that are no text, and does not guess', () => {
    const shown = payloadText(base64(new Uint8Array([0xff, 0x00, 0x41, 0x80])))
    expect(shown.kind).toBe('bytes')
    expect(shown.text).toMatch(/^00000000 {2}ff 00 41 80 +\.\.A\.$/)
    expect(payloadText(base64(new Uint8Array(5000).fill(0xff))).text).toContain('… 904 more bytes')
  })
})
