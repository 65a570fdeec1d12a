import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { composite, readTopLevel } from '../../src/providers/top-level.ts'

const wanted = new Set(['id', 'type', '__proto__', 'é', 'constructor'])

function read(text: string): ReadonlyMap<string, unknown> | undefined {
  return readTopLevel(Buffer.from(text), wanted)
}

/** What JSON.parse says of the same fields. */
function parsed(text: string): Map<string, unknown> | undefined {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const fields = new Map<string, unknown>()
  for (const [key, member] of Object.entries(value)) {
    if (!wanted.has(key)) continue
    fields.set(key, typeof member === 'object' && member !== null ? composite : member)
  }
  return fields
}

/** JSON text of a value with whitespace and escapes that JSON.stringify never writes. */
function spell(value: unknown, space: string, escaped: boolean): string {
  if (Array.isArray(value)) {
    return `[${space}${value.map((one) => spell(one, space, escaped)).join(`${space},${space}`)}${space}]`
  }
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(
      ([key, one]) => `${spell(key, space, escaped)}${space}:${space}${spell(one, space, escaped)}`,
    )
    return `{${space}${members.join(`${space},${space}`)}${space}}`
  }
  const text = JSON.stringify(value)
  if (typeof value !== 'string' || !escaped) return text
  const units = value
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
  return `"${units.join('')}"`
}

const key = fc.oneof(fc.constantFrom(...wanted), fc.string({ unit: 'binary', maxLength: 6 }))
const object = fc.dictionary(key, fc.jsonValue(), { maxKeys: 6, noNullPrototype: true })
const space = fc.constantFrom('', ' ', '\n  ', '\r\n\t')

describe('readTopLevel', () => {
  it('agrees with JSON.parse about every object, however it is spelled', () => {
    fc.assert(
      fc.property(object, space, fc.boolean(), (value, gap, escaped) => {
        const text = gap + spell(value, gap, escaped) + gap
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value)))
        expect(read(text)).toEqual(parsed(text))
      }),
      { numRuns: 1_000 },
    )
  })

  it('finds no name in anything that is not one closed object', () => {
    const fragment = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      '"',
      ':',
      ',',
      '\\',
      '"id"',
      '1',
      'null',
      ' ',
      '"x"',
    )
    let objects = 0
    fc.assert(
      fc.property(fc.array(fragment, { maxLength: 10 }), (fragments) => {
        const text = fragments.join('')
        const fields = parsed(text)
        if (fields !== undefined) objects++
        if (fields !== undefined) expect(read(text)).toEqual(fields)
        if (!/^\s*\{/.test(text) || !/\}\s*$/.test(text)) expect(read(text)).toBeUndefined()
      }),
      { numRuns: 20_000 },
    )
    expect(objects).toBeGreaterThan(0)
  })

  it.each([
    ['{"id":}'],
    ['{"id"}'],
    ['{"id":1,}'],
    ['{,"id":1}'],
    ['{"id":1 "type":2}'],
    ['{id:1}'],
    ['{"id":tru}'],
    ['{"id":01}'],
    ['{"id":+1}'],
    ['{"id":"a'],
    ['{"id":"a\\'],
    ['{"id":"a\\"}'],
    ['{"id\\":1}'],
    ['{"a":[1,2}'],
    ['{"a":"]"'],
    ['{}x'],
    ['\u00a0{}'],
  ])('refuses %s', (text) => {
    expect(read(text)).toBeUndefined()
  })

  it('is not misled by braces and quotes inside of strings', () => {
    const text = '{"a":{"b":"}\\"]{"},"c":["[\\\\"],"id":"evt_1"}'
    expect(read(text)).toEqual(new Map([['id', 'evt_1']]))
  })

  it('reads a view into a larger buffer and nothing around it', () => {
    const whole = Buffer.from('xx{"id":"evt_1"}yy')
    const view = new Uint8Array(whole.buffer, whole.byteOffset + 2, whole.length - 4)
    expect(readTopLevel(view, wanted)).toEqual(new Map([['id', 'evt_1']]))
  })

  it('keeps an own key __proto__ apart from the prototype', () => {
    expect(read('{"__proto__":"x"}')?.get('__proto__')).toBe('x')
    expect(read('{"__proto__":{"id":"evil"}}')?.has('id')).toBe(false)
  })
})
