/**
 * A workflow in shadow: the same decisions beside an existing handler, which grant nothing, send nothing and
 * run no SQL of the user's.
 */
import type { Workflow } from './workflow.ts'

/** The workflow as it decides in shadow. Its version stays: it knows the same states, types and effects. */
export function shadowed(workflow: Workflow): Workflow {
  if (workflow.shadowOf !== undefined) return workflow
  const effects = [...workflow.effects].map(
    ([type, { renamedFrom }]) => [type, Object.freeze({ renamedFrom })] as const,
  )
  return Object.freeze({ ...workflow, effects: new Map(effects), shadowOf: workflow })
}
