import { describe, expect, it } from 'vitest'
import { license } from '../../examples/shop/license.ts'
import { saas } from '../../examples/saas/saas.ts'
import { nameOf, promisesOf, slugOf } from '../../src/drill/drill-case.ts'
import { planDrill } from '../../src/drill/plan.ts'
import type { PlayedHistory } from '../../src/drill/played-history.ts'
import { refundsOf } from '../../src/drill/pure/derived-histories.ts'
import { faultActions } from '../../src/testing/fault-plan.ts'
import type { Workflow } from '../../src/workflow/workflow.ts'

function played(workflow: Workflow, more: Partial<PlayedHistory> = {}): PlayedHistory[] {
  return (workflow.histories ?? []).map((history) => ({
    workflow,
    history,
    slug: slugOf(history.name),
    sends: true,
    looks: false,
    refunds: [],
    ...more,
  }))
}

const refunds = refundsOf([{ payment: 'pi_1', amount: 4900, currency: 'USD' }], false)
const all = [...played(license, { refunds }), ...played(saas, { looks: true })]
const names = (seed: number, histories = all): string[] =>
  planDrill(histories, seed).map(({ drillCase }) => nameOf(drillCase))

describe('the plan of a drill', () => {
  it('begins with a case for each promise', () => {
    const first = planDrill(all, 1).slice(0, 9)
    const promises = new Set(first.flatMap(({ drillCase }) => promisesOf(drillCase)))
    expect([...promises].sort()).toEqual(
      ['P1', 'P2', 'P3', 'P4', 'P5', 'P6', 'P7', 'P8', 'P9', 'P10'].sort(),
    )
  })

  it('has every step with every action, each once, and no case twice', () => {
    const cases = names(1)
    expect(new Set(cases).size).toBe(cases.length)
    for (const [letter, last] of [
      ['R', 10],
      ['W', 7],
      ['D', 6],
      ['G', 7],
    ] as const)
      for (let step = 0; step <= last; step++)
        for (const action of faultActions)
          expect(cases.some((name) => name.startsWith(`kill/${letter}${step}.${action}/`))).toBe(
            true,
          )
    for (let step = 0; step <= 7; step++)
      expect(cases.some((name) => name.startsWith(`reconcile/C${step}.kill/`))).toBe(true)
  })

  it('is the same for the same seed, and another one for another', () => {
    expect(names(7)).toEqual(names(7))
    expect(names(7)).not.toEqual(names(8))
  })

  it('plays every history in every kind that concerns it', () => {
    const cases = names(1)
    for (const { slug, workflow } of all)
      for (const kind of ['duplicate', 'simultaneous', 'twin', 'off', 'postgres', 'reconcile'])
        expect(
          cases.some(
            (name) => name.startsWith(`${kind}/`) && name.includes(`/${workflow.name}/${slug}/`),
          ),
          `${kind} ${slug}`,
        ).toBe(true)
  })

  it('plans no fault for what the configuration does not do', () => {
    const cases = names(1, played(license, { sends: false }))
    expect(
      cases.filter((name) => /^kill\/[DG]|^destination|^provider|dispatch/.test(name)),
    ).toEqual([])
  })

  it('pays back first what is paid last', () => {
    const [paidBack] = planDrill(all, 1).filter(({ drillCase }) => drillCase.kind === 'refund')
    const own = paidBack?.played.history.events.length ?? 0
    expect(paidBack?.drillCase.steps.slice(0, 2)).toEqual([own, own + 1])
    expect([...(paidBack?.drillCase.steps ?? [])].sort((a, b) => a - b)).toEqual(
      Array.from({ length: own + 2 }, (_, at) => at),
    )
  })
})
