/** Deciding anew, wired: what is decided is told to whoever listens in this process. */
import type { Signals } from '../core/signals.ts'
import type { GatherNow } from '../inbox/ask-anew.ts'
import {
  applyRedecision,
  planRedecision,
  type AppliedRedecision,
  type PlannedRedecision,
} from '../inbox/redecide.ts'
import type { AlreadyRedecided } from '../inbox/redecide-target.ts'
import type { ReplayReason } from '../inbox/replay.ts'
import type { WorkContext } from '../inbox/work-batch.ts'
import { emitOutcomes } from './outcome-signals.ts'

/** Decides anew what was skipped or contradicted. */
export interface Redecider {
  plan(
    event: { readonly id: string; readonly source?: string | undefined },
    by: ReplayReason,
  ): Promise<PlannedRedecision | AlreadyRedecided>
  apply(planned: PlannedRedecision, by: ReplayReason): Promise<AppliedRedecision>
}

/** Wires it. */
export function createRedecider(
  work: WorkContext,
  signals: Signals,
  gatherNow?: GatherNow,
): Redecider {
  const context = { ...work, gatherNow }
  return {
    plan: (event, by) => planRedecision(context, event, by),
    apply: async (planned, by) => {
      const applied = await applyRedecision(context, planned, by)
      if (applied.kind === 'redecided') emitOutcomes(signals, [applied.settled])
      return applied
    },
  }
}
