/**
 * Which workflows and handlers look at which types of which source.
 */
import { HookledgerError } from '../core/errors.ts'
import { grantWorkflow } from './grant-workflow.ts'
import type { HandlerOutbox } from './outbox-port.ts'
import type { AnyEvent, AnyHandler, UserExecutor, Workflow } from './workflow.ts'
import type { Resolution } from './resolution.ts'

/** A plain function for an event that concerns no order. It counts as one workflow. */
export interface PlainHandler {
  readonly source: string
  readonly types: readonly string[]
  /**
   * Runs once, in the engine's transaction. Returning `notOurs(…)` ignores the event; throwing tries
   * it again, or ends it dead (PermanentError).
   */
  readonly run: (input: {
    readonly event: AnyEvent
    readonly db: UserExecutor
    readonly outbox: HandlerOutbox
  }) => Promise<Resolution | void>
}

/** One workflow that looks at a type. */
export interface Candidate {
  readonly workflow: Workflow
  readonly handler: AnyHandler
}

/** What looks at one type of one source. */
export interface Candidates {
  readonly workflows: readonly Candidate[]
  readonly plain: PlainHandler | null
}

/** Lookup by source and type. */
export interface Registry {
  readonly workflows: ReadonlyMap<string, Workflow>
  candidates(source: string, type: string): Candidates | null
  /** Every type that something handles, by source. */
  readonly types: ReadonlyMap<string, ReadonlySet<string>>
}

/**
 * Builds the registry.
 *
 * @throws HookledgerError HKL_WORKFLOW_INVALID for two workflows of one name, one of a reserved name, or
 * two plain handlers of one type.
 */
export function createRegistry(
  workflows: readonly Workflow[],
  handlers: readonly PlainHandler[],
): Registry {
  const byName = new Map<string, Workflow>()
  const byType = new Map<string, { workflows: Candidate[]; plain: PlainHandler | null }>()
  const types = new Map<string, Set<string>>()
  const entry = (
    source: string,
    type: string,
  ): { workflows: Candidate[]; plain: PlainHandler | null } => {
    const key = `${source}\n${type}`
    const found = byType.get(key) ?? { workflows: [], plain: null }
    byType.set(key, found)
    const known = types.get(source) ?? new Set()
    types.set(source, known)
    known.add(type)
    return found
  }
  for (const workflow of workflows) {
    if (workflow.name === grantWorkflow.name) {
      throw new HookledgerError(
        'HKL_WORKFLOW_INVALID',
        `the workflow name "${workflow.name}" is reserved for what is given away: choose another`,
      )
    }
    if (byName.has(workflow.name)) {
      throw new HookledgerError(
        'HKL_WORKFLOW_INVALID',
        `two workflows are named "${workflow.name}"`,
      )
    }
    byName.set(workflow.name, workflow)
    for (const source of workflow.sources) {
      for (const [type, handler] of workflow.handlers)
        entry(source, type).workflows.push({ workflow, handler })
    }
  }
  for (const handler of handlers) {
    for (const type of handler.types) {
      const found = entry(handler.source, type)
      if (found.plain !== null) {
        throw new HookledgerError(
          'HKL_WORKFLOW_INVALID',
          `two handlers take "${type}" of source "${handler.source}"`,
        )
      }
      found.plain = handler
    }
  }
  return {
    workflows: byName,
    types,
    candidates: (source, type) => byType.get(`${source}\n${type}`) ?? null,
  }
}
