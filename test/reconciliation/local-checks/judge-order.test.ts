import { describe, expect, it } from 'vitest'
import { judgeOrder } from '../../../src/reconciliation/local-checks/judge-order.ts'
import type { OrderDecision } from '../../../src/reconciliation/local-checks/order-decisions.ts'
import type { LedgerEntitlement, OrderLedger } from '../../../src/workflow/order.ts'
import { probeWorkflow } from '../../support/probe.ts'

const workflow = probeWorkflow()
const pair = 'user:1 pro'

function order(over: Partial<OrderLedger> = {}): OrderLedger {
  return {
    id: '1',
    workflow: 'probe',
    sourceId: 1,
    provider: 'stripe',
    providerAccount: 'acct_1',
    state: 'paid',
    subject: 'user:1',
    expected: null,
    version: 1n,
    stored: true,
    payments: [],
    effects: [],
    entitlements: [entitlement()],
    operations: [],
    ...over,
  }
}

function entitlement(over: Partial<LedgerEntitlement> = {}): LedgerEntitlement {
  return {
    subject: 'user:1',
    entitlement: 'pro',
    quantity: 1,
    validUntil: null,
    active: true,
    stated: true,
    grantedBy: 1n,
    ...over,
  }
}

let ids = 0n

function decided(
  from: string | null,
  to: string | null,
  over: Partial<OrderDecision> = {},
): OrderDecision {
  return {
    decisionId: (ids += 1n),
    kind: 'fulfilled',
    from,
    to,
    entitles: to === 'paid',
    granted: [],
    revoked: [],
    stated: {},
    opening: null,
    ...over,
  }
}

const paid = (): OrderDecision => decided('pending', 'paid', { granted: [pair] })
const fine = { decided: null, tampered: [], entitled: [] }

describe('judgeOrder', () => {
  it('has nothing against an order that is what was decided', () => {
    expect(judgeOrder(order(), [paid()], workflow)).toEqual(fine)
  })

  it('names the state that decisions lead to, and leaves what follows from it alone', () => {
    expect(judgeOrder(order({ state: 'refunded' }), [paid()], workflow)).toEqual({
      decided: 'paid',
      tampered: ['state is refunded, decided was paid'],
      entitled: [],
    })
  })

  it('goes by the moves and not by their ids, which are given out before locks are taken', () => {
    const back = decided('refunded', 'paid', { granted: [pair] })
    const away = decided('paid', 'refunded', { revoked: [pair] })
    expect(judgeOrder(order(), [back, paid(), away], workflow)).toEqual(fine)
  })

  it('takes no opening for a move, whenever the app came', () => {
    const opened = (to: string): OrderDecision =>
      decided(null, to, { kind: 'opened', opening: { subject: 'user:1', expected: null } })
    expect(judgeOrder(order(), [paid(), opened('paid')], workflow)).toEqual(fine)
    const changed = order({ state: 'refunded' })
    expect(judgeOrder(changed, [paid(), opened('paid')], workflow).decided).toBe('paid')
    const waiting = order({ state: 'pending', entitlements: [] })
    expect(judgeOrder(waiting, [opened('pending')], workflow)).toEqual(fine)
    expect(judgeOrder(order(), [opened('pending')], workflow).decided).toBe('pending')
  })

  it('begins where an order was adopted', () => {
    const adopted = decided(null, 'paid', { kind: 'adopted', granted: [pair] })
    expect(judgeOrder(order(), [adopted], workflow)).toEqual(fine)
    expect(judgeOrder(order({ state: 'pending' }), [adopted], workflow).decided).toBe('paid')
  })

  it('finds an order that no decision says anything of', () => {
    expect(judgeOrder(order(), [], workflow).tampered).toEqual(['no decision says why it is there'])
  })

  it('finds an entitlement that is active while the state does not entitle', () => {
    const refunded = [paid(), decided('paid', 'refunded', { revoked: [pair] })]
    expect(judgeOrder(order({ state: 'refunded' }), refunded, workflow)).toEqual({
      ...fine,
      entitled: [pair],
    })
  })

  it('finds one that was withheld, with its row stated or not', () => {
    for (const stated of [true, false]) {
      const withheld = order({ entitlements: [entitlement({ active: false, stated })] })
      expect(judgeOrder(withheld, [paid()], workflow).tampered).toEqual([`${pair} is not active`])
    }
  })

  it('finds one that is gone, and one that nothing granted', () => {
    const other = order({ entitlements: [entitlement({ subject: 'user:2' })] })
    expect(judgeOrder(other, [paid()], workflow).tampered).toEqual([
      'user:2 pro is active, no decision grants it',
      `${pair} is gone`,
    ])
  })

  it('lets a set that was stated anew leave its row behind', () => {
    const changed = [paid(), decided('paid', 'paid', { granted: ['user:2 pro'], revoked: [pair] })]
    const rows = [entitlement({ active: false, stated: false }), entitlement({ subject: 'user:2' })]
    expect(judgeOrder(order({ entitlements: rows }), changed, workflow)).toEqual(fine)
  })

  it('finds a quantity and an end that no decision stated', () => {
    const until = new Date('2027-01-01T00:00:00Z')
    const more = order({ entitlements: [entitlement({ quantity: 5, validUntil: until })] })
    expect(judgeOrder(more, [paid()], workflow).tampered).toEqual([
      `${pair} is 5 until 2027-01-01T00:00:00.000Z, as no decision stated`,
    ])
    const stated = { [pair]: { quantity: 5, valid_until: until.toISOString() } }
    const decisions = [decided('pending', 'paid', { granted: [pair], stated })]
    expect(judgeOrder(more, decisions, workflow)).toEqual(fine)
  })

  it('claims nothing of grants where an adoption had its say', () => {
    const adopted = decided(null, 'paid', { kind: 'adopted', granted: [pair] })
    const more = order({ entitlements: [entitlement({ quantity: 5 })] })
    expect(judgeOrder(more, [adopted], workflow)).toEqual(fine)
    const gone = order({ entitlements: [] })
    expect(judgeOrder(gone, [adopted], workflow)).toEqual(fine)
  })

  it('finds another subject or amount than the app opened the order with', () => {
    const opened = decided(null, 'pending', {
      kind: 'opened',
      opening: { subject: 'user:1', expected: '49.00 USD' },
    })
    const expected = { amount: 4900n, currency: 'USD' }
    expect(judgeOrder(order({ expected }), [opened, paid()], workflow)).toEqual(fine)
    const changed = order({ subject: 'user:9', expected: { amount: 100n, currency: 'USD' } })
    expect(judgeOrder(changed, [opened, paid()], workflow).tampered).toEqual([
      'subject is user:9, opened for user:1',
      '1.00 USD is expected, opened with 49.00 USD',
    ])
  })

  it('reads states under the names that they have now', () => {
    const renaming = probeWorkflow(
      {},
      {
        states: { pending: {}, bought: { entitles: true, renamedFrom: 'paid' }, refunded: {} },
        transitions: { pending: ['bought'], bought: ['refunded'], refunded: ['bought'] },
        types: ['note'],
      },
    )
    expect(judgeOrder(order({ state: 'paid' }), [paid()], renaming)).toEqual(fine)
    expect(judgeOrder(order({ state: 'bought' }), [paid()], renaming)).toEqual(fine)
  })

  it('lets nothing be active in shadow', () => {
    const shadow = { ...workflow, shadowOf: workflow }
    const quiet = order({ entitlements: [entitlement({ active: false })] })
    expect(judgeOrder(quiet, [decided('pending', 'paid')], shadow)).toEqual(fine)
  })
})
