import { describe, expect, it } from 'vitest'
import {
  checkedChoice,
  offersOf,
  type OfferContext,
} from '../../../src/reconciliation/repair/choices.ts'

const finding = {
  id: '00000000-0000-5000-8000-000000000000',
  kind: 'paid_twice',
  class: 'contradiction',
  state: 'open',
  orderId: '1001',
  evidence: {},
  reference: null,
  source: null,
  closedBecause: null,
}
const about: OfferContext = { finding, workflow: null, payments: ['pi_1'], canRefund: false }

function choose(typed: string, of: OfferContext): () => unknown {
  return () => checkedChoice(typed, offersOf(of), of)
}

describe('a choice that cannot be made', () => {
  it('says that no destination gives payments back', () => {
    expect(choose('refund', about)).toThrow('no destination gives payments of its source back')
    expect(choose('refund:pi_1', about)).toThrow('no destination gives payments')
  })

  it('says that no payment is known', () => {
    expect(choose('refund', { ...about, canRefund: true, payments: [] })).toThrow(
      'no payment is known',
    )
  })

  it('says that it does not end a finding of this kind', () => {
    expect(choose('accept', about)).toThrow('does not end a finding of kind paid_twice')
  })

  it('names the nearest where it is misspelled', () => {
    expect(choose('keeep', about)).toThrow('did you mean "keep"?')
  })
})
