/**
 * Tells of findings that are past their due date: a signal once a step, and one operation a step where somebody
 * is to be told. Step and operation are one commit, so that neither comes without the other, nor twice.
 */
import type { Executor } from '../postgres/executor.ts'
import type { CompareContext } from './compare-context.ts'

/** So many are told of in one transaction. */
const atOnce = 100

interface OverdueRow {
  readonly finding_id: string
  readonly kind: string
  readonly class: string
  readonly severity: string
  readonly owner: string
  readonly order_id: string | null
  readonly due_at: Date | string
  readonly first_seen_at: Date | string
  readonly escalations: number
}

/** Answers how many were told of. */
export async function escalateOverdue(ctx: CompareContext): Promise<number> {
  const { db, signals, escalation } = ctx
  const afterHours = escalation?.afterHours ?? [0]
  for (let told = 0; ;) {
    const rows = await db.transaction((tx) => tell(ctx, tx, afterHours), {
      setup: `set local lock_timeout = ${ctx.lockTimeoutMs}`,
    })
    for (const row of rows)
      signals.emit('findings.overdue', {
        findingId: row.finding_id,
        kind: row.kind,
        severity: row.severity,
        owner: row.owner,
        orderId: row.order_id,
        dueAt: new Date(row.due_at),
        step: row.escalations,
      })
    told += rows.length
    if (rows.length < atOnce) return told
  }
}

async function tell(
  { db, escalation, addOperation }: CompareContext,
  tx: Executor,
  afterHours: readonly number[],
): Promise<readonly OverdueRow[]> {
  const rows = await tx.query<OverdueRow>({
    text: overdueSql(db.schema),
    values: [afterHours, atOnce],
  })
  if (escalation === null) return rows
  for (const row of rows)
    await addOperation(tx, {
      to: escalation.to,
      key: `finding:${row.finding_id}:${row.escalations}`,
      ...(row.order_id !== null && { order: row.order_id }),
      body: {
        finding: row.finding_id,
        kind: row.kind,
        class: row.class,
        severity: row.severity,
        owner: row.owner,
        order: row.order_id,
        due_at: new Date(row.due_at).toISOString(),
        first_seen_at: new Date(row.first_seen_at).toISOString(),
        step: row.escalations,
      },
    })
  return rows
}

/** A finding that missed several steps is told of once, with the last of them. */
function overdueSql(s: string): string {
  return `with due as materialized (
      select f.finding_id, (select count(*)::integer from unnest($1::double precision[]) as h(hours)
        where f.due_at + h.hours * interval '1 hour' <= now()) as steps, f.escalations
      from ${s}findings f
      where f.state in ('open', 'repairing') and f.due_at <= now() and f.escalations < cardinality($1::double precision[])
      order by f.finding_id for update skip locked),
    late as (select finding_id, steps from due where steps > escalations order by finding_id limit $2)
    update ${s}findings f set escalations = late.steps from late where f.finding_id = late.finding_id
    returning f.finding_id::text as finding_id, f.kind, f.class, f.severity, f.owner, f.order_id, f.due_at,
      f.first_seen_at, f.escalations`
}
