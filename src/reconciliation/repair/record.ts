/** The row of a repair, the act of whoever did it, and the finding that waits to be verified. */
import { toJson } from '../../core/json.ts'
import type { Executor } from '../../postgres/executor.ts'
import { storable } from '../../postgres/storable-text.ts'
import type { RepairPlan } from './plan.ts'

/** Why, and who: both are recorded. */
export interface RepairReason {
  readonly reason: string
  readonly actor: string
}

/** A repair as it is recorded. */
export interface RecordedRepair {
  /** The plan's id. */
  readonly repairId: string
  readonly findingId: string
  readonly kind: string
  readonly choice: string
  readonly orderId: string | null
  readonly decisionId: bigint | null
  readonly reason: string
  readonly actor: string
  /** The order's state before and after; null without an order. */
  readonly from: string | null
  readonly to: string | null
  readonly appliedAt: Date
  readonly verifiedAt: Date | null
}

/** Reads a repair by its plan's id. */
export async function recordedRepair(
  schema: string,
  tx: Pick<Executor, 'query'>,
  repairId: string,
): Promise<RecordedRepair | null> {
  const [row] = await tx.query<{
    repair_id: string
    finding_id: string
    kind: string
    choice: string | null
    order_id: string | null
    decision_id: string | null
    reason: string
    actor: string
    from: string | null
    to: string | null
    applied_at: Date | string
    verified_at: Date | string | null
  }>({
    text: `select r.repair_id::text as repair_id, r.finding_id::text as finding_id, f.kind, r.plan ->> 'choice' as choice,
        r.order_id, r.decision_id, r.reason, r.actor, r.previous_state ->> 'state' as "from", r.new_state ->> 'state' as "to",
        r.applied_at, r.verified_at
      from ${schema}repairs r join ${schema}findings f on f.finding_id = r.finding_id where r.repair_id = $1::uuid`,
    values: [repairId],
  })
  if (row === undefined) return null
  return {
    repairId: row.repair_id,
    findingId: row.finding_id,
    kind: row.kind,
    choice: row.choice ?? '',
    orderId: row.order_id,
    decisionId: row.decision_id === null ? null : BigInt(row.decision_id),
    reason: row.reason,
    actor: row.actor,
    from: row.from,
    to: row.to,
    appliedAt: new Date(row.applied_at),
    verifiedAt: row.verified_at === null ? null : new Date(row.verified_at),
  }
}

/** What is recorded of a repair. */
export interface RepairRecord {
  readonly plan: RepairPlan
  readonly by: RepairReason
  readonly decisionId: bigint
  readonly before: Readonly<Record<string, unknown>>
  readonly after: Readonly<Record<string, unknown>>
}

/** Writes the row, the act and the finding's state. The finding is locked by the caller. */
export async function recordRepair(
  schema: string,
  tx: Executor,
  { plan, by, decisionId, before, after }: RepairRecord,
): Promise<void> {
  const order = plan.order?.id ?? null
  const reason = storable(by.reason)
  await tx.query({
    text: `with repair as (
        insert into ${schema}repairs (repair_id, finding_id, plan, reason, actor, order_id, previous_state, new_state, decision_id)
        values ($1::uuid, $2::uuid, $3::text::jsonb, $4, $5, $6, $7::text::jsonb, $8::text::jsonb, $9::bigint)),
      act as (
        insert into ${schema}operator_acts (act, target, reason, actor, details)
        values ('repair apply', 'finding:' || $2::text, $4, $5, $10::text::jsonb))
      update ${schema}findings set state = 'repairing' where finding_id = $2::uuid`,
    values: [
      plan.id,
      plan.findingId,
      storable(toJson(plan)),
      reason,
      by.actor,
      order,
      storable(toJson(before)),
      storable(toJson(after)),
      decisionId.toString(),
      storable(toJson({ repair: plan.id, choice: plan.choice, order, decision: decisionId })),
    ],
  })
}

/** How a finding ends. */
export interface FindingEnd {
  readonly findingId: string
  readonly because: string
  /**
   * `closed`: both sides agree. `dismissed`: a person said that it is as it should be, which covers its
   * evidence as it is; other figures open it again.
   */
  readonly as: 'closed' | 'dismissed'
}

/** How long what a person accepted stays accepted, as long as the figures stay. */
const acceptedYears = 10

/** Ends a finding, and marks its repairs as verified, in one statement. False when it was ended already. */
export async function endFinding(
  schema: string,
  tx: Pick<Executor, 'query'>,
  end: FindingEnd,
): Promise<boolean> {
  const rows = await tx.query({
    text: `with verified as (
        update ${schema}repairs set verified_at = now()
        where finding_id = $1::uuid and verified_at is null)
      update ${schema}findings set state = $2, closed_at = now(), closed_because = $3,
        dismissed_until = case when $2 = 'dismissed' then now() + interval '${acceptedYears} years' else dismissed_until end,
        dismissed_evidence = case when $2 = 'dismissed' then evidence else dismissed_evidence end
      where finding_id = $1::uuid and state in ('open', 'repairing')
      returning 1`,
    values: [end.findingId, end.as, storable(end.because)],
  })
  return rows.length > 0
}
