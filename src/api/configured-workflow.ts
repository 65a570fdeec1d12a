/** Workflows of the configuration, the built-in ones among them. */
import type { HookledgerParts } from '../compose/parts.ts'
import { grantWorkflow } from '../workflow/grant-workflow.ts'
import type { Workflow } from '../workflow/workflow.ts'

/** The workflow of this name; null where the present configuration has none. */
export function configuredWorkflow(
  { config }: Pick<HookledgerParts, 'config'>,
  name: string,
): Workflow | null {
  if (name === grantWorkflow.name) return grantWorkflow
  return config.registry.workflows.get(name) ?? null
}
