import { describe, expect, it } from 'vitest'
import {
  judgeFacts,
  type LedgerView,
  type RecordedPayment,
} from '../../src/reconciliation/judge-facts.ts'
import type { ConfiguredSourceLike, PreviewOutcome } from '../../src/reconciliation/ports.ts'
import type { OrderLedger } from '../../src/workflow/order.ts'
import { emptyOutcome, type Outcome, type OutcomeKind } from '../../src/workflow/outcome.ts'
import type {
  DisputeFact,
  Fact,
  PaymentFact,
  ProviderRecord,
  RefundFact,
} from '../../src/workflow/records.ts'

const record: ProviderRecord = {
  kind: 'payment',
  id: 'pay_1',
  createdAt: new Date(0),
  account: 'acct_1',
  object: {},
}
const paid: PaymentFact = {
  fact: 'payment',
  id: 'pay_1',
  standing: 'paid',
  amount: 4900n,
  currency: 'USD',
  refunded: 0n,
}
const refund: RefundFact = {
  fact: 'refund',
  id: 're_1',
  payment: 'pay_1',
  standing: 'succeeded',
  amount: 4900n,
  currency: 'USD',
}
const dispute: DisputeFact = { fact: 'dispute', id: 'dp_1', payment: 'pay_1', standing: 'open' }
const row: RecordedPayment = {
  id: 'pay_1',
  orderId: '1',
  amount: 4900n,
  currency: 'USD',
  applied: true,
}

function preview(kind: OutcomeKind | null, over: Partial<PreviewOutcome> = {}): PreviewOutcome {
  const made = { eventId: 'e', eventType: 't', occurredAt: null, apiVersion: null, body: {} }
  const outcome =
    kind === null ? null : ({ ...emptyOutcome, kind, reason: 'because' } as unknown as Outcome)
  const where = { orderId: '1', orderExists: true, look: null, needsFacts: false, eventKey: null }
  return {
    made,
    outcome,
    failure: null,
    ...where,
    known: false,
    isPending: false,
    isHeldUp: false,
    ...over,
  }
}

const order = (over: Partial<OrderLedger> = {}): OrderLedger =>
  ({ id: '1', workflow: 'probe', state: 'paid', effects: [], payments: [], ...over }) as OrderLedger

function view(over: Partial<LedgerView> = {}): LedgerView {
  return {
    at: {
      source: {} as ConfiguredSourceLike,
      account: 'acct_1',
      sourceId: 7,
      text: 'stripe:acct_1:test',
    },
    payments: new Map([[row.id, row]]),
    orders: new Map([['1', order()]]),
    entitles: ({ state }) => state === 'paid',
    canEntitle: () => true,
    renamed: null,
    ...over,
  }
}

const nothing: LedgerView['payments'] = new Map()

/** Kinds with what they are about. */
function found(fact: Fact, previews: readonly PreviewOutcome[], at: LedgerView): string[] {
  const { discrepancies } = judgeFacts(record, [fact], previews, at)
  return discrepancies.map(({ draft, orderId }) => `${draft.kind} ${draft.about} of ${orderId}`)
}

describe('judgeFacts of a payment', () => {
  it('agrees about money that both sides have, and confirms it under all its names', () => {
    const named = { ...paid, aliases: ['ch_1'] }
    const judged = judgeFacts(record, [named], [preview('absorbed')], view())
    expect(judged.discrepancies).toEqual([])
    expect(judged.confirmed).toEqual(['pay_1', 'ch_1'])
  })

  it('finds money by any of its names', () => {
    const other = { ...paid, id: 'pi_1', aliases: ['pay_1'] }
    expect(found(other, [preview('absorbed')], view())).toEqual([])
  })

  it('says paid_there where its event would still tell something, whichever way', () => {
    for (const each of [
      preview('fulfilled'),
      preview('moved'),
      preview('contradicted'),
      preview(null, { failure: new Error('x') }),
    ])
      expect(found(paid, [each], view({ payments: nothing }))).toEqual([
        'paid_there payment:7:pay_1 of 1',
      ])
  })

  it('leaves what is known as a contradiction, or failed here before, to its own finding', () => {
    const known = [
      preview('contradicted', { known: true }),
      preview(null, { failure: new Error('x'), known: true }),
    ]
    for (const each of known) expect(found(paid, [each], view({ payments: nothing }))).toEqual([])
  })

  it('takes the word of a workflow that ignores it', () => {
    const ignored = preview('ignored', { orderId: null, orderExists: false })
    expect(found(paid, [ignored], view({ payments: nothing }))).toEqual([])
    expect(found(paid, [], view({ payments: nothing }))).toEqual([])
  })

  it('says payment_without_order where everything waits for an order that is not here', () => {
    const waits = preview('deferred', { orderId: null, orderExists: false })
    const ignored = preview('ignored', { orderId: null, orderExists: false })
    expect(found(paid, [ignored, waits], view({ payments: nothing }))).toEqual([
      'payment_without_order payment:7:pay_1 of null',
    ])
    const judgedBy = { kind: 'invoice', id: 'in_1', account: 'acct_1' }
    expect(found({ ...paid, judgedBy }, [waits], view({ payments: nothing }))).toEqual([])
  })

  it("says nothing of what is somebody else's as a rule: its handlers wait only for a while", () => {
    const waiting = (atDeadline: 'ignore' | 'finding', forMs: number | null) => {
      const plain = preview('deferred', { orderId: null, orderExists: false })
      const wait = { names: [], orderId: null, description: '', forMs, atDeadline }
      return { ...plain, outcome: { ...plain.outcome, wait } as unknown as Outcome }
    }
    const without = view({ payments: nothing })
    expect(found(paid, [waiting('ignore', 60_000)], without)).toEqual([])
    for (const each of [waiting('ignore', null), waiting('finding', null)])
      expect(found(paid, [each], without)).toHaveLength(1)
    expect(found(paid, [waiting('ignore', 60_000), waiting('finding', null)], without)).toEqual([
      'payment_without_order payment:7:pay_1 of null',
    ])
  })

  it('says nothing of money that was given back, or that is none', () => {
    const waits = preview('deferred', { orderId: null, orderExists: false })
    const at = view({ payments: nothing })
    expect(found({ ...paid, refunded: 4900n }, [waits], at)).toEqual([])
    expect(found({ ...paid, amount: 0n }, [waits], at)).toEqual([])
    expect(found({ ...paid, standing: 'unpaid' }, [waits], at)).toEqual([])
  })

  it('leaves an event that waits for its order, which is here, to its own deadline', () => {
    expect(found(paid, [preview('deferred')], view({ payments: nothing }))).toEqual([])
  })

  it('says paid_there where the workflow passed over money of an order that has nothing', () => {
    const bare = view({ payments: nothing, orders: new Map([['1', order({ state: 'pending' })]]) })
    expect(found(paid, [preview('skipped')], bare)).toEqual(['paid_there payment:7:pay_1 of 1'])
  })

  it('takes its word where the order entitles, was paid otherwise, or has effects', () => {
    const rich: readonly OrderLedger[] = [
      order(),
      order({ state: 'pending', payments: [{ ...row, sourceId: 7 }] }),
      order({ state: 'pending', effects: [{ type: 'credit' } as never] }),
    ]
    for (const each of rich) {
      const at = view({ payments: nothing, orders: new Map([['1', each]]) })
      expect(found(paid, [preview('skipped')], at)).toEqual([])
    }
    const bare = new Map([['1', order({ state: 'open' })]])
    const never = view({ payments: nothing, orders: bare, canEntitle: () => false })
    expect(found(paid, [preview('skipped')], never)).toEqual([])
  })

  it('says paid_here of money that counts here and was not taken there', () => {
    for (const standing of ['unpaid', 'failed'] as const)
      expect(found({ ...paid, standing }, [], view())).toEqual(['paid_here payment:7:pay_1 of 1'])
    const kept = view({ payments: new Map([[row.id, { ...row, applied: false }]]) })
    expect(found({ ...paid, standing: 'unpaid' }, [], kept)).toEqual([])
    const free = view({ payments: new Map([[row.id, { ...row, amount: 0n }]]) })
    expect(found({ ...paid, standing: 'unpaid' }, [], free)).toEqual([])
  })

  it('says amount_differs only where the workflow would record another amount than the row has', () => {
    const changed = { ...paid, amount: 5000n }
    const asked = judgeFacts(record, [changed], [preview('absorbed')], view())
    expect(asked.differing).toEqual(['pay_1'])
    expect(asked.discrepancies).toEqual([])
    const same = view({ renamed: new Map([['pay_1', { amount: 4900n, currency: 'USD' }]]) })
    expect(found(changed, [preview('absorbed')], same)).toEqual([])
    const other = view({ renamed: new Map([['pay_1', { amount: 5000n, currency: 'USD' }]]) })
    expect(found(changed, [preview('absorbed')], other)).toEqual([
      'amount_differs payment:7:pay_1 of 1',
    ])
    // without any event there is nobody but the record to ask
    expect(found(changed, [], view())).toEqual(['amount_differs payment:7:pay_1 of 1'])
  })
})

describe('judgeFacts of a refund', () => {
  it('agrees where it is absorbed, pending, or waits for a payment that is not here', () => {
    expect(found(refund, [preview('absorbed'), preview('skipped')], view())).toEqual([])
    expect(found({ ...refund, standing: 'pending' }, [preview('skipped')], view())).toEqual([])
    const waits = preview('deferred', { orderId: null, orderExists: false })
    expect(found(refund, [waits], view({ payments: nothing }))).toEqual([])
  })

  it('says refunded_there where its event would still tell something', () => {
    expect(found(refund, [preview('fulfilled')], view())).toEqual([
      'refunded_there refund:7:re_1 of 1',
    ])
  })

  it('says over_refunded where it failed there and stands here', () => {
    expect(found({ ...refund, standing: 'failed' }, [preview('reversed')], view())).toEqual([
      'over_refunded refund:7:re_1 of 1',
    ])
  })

  it('says refunded_there where all was given back and the order entitles as if nothing was', () => {
    expect(found(refund, [preview('skipped'), preview('ignored')], view())).toEqual([
      'refunded_there refund:7:re_1 of 1',
    ])
    expect(found({ ...refund, amount: 100n }, [preview('skipped')], view())).toEqual([])
    const over = view({ orders: new Map([['1', order({ state: 'refunded' })]]) })
    expect(found(refund, [preview('skipped')], over)).toEqual([])
    const known = order({ effects: [{ type: 'refund', reference: 're_1' } as never] })
    expect(found(refund, [preview('skipped')], view({ orders: new Map([['1', known]]) }))).toEqual(
      [],
    )
    expect(found(refund, [preview('skipped')], view({ payments: nothing }))).toEqual([])
  })
})

describe('judgeFacts of a dispute', () => {
  it('agrees where it is absorbed, or was won', () => {
    expect(found(dispute, [preview('absorbed')], view())).toEqual([])
    expect(found({ ...dispute, standing: 'won' }, [preview('skipped')], view())).toEqual([])
  })

  it('says dispute_unseen where it would tell something, or the order entitles as if there were none', () => {
    expect(found(dispute, [preview('moved')], view())).toEqual([
      'dispute_unseen dispute:7:dp_1 of 1',
    ])
    for (const standing of ['open', 'lost'] as const)
      expect(found({ ...dispute, standing }, [preview('skipped')], view())).toEqual([
        'dispute_unseen dispute:7:dp_1 of 1',
      ])
    const over = view({ orders: new Map([['1', order({ state: 'disputed' })]]) })
    expect(found(dispute, [preview('skipped')], over)).toEqual([])
  })
})
