import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { schemaPrefix } from '../../src/postgres/schema-name.ts'

describe('schemaPrefix', () => {
  it('quotes a plain name, reserved words too', () => {
    expect(schemaPrefix('hookledger')).toBe('"hookledger".')
    expect(schemaPrefix('_1')).toBe('"_1".')
    expect(schemaPrefix('order')).toBe('"order".')
    expect(schemaPrefix('s'.repeat(63))).toBe(`"${'s'.repeat(63)}".`)
  })

  it.each([
    '',
    'Hookledger',
    '1a',
    'a-b',
    'a.b',
    'a"b',
    `a'b`,
    'a b',
    'a;drop',
    'ä',
    'a\u0000',
    'a\n',
    '\u0430',
    'pg_catalog',
    'pg_',
    's'.repeat(64),
  ])('refuses %j', (name) => {
    expect(() => schemaPrefix(name)).toThrow(expect.objectContaining({ code: 'HKL_SCHEMA_NAME' }))
  })

  it('lets nothing through that could end the quotes, whatever it is', () => {
    const hostile = fc.string({
      unit: fc.constantFrom('a', '_', '0', '"', "'", '.', ';', ' ', '\u0000', '\\', 'ß', '\n', '-'),
      maxLength: 70,
    })
    fc.assert(
      fc.property(hostile, (name) => {
        try {
          expect(schemaPrefix(name)).toMatch(/^"[a-z_][a-z0-9_]{0,62}"\.$/)
        } catch (error) {
          expect(error).toMatchObject({ code: 'HKL_SCHEMA_NAME' })
        }
      }),
    )
  })
})
