import { describe, expect, it } from 'vitest'
import { resolveOptions } from '../../src/compose/options.ts'
import { repairableByRule } from '../../src/reconciliation/repair/choices.ts'
import { findingKinds } from '../../src/workflow/finding-kinds.ts'

describe('autoRepair', () => {
  it('takes the kinds whose repair records what the workflow itself decides', () => {
    expect(resolveOptions({ sources: {}, autoRepair: repairableByRule }).autoRepair).toEqual(
      repairableByRule,
    )
  })

  it.each(findingKinds.filter((kind) => !repairableByRule.includes(kind)))(
    'stops the start for %s, which needs a person',
    (kind) => {
      expect(() => resolveOptions({ sources: {}, autoRepair: [kind] })).toThrow(
        `autoRepair: a finding of kind "${kind}" needs a person`,
      )
    },
  )

  it('names the kind that was meant', () => {
    expect(() => resolveOptions({ sources: {}, autoRepair: ['refund_there'] })).toThrow(
      'did you mean "refunded_there"?',
    )
  })
})
