/**
 * Applies a plan in one transaction: the event, its decision, what changes, the row of the repair, who and
 * why become visible together or not at all. The plan is made again under the order's lock, and applied only
 * where it is the very same one.
 */
import { HookledgerError } from '../../core/errors.ts'
import { reach } from '../../core/failpoints.ts'
import { toJson } from '../../core/json.ts'
import type { Executor } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import type { WritePart } from '../../postgres/write-parts.ts'
import { storable } from '../../postgres/storable-text.ts'
import { differences } from '../../workflow/difference.ts'
import type { OrderLedger } from '../../workflow/order.ts'
import type { Outcome } from '../../workflow/outcome.ts'
import type { Answers } from './ask.ts'
import { NothingToDo, type OrderChange, type RepairDraft } from './draft.ts'
import { earlierRepairs, endingAct, readFinding, type FindingRow } from './finding.ts'
import { makeDraft, type RepairChoice } from './make-draft.ts'
import type { RepairPlan } from './plan.ts'
import type { NameOfSource, RepairContext } from './ports.ts'
import { outcomeOf, stateOf } from './repair-decision.ts'
import { recordedRepair, recordRepair, type RecordedRepair, type RepairReason } from './record.ts'

/** What a transaction came to. */
export type Applied =
  | { readonly kind: 'applied'; readonly repair: RecordedRepair; readonly outcome: Outcome }
  /** It was applied before, by whomever: nothing was changed now. */
  | { readonly kind: 'recorded'; readonly repair: RecordedRepair }

/** What is applied. */
export interface ApplyInput {
  readonly plan: RepairPlan
  readonly asked: RepairChoice
  readonly answers: Answers
  readonly by: RepairReason
}

/**
 * Applies.
 *
 * @throws OrderHeld when somebody else holds the order: to be tried again
 * @throws HookledgerError HKL_REPAIR_CHANGED when anything differs from the plan, HKL_FINDING_NOT_OPEN
 */
export async function applyInTransaction(
  context: RepairContext,
  tx: Executor,
  input: ApplyInput,
): Promise<Applied> {
  const { plan, by } = input
  const s = context.db.schema
  await reach('P2')
  const earlier = await recordedRepair(s, tx, plan.id)
  if (earlier !== null) return { kind: 'recorded', repair: earlier }
  const [decisionId, draft] = await draftAgain(context, tx, input)
  // orders first and findings after them, as a worker does
  const finding = await readFinding(s, tx, plan.findingId, true)
  const meanwhile = await recordedRepair(s, tx, plan.id)
  if (meanwhile !== null) return { kind: 'recorded', repair: meanwhile }
  await requireOpen(s, tx, finding)
  requireSame(plan, draft)
  const eventKey = await context.storeEvent(tx, {
    eventId: plan.id,
    eventType: `repair.${finding.kind}`,
    body: storable(toJson(plan)),
  })
  if (eventKey === null) throw changed(plan, ['an event of this id is stored already'])
  const outcome = outcomeOf({ context, finding, draft, decisionId, eventKey, by })
  await recordRepair(s, tx, {
    plan: draft.plan,
    by,
    decisionId,
    before: stateOf(draft.change?.before ?? null),
    after: stateOf(draft.change?.after ?? null),
  })
  await reach('P3')
  await write(context, tx, { draft, outcome, eventKey, by, finding })
  await reach('P4')
  const repair = await recordedRepair(s, tx, plan.id)
  if (repair === null) throw changed(plan, ['the row of the repair is gone'])
  return { kind: 'applied', repair, outcome }
}

/** Settings of the transaction, sent together with BEGIN. */
export function repairSetup(context: RepairContext): string {
  return [
    `set local lock_timeout = ${Math.trunc(context.lockTimeoutMs)}`,
    `set local statement_timeout = ${Math.trunc(context.statementTimeoutMs)}`,
    keyedPlans,
  ].join('; ')
}

async function draftAgain(
  context: RepairContext,
  tx: Executor,
  { plan, asked, answers }: ApplyInput,
): Promise<[bigint, RepairDraft]> {
  const s = context.db.schema
  const decisionId = await nextDecision(s, tx)
  const finding = await readFinding(s, tx, plan.findingId, false)
  const { length: earlier } = await earlierRepairs(s, tx, plan.findingId)
  const input = { finding, answers, earlier, asked, decisionId, writes: true }
  try {
    return [decisionId, await makeDraft(context, tx, input)]
  } catch (error) {
    if (!(error instanceof NothingToDo)) throw error
    throw changed(plan, ['nothing is to be done any more'])
  }
}

/** A number for the one decision of a repair. */
async function nextDecision(schema: string, tx: Executor): Promise<bigint> {
  const [row] = await tx.query<{ id: string }>({
    text: `select nextval('${schema}ledger_decisions_decision_id_seq'::regclass)::text as id`,
  })
  return BigInt(row?.id ?? 0)
}

/** @throws HookledgerError HKL_FINDING_NOT_OPEN saying why, and who did something about it last */
export async function requireOpen(
  schema: string,
  tx: Pick<Executor, 'query'>,
  finding: FindingRow,
): Promise<void> {
  if (finding.state === 'open' || finding.state === 'repairing') return
  const act = await endingAct(schema, tx, finding.id)
  const who = act === null ? '' : ` (${act.act} by ${act.actor}, ${act.at})`
  throw new HookledgerError(
    'HKL_FINDING_NOT_OPEN',
    `finding ${finding.id} is ${finding.state}${finding.closedBecause === null ? '' : `, because ${finding.closedBecause}`}${who}: there is nothing to repair`,
  )
}

function requireSame(plan: RepairPlan, draft: RepairDraft): void {
  if (draft.plan.id === plan.id) return
  throw changed(plan, planDifferences(draft.plan, plan))
}

/** What differs between what would be done now and what was planned, a line each. */
export function planDifferences(now: RepairPlan, planned: RepairPlan): string[] {
  const told = ({ id: _, summary: __, choices: ___, ...content }: RepairPlan): object => content
  return differences(told(now), told(planned))
}

/** @returns HKL_REPAIR_CHANGED saying what differs */
export function changed(
  plan: Pick<RepairPlan, 'findingId'>,
  what: readonly string[],
): HookledgerError {
  if (what.length === 0)
    return new HookledgerError(
      'HKL_REPAIR_CHANGED',
      `nothing was applied: the plan has another id than this plan has now, though nothing that it shows differs; its id was changed, or what it rests on: hookledger repair plan ${plan.findingId}`,
    )
  return new HookledgerError(
    'HKL_REPAIR_CHANGED',
    `something changed since the plan was made, and nothing was applied (${what.join('; ')}): hookledger repair plan ${plan.findingId}`,
  )
}

interface Writing {
  readonly draft: RepairDraft
  readonly outcome: Outcome
  readonly eventKey: bigint
  readonly by: RepairReason
  readonly finding: FindingRow
}

async function write(context: RepairContext, tx: Executor, writing: Writing): Promise<void> {
  const { draft, outcome, eventKey, by, finding } = writing
  const { change } = draft
  const before = new Map<string, OrderLedger>()
  const after = new Map<string, OrderLedger>()
  if (change !== null) {
    await context.knowStates(tx, change.workflow)
    before.set(change.before.id, change.before)
    after.set(change.before.id, change.after)
    await learn(context, tx, change)
  }
  const recordedAs = { kind: 'repaired' as const, eventKey, supersedes: null }
  const further = furtherPayments(change, outcome)
  await context.apply(
    tx,
    {
      decided: [
        { outcome, attempts: 1, recorded: true, recordedAs },
        ...further.map((each) => ({ outcome: each, attempts: 1, recorded: false })),
      ],
      before,
      after,
      findings: foundBesides(change, finding),
      closedFindings: [],
      actor: by.actor,
    },
    [
      ...context.operations(
        outcome.operations.map((each) => ({ ...each, decisionId: outcome.decisionId })),
      ),
      ...context.wake(wakesOf(change)),
      ...voidedParts(context.db.schema, change, outcome.decisionId),
    ],
  )
  await writeExpected(context.db.schema, tx, draft.plan)
  await context.runEffects(tx, outcome, after)
  if (draft.refund === null) return
  const { to, key, body } = draft.refund
  const order = change === null ? {} : { order: change.before.id }
  const added = await context.addOperation(tx, { to, key, body, ...order })
  if (added === 'existed') throw changed(draft.plan, ['the payment is being given back already'])
}

/** The order is locked, and the ledger's statement leaves these two columns as they are. */
async function writeExpected(s: string, tx: Executor, { order }: RepairPlan): Promise<void> {
  if (order === null || order.expected === null) return
  const { to } = order.expected
  await tx.query({
    text: `update ${s}orders set expected_amount = $2::bigint, currency = $3 where order_id = $1`,
    values: [order.id, to?.amount.toString() ?? null, to?.currency ?? null],
  })
}

/** Payments that no longer count. Their order is locked, so that what was read is what there is. */
function voidedParts(
  s: string,
  change: OrderChange | null,
  decisionId: bigint,
): readonly WritePart[] {
  const voided = change?.voided ?? []
  if (change === null || voided.length === 0) return []
  return [
    {
      name: 'voided',
      sql: `voided as (
        update ${s}ledger_payments p set applied = false, decision_id = :4::bigint
        from unnest(:1::integer[], :2::text[]) as n(source_id, payment_id)
        where p.source_id = n.source_id and p.payment_id = n.payment_id and p.order_id = :3 and p.applied
        returning 1)`,
      values: [
        voided.map(({ sourceId }) => sourceId),
        voided.map(({ id }) => id),
        change.before.id,
        decisionId.toString(),
      ],
      expected: voided.length,
    },
  ]
}

/** One decision can record several payments; each is a row of its own. */
function furtherPayments(change: OrderChange | null, outcome: Outcome): Outcome[] {
  return (change?.payments ?? []).slice(1).map(({ sourceId, row, applies }) => ({
    ...outcome,
    event: { ...outcome.event, sourceId },
    payment: row,
    appliesPayment: applies,
    effects: [],
    operations: [],
  }))
}

function foundBesides(
  change: OrderChange | null,
  { source, id }: FindingRow,
): Parameters<RepairContext['apply']>[1]['findings'] {
  if (change === null || source === null) return []
  const text = `${source.provider}:${source.account}:${source.environment}`
  return change.findings
    .filter((draft) => draft.about !== `finding:${id}`)
    .map((draft) => ({ draft, source: text, orderId: change.before.id, eventKey: null }))
}

async function learn(context: RepairContext, tx: Executor, change: OrderChange): Promise<void> {
  const orderId = change.before.id
  const names = change.learned.map((name) => ({ ...name, orderId }))
  // an order that the repair opens is found by its own id from now on
  const own = change.before.stored ? [] : [{ sourceId: 0, kind: 'order', value: orderId, orderId }]
  const [conflict] = await context.writeNames(tx, [...own, ...names])
  if (conflict === undefined) return
  throw new HookledgerError(
    'HKL_REPAIR_CHANGED',
    `${conflict.kind} ${conflict.value} belongs to another order by now, and nothing was applied: make the plan again`,
  )
}

function wakesOf(change: OrderChange | null): NameOfSource[] {
  if (change === null || change.after.version === change.before.version) return []
  return [
    { sourceId: 0, kind: 'order', value: change.before.id },
    ...change.learned.map(({ sourceId, kind, value }) => ({ sourceId, kind, value })),
  ]
}
