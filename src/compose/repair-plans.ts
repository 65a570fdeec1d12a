/**
 * Repairs as they are planned on one page and applied by the next request: nothing of a plan comes back from the
 * browser but its id, and whatever is applied comes out of a plan made anew with that very id.
 */
import { HookledgerError } from '../core/errors.ts'
import { choicesOf } from '../reconciliation/repair/choices.ts'
import type { ChoiceOffer, RepairPlan } from '../reconciliation/repair/plan.ts'
import type { GivenPlan, RepairReport, Repairs } from '../reconciliation/repair/repairs.ts'

export type { ChoiceOffer, RepairPlan } from '../reconciliation/repair/plan.ts'
export type { RepairReport } from '../reconciliation/repair/repairs.ts'

/** What a person chose. */
export interface AskedRepair {
  readonly choice?: string | undefined
  /** The state that the order is to be in: the choice `target`. */
  readonly to?: string | undefined
}

/** A plan, or why there is none. */
export type PlannedRepair =
  | { readonly kind: 'plan'; readonly plan: RepairPlan }
  /** Both sides agree by now: applying closes the finding. */
  | { readonly kind: 'agreed' }
  /** Somebody has to choose. */
  | { readonly kind: 'choose'; readonly why: string; readonly choices: readonly ChoiceOffer[] }

/** The id in the place of a plan's where both sides agree: no plan has it. */
const noPlan = '00000000-0000-0000-0000-000000000000'

/** @throws HookledgerError HKL_FINDING_UNKNOWN, HKL_FINDING_NOT_OPEN, HKL_REPAIR_IMPOSSIBLE, HKL_RECONCILE_UNAVAILABLE */
export async function planRepair(
  repairs: Repairs,
  findingId: string,
  asked: AskedRepair,
): Promise<PlannedRepair> {
  try {
    const plan = await repairs.plan(findingId, asked)
    return plan === null ? { kind: 'agreed' } : { kind: 'plan', plan }
  } catch (error) {
    const offered = offersOf(error)
    if (offered === null) throw error
    return { kind: 'choose', ...offered }
  }
}

/**
 * Applies exactly the plan of this id; null: what was read is that both sides agree.
 *
 * @throws HookledgerError HKL_REPAIR_CHANGED where a plan made now has another id, and what `planRepair` throws
 */
export async function applyPlanned(
  repairs: Repairs,
  finding: { readonly id: string; readonly kind: string },
  given: { readonly planId: string | null; readonly choice: string | null },
  by: { readonly reason: string; readonly actor: string },
): Promise<RepairReport> {
  const choice = given.choice ?? choicesOf(finding.kind).plain
  if (choice === null)
    throw new HookledgerError('HKL_REPAIR_CHOICE', 'say what is to be done: make a plan first')
  const plan: GivenPlan = {
    id: given.planId ?? noPlan,
    choice,
    differences: () => ['what it changes, or what it rests on: look at a new plan'],
  }
  const apply = (): Promise<RepairReport> => repairs.apply(finding.id, by, { given: plan })
  try {
    return await apply()
  } catch (error) {
    // somebody else may have applied this very plan a moment ago: asked again, that is the answer
    if (given.planId === null || !isOvertaken(error)) throw error
    return apply()
  }
}

function isOvertaken(error: unknown): boolean {
  if (!(error instanceof HookledgerError)) return false
  const { code } = error
  return (
    code === 'HKL_REPAIR_CHANGED' ||
    code === 'HKL_FINDING_NOT_OPEN' ||
    code === 'HKL_REPAIR_IMPOSSIBLE' ||
    code === 'HKL_REPAIR_CHOICE'
  )
}

function offersOf(
  error: unknown,
): { readonly why: string; readonly choices: readonly ChoiceOffer[] } | null {
  if (!(error instanceof HookledgerError) || error.code !== 'HKL_REPAIR_CHOICE') return null
  const { why, offers } = error as {
    readonly why?: string
    readonly offers?: readonly ChoiceOffer[]
  }
  return why === undefined || offers === undefined ? null : { why, choices: offers }
}
