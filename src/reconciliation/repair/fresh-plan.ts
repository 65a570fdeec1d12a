/**
 * The plan for a finding as both sides are now: the provider is asked before any transaction begins, and nothing
 * is locked, so that planning is in nobody's way.
 */
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { askAbout, type Answers } from './ask.ts'
import { NothingToDo, type RepairDraft } from './draft.ts'
import { earlierRepairs, type FindingRow } from './finding.ts'
import { makeDraft, type RepairChoice } from './make-draft.ts'
import { patiently } from './patience.ts'
import type { RepairPlan } from './plan.ts'
import type { RepairContext } from './ports.ts'

/** One moment of the database, in which nothing can be written. */
const readOnly = `set transaction isolation level repeatable read read only; ${keyedPlans}`

/** A plan with what the provider said for it. */
export interface FreshPlan {
  /** Null: both sides agree by now. */
  readonly plan: RepairPlan | null
  readonly answers: Answers
}

/**
 * Plans.
 *
 * @throws HookledgerError HKL_REPAIR_CHOICE, HKL_REPAIR_IMPOSSIBLE, HKL_RECONCILE_UNAVAILABLE
 */
export async function freshPlan(
  context: RepairContext,
  finding: FindingRow,
  asked: RepairChoice,
): Promise<FreshPlan> {
  const { db } = context
  const answers = await askAbout(context, finding)
  try {
    const { plan } = await patiently<RepairDraft>(() =>
      db.transaction(
        async (tx) => {
          const { length: earlier } = await earlierRepairs(db.schema, tx, finding.id)
          // what a plan says does not name the decision that it would be
          const given = { finding, answers, earlier, asked, decisionId: 0n, writes: false }
          return makeDraft(context, tx, given)
        },
        { setup: readOnly },
      ),
    )
    return { plan, answers }
  } catch (error) {
    if (!(error instanceof NothingToDo)) throw error
    if (await isOver(context, finding, error)) return { plan: null, answers }
    throw error.otherwise
  }
}

/**
 * The comparison says so; where it cannot tell, an event that was missing is over once what it tells is
 * recorded.
 */
async function isOver(
  { holds }: RepairContext,
  finding: FindingRow,
  { isRecorded }: NothingToDo,
): Promise<boolean> {
  const isFound = await holds(finding)
  return isFound === null ? isRecorded && finding.kind === 'event_missing' : !isFound
}
