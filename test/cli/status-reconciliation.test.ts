import { describe, expect, it } from 'vitest'
import { reconciliationAdvice, reconciliationText } from '../../src/cli/status-reconciliation.ts'
import type {
  CheckpointView,
  ReconciliationStatus,
  RunView,
} from '../../src/report/reconciliation.ts'

const now = Date.parse('2026-11-30T12:00:00Z')
const ago = (ms: number): string => new Date(now - ms).toISOString()

function checkpoint(kind: string, ageMs: number, inWork = false): CheckpointView {
  return {
    source: 'stripe:acct_1:live',
    kind,
    through: ago(ageMs),
    age_ms: ageMs,
    moved_at: ago(ageMs),
    in_work: inWork,
    deep_at: null,
  }
}

function run(more: Partial<RunView>): RunView {
  return {
    run_id: 'r1',
    source: 'stripe',
    how: 'scheduled',
    actor: 'reconciler',
    state: 'complete',
    coverage: {},
    calls: 42,
    injected: 7,
    opened: 2,
    closed: 1,
    repaired: 0,
    error: null,
    started_at: ago(20_000),
    seen_at: ago(10_000),
    finished_at: ago(10_000),
    ...more,
  }
}

function report(more: Partial<ReconciliationStatus>): ReconciliationStatus {
  const repairs = { applied: 0, unverified: 0, oldest_unverified_age_ms: null }
  return { checkpoints: [], runs: [], repairs, ...more }
}

describe('reconciliation in the status', () => {
  it('says nothing where there is none', () => {
    expect(reconciliationText(report({}))).toEqual([])
    expect(reconciliationAdvice(report({}), now)).toEqual([])
  })

  it('gives each source the age of its oldest checkpoint, and what its last pass did', () => {
    const checkpoints = [checkpoint('event', 125_000), checkpoint('refund', 400_000, true)]
    const repairs = { applied: 3, unverified: 1, oldest_unverified_age_ms: 5000 }
    const text = reconciliationText(report({ checkpoints, runs: [run({})], repairs })).join('\n')
    expect(text).toMatch(/stripe:acct_1:live +up to 6 min 40 s ago +2 kinds +1 in work/)
    expect(text).toMatch(
      /the last pass over stripe \(scheduled\) complete .*: 42 calls, 7 injected/,
    )
    expect(text).toContain('2 findings opened, 1 closed')
    expect(text).toContain('3 repairs, 1 not verified yet')
  })

  it('says what to do about a pass that failed, one that stopped, and checkpoints that stand still', () => {
    const error = 'the key was refused: give the source one that may read events'
    const failed = reconciliationAdvice(report({ runs: [run({ state: 'failed', error })] }), now)
    expect(failed).toEqual([`the last pass over stripe is failed: ${error}`])
    const left = run({ state: 'running', finished_at: null, seen_at: ago(900_000) })
    expect(reconciliationAdvice(report({ runs: [left] }), now)).toEqual([
      'a pass over stripe stopped in the middle 15 min ago: the next one goes on there (hookledger reconcile)',
    ])
    const checkpoints = [checkpoint('event', 7_200_000), checkpoint('refund', 60_000)]
    expect(reconciliationAdvice(report({ checkpoints }), now)).toEqual([
      'nothing newer than 2 h was compared with the provider: does a reconciler run? (hookledger start --roles reconcile)',
    ])
    const repairs = { applied: 3, unverified: 2, oldest_unverified_age_ms: 7_200_000 }
    expect(reconciliationAdvice(report({ repairs }), now)).toEqual([
      '2 repairs not verified: hookledger reconcile asks the provider again',
    ])
  })

  it('has no advice about an older pass once a newer one is complete', () => {
    const runs = [run({}), run({ run_id: 'r0', state: 'failed', error: 'away' })]
    expect(reconciliationAdvice(report({ runs }), now)).toEqual([])
  })
})
