import { describe, expect, it } from 'vitest'
import { checkedOutcome } from '../../src/outbox/checked-outcome.ts'

describe('checkedOutcome', () => {
  it('keeps what an outcome says', () => {
    const answer = new Uint8Array([1])
    const sent = { kind: 'sent', receipt: { id: 'a' }, status: 200, answer }
    expect(checkedOutcome('call', sent)).toEqual(sent)
    const retry = { kind: 'retry', error: 'busy', retryAfterMs: 5, status: 429 }
    expect(checkedOutcome('call', retry)).toEqual(retry)
    const refused = { kind: 'refused', error: 'no', settlesEarlier: true }
    expect(checkedOutcome('call', refused)).toEqual(refused)
    expect(checkedOutcome('lookup', { kind: 'absent' })).toEqual({ kind: 'absent' })
    const present = { kind: 'present', receipt: { id: 1 } }
    expect(checkedOutcome('lookup', present)).toEqual(present)
  })

  it.each([[undefined], [null], ['sent'], [{}], [{ kind: 'done' }], [{ kind: 'absent' }]])(
    'takes %j of a call for one of which nobody knows',
    (given) => {
      expect(checkedOutcome('call', given)).toMatchObject({ kind: 'uncertain' })
    },
  )

  it('takes what a lookup cannot say for no answer', () => {
    expect(checkedOutcome('lookup', { kind: 'sent', receipt: {} })).toMatchObject({
      kind: 'no_answer',
    })
  })

  it('drops what cannot be stored', () => {
    const cyclic: Record<string, unknown> = {}
    cyclic['self'] = cyclic
    expect(
      checkedOutcome('call', { kind: 'sent', receipt: cyclic, status: 2 ** 40, answer: 'text' }),
    ).toEqual({ kind: 'sent', receipt: { unreadable: true } })
    expect(checkedOutcome('call', { kind: 'sent' })).toEqual({ kind: 'sent', receipt: {} })
    expect(
      checkedOutcome('call', { kind: 'sent', receipt: { long: 'x'.repeat(20_000) } }),
    ).toMatchObject({ receipt: { too_long: 20_011 } })
    expect(checkedOutcome('call', { kind: 'refused', error: 'x' })).toMatchObject({
      settlesEarlier: false,
    })
  })
})
