/**
 * Answers that came after their lease. They are kept, and change nothing, but for one: that an operation was
 * done, said of the same key, ends it where nobody knew.
 */
import type { Executor } from '../postgres/executor.ts'
import { runParts } from '../postgres/write-parts.ts'
import type { Receipt } from './destination.ts'
import type { DispatchContext, FinishedAttempt, LeasedOperation } from './dispatch-context.ts'
import { receiptJson } from './receipt-json.ts'

/** Receipts of late answers about the same key, by operation. */
export async function lateProofs(
  s: string,
  tx: Executor,
  operations: readonly LeasedOperation[],
): Promise<ReadonlyMap<string, Receipt>> {
  if (operations.length === 0) return new Map()
  const rows = await tx.query<{ operation_id: string; receipt: Receipt | null }>({
    text: `select k.operation_id::text as operation_id, p.receipt
      from unnest($1::uuid[], $2::integer[]) as k(operation_id, key_generation)
      cross join lateral (
        select w.receipt from ${s}outbox_attempts a
        cross join lateral (select * from ${s}outbox_answers w where w.attempt_id = a.attempt_id offset 0) w
        where a.operation_id = k.operation_id and a.key_generation = k.key_generation
          and w.late and w.outcome = 'sent'
        order by a.number desc limit 1) p`,
    repeated: true,
    values: [
      operations.map((each) => each.operationId),
      operations.map((each) => each.standing.generation),
    ],
  })
  return new Map(rows.map((row) => [row.operation_id, row.receipt ?? {}]))
}

/**
 * A result whose lease is lost: where it says `sent`, and the operation waits under the same key, it ends it.
 * Answers whether it did.
 */
export async function settleLate(
  { db: { schema: s }, findings }: DispatchContext,
  tx: Executor,
  { operation, outcome }: FinishedAttempt,
): Promise<boolean> {
  if (outcome.kind !== 'sent') return false
  const [row] = await tx.query<{ flagged: boolean }>({
    text: `with waiting as materialized (
        select operation_id, order_id, flagged from ${s}outbox_operations
        where operation_id = $1::uuid and key_generation = $2 and state in ('uncertain', 'pending') for no key update),
      ended as (
        update ${s}outbox_operations o set state = 'sent', next_attempt_at = null, uncertain_since = null,
          receipt = $3::text::jsonb, last_error = null, flagged = false, finished_at = now()
        where o.operation_id = any (array(select operation_id from waiting)) returning 1),
      woken as (
        insert into ${s}outbox_wakes (order_id) select order_id from waiting where order_id is not null)
      select flagged from waiting`,
    values: [operation.operationId, operation.standing.generation, receiptJson(outcome.receipt)],
  })
  if (row === undefined) return false
  if (row.flagged) await runParts(tx, findings.parts([], [operation.operationId]))
  return true
}
