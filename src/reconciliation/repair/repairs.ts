/**
 * Repairs: what a person (or a rule) does about a finding. Planned, applied in one commit with who and why,
 * verified by asking the provider again. A plan is applied once, however often it is asked for.
 */
import { HookledgerError } from '../../core/errors.ts'
import { reach } from '../../core/failpoints.ts'
import { nameFlaw, reasonFlaw } from '../../core/recorded-text.ts'
import {
  applyInTransaction,
  changed,
  planDifferences,
  repairSetup,
  requireOpen,
  type Applied,
  type ApplyInput,
} from './apply.ts'
import { ChoiceNeeded } from './choices.ts'
import { earlierRepairs, readFinding, type FindingRow } from './finding.ts'
import { freshPlan, type FreshPlan } from './fresh-plan.ts'
import type { RepairChoice } from './make-draft.ts'
import { patiently } from './patience.ts'
import { readChoice, type RepairPlan } from './plan.ts'
import type { RepairContext } from './ports.ts'
import { applyRules } from './rules.ts'
import { endFinding, recordedRepair, type RecordedRepair, type RepairReason } from './record.ts'
import { verifyAll, verifyRepair, type Verified, type VerifyReport } from './verify.ts'

/** A plan that somebody has read and wants applied as it is: its id says all of it. */
export interface GivenPlan {
  readonly id: string
  readonly choice: string
  /** What differs from it in a plan that is made now, a line each; absent: the given one is a plan itself. */
  readonly differences?: ((now: RepairPlan) => readonly string[]) | undefined
}

/** What to apply. */
export interface ApplyOptions extends RepairChoice {
  /** Refuses anything else than exactly this. */
  readonly given?: GivenPlan | undefined
}

/** What applying came to. */
export interface RepairReport {
  /**
   * `applied` now; `recorded`: it was applied before, and nothing was changed; `agreed`: both sides agree by
   * now, nothing was to be done and the finding is closed.
   */
  readonly outcome: 'applied' | 'recorded' | 'agreed'
  readonly findingId: string
  readonly plan: RepairPlan | null
  readonly repair: RecordedRepair | null
  /** How the finding stands: `waiting` until the provider is seen to agree. */
  readonly finding: Verified
  /** Why it is not verified yet, where that was an error. */
  readonly problem: string | null
}

/** Repairs of one configuration. */
export interface Repairs {
  /**
   * The plan for a finding; null: both sides agree by now.
   *
   * @throws HookledgerError HKL_FINDING_UNKNOWN, HKL_FINDING_NOT_OPEN, HKL_REPAIR_CHOICE,
   * HKL_REPAIR_IMPOSSIBLE, HKL_RECONCILE_UNAVAILABLE
   */
  plan(findingId: string, asked?: RepairChoice): Promise<RepairPlan | null>
  /**
   * Applies a fresh plan, or exactly the given one.
   *
   * @throws HookledgerError as `plan`, and HKL_REPAIR_CHANGED when anything differs from the given plan
   */
  apply(findingId: string, by: RepairReason, options?: ApplyOptions): Promise<RepairReport>
  /** Asks the provider again about whatever was repaired and not verified yet. */
  verify(signal?: AbortSignal): Promise<VerifyReport>
  /** Repairs open findings of these kinds, with the rule as actor; answers how many. Then verifies. */
  automatic(kinds: readonly string[], signal?: AbortSignal): Promise<number>
}

/** A plan that was overtaken is made again so many times. */
const mostPlans = 4

/** Creates repairs. */
export function createRepairs(context: RepairContext): Repairs {
  return {
    async plan(findingId, asked = {}) {
      const finding = await readFinding(context.db.schema, context.db, findingId, false)
      await requireOpen(context.db.schema, context.db, finding)
      const { plan } = await freshPlan(context, finding, asked)
      return plan
    },
    apply: (findingId, by, options = {}) => apply(context, findingId, by, options),
    verify: (signal) => verifyAll(context, signal),
    async automatic(kinds, signal) {
      const repaired = await applyRules(context.db, kinds, signal, (findingId, by) =>
        apply(context, findingId, by, {}),
      )
      await verifyAll(context, signal)
      return repaired
    },
  }
}

async function apply(
  context: RepairContext,
  findingId: string,
  by: RepairReason,
  options: ApplyOptions,
): Promise<RepairReport> {
  const { db } = context
  requireReason(by)
  const { given } = options
  const asked = askedOf(options)
  if (given !== undefined) {
    const recorded = await recordedRepair(db.schema, db, given.id)
    if (recorded !== null) return reported(context, 'recorded', recorded, null)
  }
  const before = await latestRepair(context, findingId)
  const overtaking = async (): Promise<RecordedRepair | null> =>
    repairMeanwhile(context, findingId, { before, asked })
  for (let plans = 1; ; plans++) {
    const finding = await readFinding(db.schema, db, findingId, false)
    const running = given === undefined ? await runningRepair(context, finding, asked) : null
    if (running?.isOver === true) return reported(context, 'recorded', running.repair, null)
    if (isEnded(finding)) {
      const repair = await overtaking()
      if (repair !== null) return reported(context, 'recorded', repair, null)
    }
    await requireOpen(db.schema, db, finding)
    const fresh = await planAgain(context, finding, asked, {
      isRunning: running !== null,
      overtaking,
    })
    await reach('P0')
    if (fresh === null || fresh.plan === null) {
      // the given plan may have been applied between the looks above: then it is what both sides agree by
      const repair =
        running?.repair ??
        (await overtaking()) ??
        (given && (await recordedRepair(db.schema, db, given.id)))
      return repair === null || repair === undefined
        ? agreed(context, finding)
        : reported(context, 'recorded', repair, null)
    }
    const { plan, answers } = fresh
    if (given !== undefined && plan.id !== given.id)
      throw changed(plan, given.differences?.(plan) ?? planDifferences(plan, given as RepairPlan))
    await reach('P1')
    try {
      const applied = await commit(context, { plan, asked, answers, by })
      return await reported(context, applied.kind, applied.repair, plan)
    } catch (error) {
      // nobody has read a fresh plan: where it was overtaken, the next one is as good
      const isOvertaken = isOf(error, 'HKL_REPAIR_CHANGED') || isOf(error, 'HKL_FINDING_NOT_OPEN')
      if (given !== undefined || plans >= mostPlans || !isOvertaken) throw error
    }
  }
}

/** Null: what was asked was done already, and what is left of the finding would have to be chosen. */
async function planAgain(
  context: RepairContext,
  finding: FindingRow,
  asked: RepairChoice,
  meanwhile: {
    readonly isRunning: boolean
    readonly overtaking: () => Promise<RecordedRepair | null>
  },
): Promise<FreshPlan | null> {
  try {
    return await freshPlan(context, finding, asked)
  } catch (error) {
    if (meanwhile.isRunning && error instanceof ChoiceNeeded) return null
    const isRefused = error instanceof ChoiceNeeded || isOf(error, 'HKL_REPAIR_IMPOSSIBLE')
    if (isRefused && (await meanwhile.overtaking()) !== null) return null
    throw error
  }
}

/** The id of the newest repair of a finding. */
async function latestRepair({ db }: RepairContext, findingId: string): Promise<string | null> {
  const [latest] = await earlierRepairs(db.schema, db, findingId)
  return latest?.repairId ?? null
}

/** What somebody else who asked for the same has done since: whoever comes second is answered with it. */
async function repairMeanwhile(
  context: RepairContext,
  findingId: string,
  { before, asked }: { readonly before: string | null; readonly asked: RepairChoice },
): Promise<RecordedRepair | null> {
  const { db } = context
  const latest = await latestRepair(context, findingId)
  if (latest === null || latest === before) return null
  const repair = await recordedRepair(db.schema, db, latest)
  return repair !== null && isAsked(repair.choice, asked) ? repair : null
}

function isEnded({ state }: FindingRow): boolean {
  return state === 'closed' || state === 'dismissed'
}

/** Whether a recorded choice is the one that is asked for; what nobody chose is done by the plain ones. */
function isAsked(choice: string, asked: RepairChoice): boolean {
  const wanted = asked.to === undefined ? asked.choice : `target:${asked.to}`
  const { name } = readChoice(choice)
  if (wanted === undefined) return name === 'provider' || name === 'restore'
  return wanted === choice || wanted === name
}

function askedOf({ choice, to, given }: ApplyOptions): RepairChoice {
  if (given === undefined) return { choice, to }
  const { name, about } = readChoice(given.choice)
  return name === 'target' && about !== null ? { to: about } : { choice: given.choice }
}

/** @throws HookledgerError HKL_CLI_USAGE: an act that nobody can explain later is none */
function requireReason({ reason, actor }: RepairReason): void {
  const [ofReason, ofActor] = [reasonFlaw(reason), nameFlaw(actor)]
  if (ofReason !== null) throw new HookledgerError('HKL_CLI_USAGE', `the reason ${ofReason}`)
  if (ofActor !== null) throw new HookledgerError('HKL_CLI_USAGE', `the actor ${ofActor}`)
  if (reason.trim() !== '' && actor.trim() !== '') return
  throw new HookledgerError(
    'HKL_CLI_USAGE',
    'a repair needs a reason and an actor: both are recorded',
  )
}

/**
 * A repair that was applied and waits to be verified, where the same is asked again (somebody pressed twice).
 * What can be done only once is over; what can differ by now is planned anew, and found to change nothing.
 */
async function runningRepair(
  context: RepairContext,
  finding: FindingRow,
  asked: RepairChoice,
): Promise<{ readonly repair: RecordedRepair; readonly isOver: boolean } | null> {
  const { db } = context
  if (finding.state !== 'repairing') return null
  const [latest] = await earlierRepairs(db.schema, db, finding.id)
  if (latest === undefined || latest.verifiedAt !== null) return null
  const { name } = readChoice(latest.choice)
  const repair = isAsked(latest.choice, asked)
    ? await recordedRepair(db.schema, db, latest.repairId)
    : null
  if (repair === null) return null
  return { repair, isOver: name !== 'provider' && name !== 'restore' && name !== 'accept' }
}

/** Runs the transaction until it is known to have come to its end. */
async function commit(context: RepairContext, input: ApplyInput): Promise<Applied> {
  const { db } = context
  const applied = await patiently<Applied>(async () => {
    try {
      return await db.transaction((tx) => applyInTransaction(context, tx, input), {
        setup: repairSetup(context),
        beforeCommit: async () => reach('P5'),
        afterCommit: async () => reach('P6'),
      })
    } catch (error) {
      if (!isOf(error, 'HKL_TRANSACTION_UNKNOWN')) throw error
      // the tables know what became of it
      const repair = await recordedRepair(db.schema, db, input.plan.id)
      if (repair !== null) return { kind: 'recorded', repair }
      throw error
    }
  })
  if (applied.kind === 'applied') {
    const { operations } = input.plan
    context.told(applied.outcome, [...new Set(operations.map(({ destination }) => destination))])
  }
  return applied
}

function isOf(error: unknown, code: HookledgerError['code']): boolean {
  return error instanceof HookledgerError && error.code === code
}

async function agreed(context: RepairContext, finding: FindingRow): Promise<RepairReport> {
  const { db } = context
  const because = 'both sides agree'
  await endFinding(db.schema, db, { findingId: finding.id, because, as: 'closed' })
  return {
    outcome: 'agreed',
    findingId: finding.id,
    plan: null,
    repair: null,
    finding: 'closed',
    problem: null,
  }
}

/** What was done stands, whether the provider can be asked now or not. */
async function reported(
  context: RepairContext,
  outcome: 'applied' | 'recorded',
  repair: RecordedRepair,
  plan: RepairPlan | null,
): Promise<RepairReport> {
  const { findingId, choice, actor, repairId } = repair
  const report = { outcome, findingId, plan }
  try {
    const finding = await verifyRepair(context, { findingId, choice, actor })
    const now = await recordedRepair(context.db.schema, context.db, repairId)
    return { ...report, finding, repair: now ?? repair, problem: null }
  } catch (error) {
    const problem = error instanceof Error ? error.message : 'it could not be verified'
    return { ...report, finding: 'waiting', repair, problem }
  }
}
