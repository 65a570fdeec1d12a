/**
 * Leases that ran out: their dispatchers died in a call, or are too late. Nobody knows then whether it was
 * done, which is what becomes of the operation; the attempt keeps no answer, in case it still comes.
 */
import type { Executor } from '../postgres/executor.ts'
import type { DispatchContext, FinishedAttempt } from './dispatch-context.ts'

interface ExpiredRow {
  readonly operation_id: string
  readonly lease: string
  readonly attempts: number
  readonly key_generation: number
  readonly calls: number
  readonly lookups: number
  readonly flagged: boolean
  readonly order_id: string | null
  readonly was_uncertain: boolean
  readonly key_age_ms: number | null
  readonly age_ms: number
}

/** Locks operations whose lease ran out, as attempts that ended without a word. */
export async function lockExpired(
  { db: { schema: s }, name, batch }: DispatchContext,
  tx: Executor,
): Promise<FinishedAttempt[]> {
  const rows = await tx.query<ExpiredRow>({
    text: `select o.operation_id::text as operation_id, o.lease::text as lease, o.attempts, o.key_generation, o.calls,
        o.lookups, o.flagged, o.order_id, o.uncertain_since is not null as was_uncertain,
        extract(epoch from statement_timestamp() - o.first_attempt_at)::double precision * 1000 as key_age_ms,
        extract(epoch from statement_timestamp() - o.created_at)::double precision * 1000 as age_ms
      from ${s}outbox_operations o
      where o.destination = $1 and o.state = 'sending' and o.leased_until < statement_timestamp()
      order by o.leased_until limit $2 for no key update skip locked`,
    repeated: true,
    values: [name, batch],
  })
  const now = performance.now()
  return rows.map((row) => ({
    operation: {
      operationId: row.operation_id,
      kind: 'call',
      attemptId: '0',
      lease: row.lease,
      number: row.attempts,
      request: null,
      standing: {
        uncertain: row.was_uncertain,
        generation: row.key_generation,
        keyAgeMs: row.key_age_ms,
        calls: row.calls,
        lookups: row.lookups,
      },
      orderId: row.order_id,
      flagged: row.flagged,
      ageMs: row.age_ms,
      recordedAt: null,
      leasedAt: now,
    },
    outcome: { kind: 'died', error: 'the lease ran out before an answer came' },
    finishedAt: now,
  }))
}

/** Operations in state `sending`, counted: what the destination's row says must be this. */
export async function countSending(s: string, tx: Executor, destination: string): Promise<number> {
  const [row] = await tx.query<{ count: number }>({
    text: `select count(*)::integer as count from ${s}outbox_operations where destination = $1 and state = 'sending'`,
    repeated: true,
    values: [destination],
  })
  return row?.count ?? 0
}
