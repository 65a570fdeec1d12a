/**
 * Deciding anew what was skipped or contradicted, under the present code and by a person's will. The new
 * decision is the final one of an event of the source `hookledger` and names the one that it supersedes,
 * which stays final for its own event. Everything is one commit, and each decision is superseded once.
 */
import { HookledgerError } from '../core/errors.ts'
import { toJson } from '../core/json.ts'
import type { Executor } from '../postgres/executor.ts'
import { stableText } from '../workflow/difference.ts'
import { answered, forgetAsking, type GatherNow } from './ask-anew.ts'
import { askParts } from './ask-parts.ts'
import { BatchOutdated } from './batch-failure.ts'
import { newNames, wakesOf, type DecidedBatch } from './decided-batch.ts'
import { operationParts } from './outbox-writes.ts'
import { wakeParts, type Settled } from './outcome-parts.ts'
import { storeOwnEvent } from './own-event.ts'
import {
  askingClaim,
  decideAnew,
  sourceText,
  type DecidedAnew,
  type RedecisionPlan,
} from './redecide-plan.ts'
import {
  findLastWord,
  readEventAgain,
  redecisionId,
  supersedingOf,
  type AlreadyRedecided,
  type RedecisionTarget,
} from './redecide-target.ts'
import { underLock, Undone } from './redecide-lock.ts'
import type { RecordedDecision } from './replay-lookup.ts'
import type { ReplayReason } from './replay.ts'
import { runEffectSql } from './run-user-sql.ts'
import type { WorkContext } from './work-batch.ts'

/** What would be decided, to be applied as it is. */
export interface PlannedRedecision {
  readonly kind: 'planned'
  readonly target: RedecisionTarget
  readonly plan: RedecisionPlan
}

/** What applying a plan came to. */
export type AppliedRedecision =
  | {
      readonly kind: 'redecided'
      readonly decisionId: string
      readonly eventId: string
      /** What was decided, for whoever listens. */
      readonly settled: Settled
    }
  /** Somebody else was first: that is the answer. */
  | { readonly kind: 'recorded'; readonly decision: RecordedDecision }

/**
 * Says what deciding an event anew would change, and changes nothing. The reading of its body is
 * recorded with reason and actor.
 *
 * @throws HookledgerError HKL_INBOX_EVENT_UNKNOWN, HKL_INBOX_NOT_REPLAYABLE, HKL_INBOX_PAYLOAD_EXPIRED,
 * or HKL_REPAIR_IMPOSSIBLE saying why it is not to be decided anew
 */
export async function planRedecision(
  ctx: RedecideContext,
  event: { readonly id: string; readonly source?: string | undefined },
  by: ReplayReason,
): Promise<PlannedRedecision | AlreadyRedecided> {
  const found = await findLastWord(ctx.db, event)
  if (found.kind === 'recorded') return found
  const read = await readEventAgain(ctx.db, found.eventKey, ctx.reading, by)
  const target: RedecisionTarget = { kind: 'target', ...read, supersedes: found.word }
  const { plan } = await withAnswer(ctx, target, () =>
    underLock(ctx, async (tx) => {
      throw new Undone(await decideAnew(ctx, tx, target))
    }),
  )
  return { kind: 'planned', target, plan }
}

/** What deciding anew works with. */
export interface RedecideContext extends WorkContext {
  /** Undefined: events that are decided from answers of their provider cannot be decided anew here. */
  readonly gatherNow?: GatherNow | undefined
}

/** Runs `work` when the provider was asked anew, where the present code decides the event from its answer. */
async function withAnswer<T>(
  ctx: RedecideContext,
  target: RedecisionTarget,
  work: () => Promise<T>,
): Promise<T> {
  const asking = await underLock(ctx, (tx) => askingClaim(ctx, tx, target))
  if (asking === null) return work()
  try {
    await answered(ctx.gatherNow, target.event)
    return await work()
  } finally {
    await forgetAsking(ctx, asking)
  }
}

/**
 * Applies a plan in one commit.
 *
 * @throws HookledgerError HKL_REPAIR_CHANGED when anything differs from the plan by now
 */
export async function applyRedecision(
  ctx: RedecideContext,
  planned: PlannedRedecision,
  by: ReplayReason,
): Promise<AppliedRedecision> {
  const { supersedes } = planned.target
  const known = await supersedingOf(ctx.db, supersedes.decision.decision_id)
  if (known !== null) return { kind: 'recorded', decision: known.decision }
  const applied = await withAnswer(ctx, planned.target, () =>
    underLock(ctx, (tx) => write(ctx, tx, planned, by)),
  )
  if (applied !== null) return applied
  const first = await supersedingOf(ctx.db, supersedes.decision.decision_id)
  if (first === null) throw changed()
  return { kind: 'recorded', decision: first.decision }
}

async function write(
  ctx: WorkContext,
  tx: Executor,
  { target, plan }: PlannedRedecision,
  by: ReplayReason,
): Promise<AppliedRedecision | null> {
  const { db, environment } = ctx
  const eventId = redecisionId(target.supersedes.decision.decision_id)
  // first: of two that do the same at once, the second waits here and finds it done
  const ownKey = await storeOwnEvent(db, tx, environment, {
    eventId,
    eventType: 'replay.redecide',
    via: 'replay',
    body: toJson({ plan, reason: by.reason, actor: by.actor }),
  })
  if (ownKey === null) return null
  const decided = await decideAnew(ctx, tx, target)
  if (stableText(decided.plan) !== stableText(plan)) throw changed()
  const settled = settledOf(target, decided)
  await apply(ctx, tx, { target, decided, settled, ownKey, by })
  await tx.query({
    text: `insert into ${db.schema}operator_acts (act, target, reason, actor, details) values ('redecide', $1, $2, $3, $4::text::jsonb)`,
    values: [
      `event:${target.event.key}`,
      by.reason,
      by.actor,
      toJson({
        supersedes: plan.supersedes.decision_id,
        decision: settled.outcome.decisionId.toString(),
      }),
    ],
  })
  await runEffectSql(tx, [settled], ctx.registry, decided.after, ctx.limits.watchdogMs)
  return {
    kind: 'redecided',
    decisionId: settled.outcome.decisionId.toString(),
    eventId,
    settled,
  }
}

/** What is told of it later: the event's outcome, by a decision that says whose it is. */
function settledOf({ event }: RedecisionTarget, { outcome, plan }: DecidedAnew): Settled {
  const evidence = {
    ...outcome.evidence,
    redecided: {
      event: event.eventId,
      event_key: event.key.toString(),
      decision: plan.supersedes.decision_id,
      as: outcome.kind,
      because: outcome.reason,
    },
  }
  const row = {
    key: event.key,
    receivedOn: event.receivedAt.toISOString().slice(0, 10),
    attempts: 0,
    deadlineAt: null,
    waitsFor: null,
    overdue: false,
  }
  return { row, outcome: { ...outcome, evidence }, waits: [] }
}

async function apply(
  ctx: WorkContext,
  tx: Executor,
  {
    target,
    decided,
    settled,
    ownKey,
    by,
  }: {
    readonly target: RedecisionTarget
    readonly decided: DecidedAnew
    readonly settled: Settled
    readonly ownKey: bigint
    readonly by: ReplayReason
  },
): Promise<void> {
  const { ledger, db } = ctx
  const { before, after, bound, plan } = decided
  const { event, supersedes } = target
  const batch: DecidedBatch = {
    settled: [settled],
    retried: [],
    before,
    after,
    unopened: [],
    bound,
  }
  const learned = newNames(batch, (name) => ledger.nameKey(name))
  if ((await ledger.writeNames(tx, learned)).length > 0) throw new BatchOutdated()
  await ledger.apply(
    tx,
    {
      decided: [
        {
          outcome: { ...settled.outcome, reason: by.reason },
          attempts: 1,
          recorded: true,
          recordedAs: {
            kind: 'redecided',
            eventKey: ownKey,
            supersedes: BigInt(supersedes.decision.decision_id),
          },
        },
      ],
      before,
      after,
      findings: settled.outcome.findings.map((draft) => ({
        draft,
        source: sourceText(event),
        orderId: settled.outcome.orderId,
        eventKey: event.key,
      })),
      closedFindings: [...plan.closes],
      actor: by.actor,
    },
    [
      ...operationParts(ctx, [settled]),
      ...askParts(db.schema, { asking: [], settled: [settled], retried: [], looks: decided.looks }),
      ...wakeParts(db.schema, wakesOf(batch, learned)),
    ],
  )
}

function changed(): HookledgerError {
  return new HookledgerError(
    'HKL_REPAIR_CHANGED',
    'the order has changed since the plan was made: nothing was done, make a new plan',
  )
}
