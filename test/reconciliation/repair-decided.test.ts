import { describe, expect, it } from 'vitest'
import fc from 'fast-check'
import {
  decidedGrants,
  decidedState,
  mayHaveFound,
  strayedFrom,
  type DecidedMove,
} from '../../src/reconciliation/repair/decided.ts'
import { planId, readChoice, type PlanContent } from '../../src/reconciliation/repair/plan.ts'

let ids = 0n

function move(
  from: string | null,
  to: string | null,
  more: Partial<DecidedMove> = {},
): DecidedMove {
  return { decisionId: ++ids, from, to, entitles: true, granted: [], revoked: [], ...more }
}

describe('decidedState', () => {
  it('is the end of the walk, however often a state was passed and in whichever order it is told', () => {
    const states = ['pending', 'paid', 'disputed', 'refunded']
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...states), { minLength: 1, maxLength: 12 }),
        fc.boolean(),
        fc.integer(),
        (walk, opened, seed) => {
          const moves: DecidedMove[] = opened ? [move(null, 'pending')] : []
          let at = 'pending'
          for (const to of walk) {
            moves.push(move(at, to))
            at = to
          }
          const shuffled = [...moves].sort(
            (a, b) =>
              Number((a.decisionId * 7919n + BigInt(seed)) % 13n) -
              Number((b.decisionId * 7919n + BigInt(seed)) % 13n),
          )
          expect(decidedState(shuffled, 'pending')).toBe(at)
        },
      ),
    )
  })

  it('is not told by decisions that do not lead anywhere, or to two ends', () => {
    expect(decidedState([], 'pending')).toBeNull()
    expect(decidedState([move(null, null)], 'pending')).toBeNull()
    expect(decidedState([move('paid', 'refunded')], 'pending')).toBeNull()
  })

  it('begins where the order was opened', () => {
    expect(decidedState([move(null, 'paid'), move('paid', 'refunded')], 'pending')).toBe('refunded')
  })
})

describe('strayedFrom', () => {
  it('is nothing for decisions that are one walk, in whichever order they are told', () => {
    const states = ['pending', 'paid', 'disputed', 'refunded']
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...states), { minLength: 1, maxLength: 12 }),
        fc.boolean(),
        (walk, reversed) => {
          const moves = walk.map((to, index) => move(walk[index - 1] ?? 'pending', to))
          expect(strayedFrom(reversed ? moves.reverse() : moves, 'pending')).toBeNull()
        },
      ),
    )
  })

  it('is the state that a decision went on from and none led to', () => {
    expect(strayedFrom([move('paid', 'paid')], 'pending')).toBe('paid')
    expect(strayedFrom([move('pending', 'paid'), move('lost', 'refunded')], 'pending')).toBe('lost')
    // what was contradicted or skipped went nowhere
    expect(strayedFrom([move('lost', null)], 'pending')).toBeNull()
  })
})

describe('mayHaveFound', () => {
  it('is told by a decision that entitled and did not grant the pair', () => {
    const granting = move('pending', 'paid', { granted: ['user:1 pro'] })
    const refund = move('paid', 'refunded', { revoked: ['user:1 pro'], entitles: false })
    expect(mayHaveFound([granting, refund], 'user:1 pro')).toBe(false)
    expect(mayHaveFound([granting, refund, move('refunded', 'paid')], 'user:1 pro')).toBe(true)
    expect(mayHaveFound([granting, move('paid', null)], 'user:1 pro')).toBe(false)
  })
})

describe('decidedGrants', () => {
  it('counts what was granted and revoked, and names the last decision that entitled', () => {
    const first = move('pending', 'paid', { granted: ['user:1 pro'] })
    const second = move('paid', 'refunded', { revoked: ['user:1 pro'], entitles: false })
    const third = move('refunded', 'paid', { granted: ['user:1 pro', 'user:2 pro'] })
    expect(decidedGrants([first, second]).get('user:1 pro')).toEqual({
      active: false,
      grantedBy: first.decisionId,
    })
    const all = decidedGrants([third, first, second])
    expect(all.get('user:1 pro')).toEqual({ active: true, grantedBy: third.decisionId })
    expect(all.get('user:2 pro')).toEqual({ active: true, grantedBy: third.decisionId })
    expect(all.get('user:3 pro')).toBeUndefined()
  })
})

describe('planId', () => {
  const content: PlanContent = {
    findingId: '00000000-0000-5000-8000-000000000001',
    kind: 'refunded_there',
    choice: 'provider',
    order: null,
    payments: [],
    voided: [],
    effects: [],
    entitle: null,
    granted: [],
    revoked: [],
    learned: [],
    operations: [],
    refund: null,
    records: [],
    earlier: 0,
  }
  const installation = '5a3c1a50-6d3b-4f5e-9d0a-0d4a5a1f0c01'

  it('is the same for the same content, and another for any other', () => {
    const id = planId(installation, content)
    expect(planId(installation, { ...content })).toBe(id)
    const others = [
      { earlier: 1 },
      { choice: 'keep' },
      { granted: ['user:1 pro'] },
      { refund: { payment: 'pi_1', account: 'a', amount: 1n, currency: 'USD' } },
    ].map((change) => planId(installation, { ...content, ...change }))
    expect(new Set([id, ...others]).size).toBe(5)
  })
})

describe('readChoice', () => {
  it('parts what is chosen from what it is about', () => {
    expect(readChoice('keep')).toEqual({ name: 'keep', about: null })
    expect(readChoice('refund:ch:1')).toEqual({ name: 'refund', about: 'ch:1' })
  })
})
