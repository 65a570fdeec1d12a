import { describe, expect, it } from 'vitest'
import { compareEnds, referenceOf } from '../../src/drill/compare-ends.ts'
import type { End } from '../../src/drill/oracle/ends.ts'

const end = (orders: string[], rows: Record<string, string | null>[] = []): End => ({
  orders,
  tables: rows.map((columns) => ({ table: 'app.credits', columns })),
})

describe('the ends of two cases', () => {
  it('are the same whatever order their rows come in', () => {
    const one = end(['order 1 is paid'], [{ account: 'a' }, { account: 'b' }])
    const other = end(['order 1 is paid'], [{ account: 'b' }, { account: 'a' }])
    expect(compareEnds('kill', referenceOf(one, one), other)).toEqual([])
  })

  it('do not differ in what differs between two runs without a fault', () => {
    const first = end([], [{ account: 'a', ticket: '7' }])
    const second = end([], [{ account: 'a', ticket: '1007' }])
    const reference = referenceOf(first, second)
    expect([...reference.volatile]).toEqual(['app.credits.ticket'])
    expect(compareEnds('kill', reference, end([], [{ account: 'a', ticket: '12' }]))).toEqual([])
    expect(compareEnds('kill', reference, end([], [{ account: 'b', ticket: '7' }]))).toHaveLength(1)
  })

  it('differ in a row that is there once more, which has a name for each way to come to it', () => {
    const one = end(['effect 1 license'], [{ account: 'a' }])
    const twice = end(['effect 1 license'], [{ account: 'a' }, { account: 'a' }])
    const reference = referenceOf(one, one)
    const named = (kind: Parameters<typeof compareEnds>[0]): string | undefined =>
      compareEnds(kind, reference, twice)[0]?.fault
    expect(named('kill')).toBe('apply_outside_transaction')
    expect(named('twin')).toBe('added_outside_effect')
    expect(named('simultaneous')).toBe('not_idempotent')
    expect(named('permutation')).toBe('order_matters')
    expect(compareEnds('kill', reference, twice)[0]?.detail).toBe(
      'too much: app.credits: account=a',
    )
  })

  it('differ in an order that ended otherwise', () => {
    const reference = referenceOf(end(['order 1 is paid']), end(['order 1 is paid']))
    expect(compareEnds('commit', reference, end(['order 1 is pending']))).toEqual([
      {
        fault: 'ended_differently',
        promise: 'P3',
        detail: 'missing: order 1 is paid; too much: order 1 is pending',
      },
    ])
  })

  it('take null for another value than an empty text', () => {
    const reference = referenceOf(end([], [{ note: null }]), end([], [{ note: null }]))
    expect(compareEnds('kill', reference, end([], [{ note: '' }]))).toHaveLength(1)
  })
})
