/** Calls within spans, where traces are on; where they are off, nothing is read and nothing is wrapped. */
import type { AttemptEnd, TraceContext, Tracing } from '../core/tracing.ts'
import type { DispatchContext, LeasedOperation } from './dispatch-context.ts'
import type { AttemptOutcome } from './next-step.ts'

/** Runs a call of an operation within its span. */
export type TracedCall = (
  operation: LeasedOperation,
  call: () => Promise<AttemptOutcome>,
) => Promise<AttemptOutcome>

/** A context that cannot be read now is none: the call must not fail for it. */
export async function tracedCalls(
  tracing: Tracing,
  { db, name }: DispatchContext,
  leased: readonly LeasedOperation[],
): Promise<TracedCall> {
  const rows = await db
    .query<{ id: string; trace: TraceContext }>({
      text: `select o.operation_id::text as id, o.trace from unnest($1::uuid[]) as k(operation_id)
        cross join lateral (
          select operation_id, trace from ${db.schema}outbox_operations i where i.operation_id = k.operation_id offset 0) o
        where o.trace is not null`,
      repeated: true,
      values: [leased.map(({ operationId }) => operationId)],
    })
    .catch(() => [])
  const contexts = new Map(rows.map(({ id, trace }) => [id, trace]))
  return ({ kind, operationId, orderId, number }, call) =>
    tracing.attempt(
      {
        kind,
        operationId,
        orderId,
        number,
        destination: name,
        context: contexts.get(operationId) ?? null,
      },
      call,
      endOf,
    )
}

/** Outcomes after which nothing went wrong. */
const fine: ReadonlySet<AttemptOutcome['kind']> = new Set(['sent', 'present', 'absent'])

function endOf(outcome: AttemptOutcome): AttemptEnd {
  return {
    outcome: outcome.kind,
    status: 'status' in outcome ? (outcome.status ?? null) : null,
    error: fine.has(outcome.kind) ? null : outcome.kind,
  }
}
