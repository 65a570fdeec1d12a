/** States and effects under the names that the present code has for them: a new name is no difference. */
import type { Workflow } from '../workflow/workflow.ts'
import type { OrderFacts } from './dry-run-facts.ts'
import type { HistoricStep } from './dry-run-reads.ts'

/** The present name of a recorded state. */
export function presentState(workflow: Workflow | undefined, state: string | null): string | null {
  if (workflow === undefined || state === null || workflow.states.has(state)) return state
  for (const [name, { renamedFrom }] of workflow.states) if (renamedFrom === state) return name
  return state
}

function presentEffect(workflow: Workflow, type: string): string {
  const [base = '', suffix] = type.split(':')
  for (const [name, { renamedFrom }] of workflow.effects)
    if (renamedFrom === base) return suffix === undefined ? name : `${name}:${suffix}`
  return type
}

/** A recorded decision under present names. */
export function presentStep(workflow: Workflow | undefined, step: HistoricStep): HistoricStep {
  return {
    ...step,
    from_state: presentState(workflow, step.from_state),
    to_state: presentState(workflow, step.to_state),
  }
}

/** What is recorded of an order, under present names. */
export function presentFacts(workflow: Workflow | undefined, facts: OrderFacts): OrderFacts {
  if (workflow === undefined) return facts
  return {
    ...facts,
    stateBefore: presentState(workflow, facts.stateBefore),
    effects: facts.effects.map((each) => ({
      ...each,
      row: { ...each.row, type: presentEffect(workflow, each.row.type) },
    })),
    operations: facts.operations.map((each) => ({
      ...each,
      row: {
        ...each.row,
        effect: { ...each.row.effect, type: presentEffect(workflow, each.row.effect.type) },
      },
    })),
  }
}
