import { describe, expect, it } from 'vitest'
import { custom, stripe, type HookledgerOptions } from 'hookledger'
import { resolveOptions, type ResolvedConfig } from '../../src/compose/options.ts'
import { defaultReconcileSettings } from '../../src/reconciliation/settings.ts'

function resolve(more: Partial<HookledgerOptions>): ResolvedConfig {
  return resolveOptions({
    sources: { stripe: stripe({ signingSecrets: ['whsec_0123456789abcdef'] }) },
    destinations: {
      pager: custom({ contract: { idempotency: 'key' }, call: async () => ({ id: '1' }) }),
    },
    ...more,
  })
}

describe('the options of reconciliation', () => {
  it('have defaults, of which some can be changed', () => {
    expect(resolve({}).reconcile).toEqual(defaultReconcileSettings)
    expect(resolve({ reconcile: { everyMs: 1000 } }).reconcile).toEqual({
      ...defaultReconcileSettings,
      everyMs: 1000,
    })
  })

  it('switch the schedule off, and leave a pass by hand its settings', () => {
    const config = resolve({ reconcile: false })
    expect(config.reconcile).toBeNull()
    expect(config.reconcileByHand).toEqual(defaultReconcileSettings)
  })

  it.each<[string, Partial<HookledgerOptions>]>([
    ['did you mean "everyMs"', { reconcile: { everyMS: 1 } as never }],
    ['reconcile.everyMs must be a positive integer', { reconcile: { everyMs: 0 } }],
    ['reconcile.lagMs must be a whole number, 0 or more', { reconcile: { lagMs: -1 } }],
    ['reconcile.sliceMs must be a positive integer', { reconcile: { sliceMs: 1.5 } }],
    ['reconcile.pageSize must be at most 100', { reconcile: { pageSize: 101 } }],
    [`reconcile.events must be 'all' or 'handled'`, { reconcile: { events: 'some' as never } }],
    ['did you mean "refunded_there"', { autoRepair: ['refunded_their'] }],
    ['needs a person', { autoRepair: ['paid_twice'] }],
    ['did you mean "pager"', { findings: { escalate: { to: 'pagr' } } }],
    [
      'each more than the one before',
      { findings: { escalate: { to: 'pager', afterHours: [24, 0] } } },
    ],
    ['each more than the one before', { findings: { escalate: { to: 'pager', afterHours: [] } } }],
  ])('stop the start with one line: %s', (says, options) => {
    expect(() => resolve(options)).toThrow(says)
  })

  it('tell an overdue finding at its due date and a day later', () => {
    expect(resolve({ findings: { escalate: { to: 'pager' } } }).escalation).toEqual({
      to: 'pager',
      afterHours: [0, 24],
    })
  })
})
