/**
 * Claims ready events by row locks that live as long as the transaction: no lease, no clock, no
 * zombie. A worker's scan goes round: each claim starts after the last key, so that events left behind
 * (their order is held by somebody else) do not stand in the way of those after them.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import { keyedPlans } from '../postgres/keyed-plans.ts'

/** A claimed ready row. */
export interface ClaimedRow {
  readonly key: bigint
  readonly receivedOn: string
  /** Failures so far. */
  readonly attempts: number
  readonly deadlineAt: Date | null
  readonly waitsFor: string | null
  readonly overdue: boolean
}

/** What to claim: the next ones after a key, exactly these, or a suspect (the one longest due, or this). */
export type Selection =
  | {
      readonly kind: 'next'
      readonly after: bigint
      readonly limit: number
      readonly except?: readonly bigint[]
    }
  | { readonly kind: 'these'; readonly keys: readonly bigint[] }
  | { readonly kind: 'suspect'; readonly key?: bigint }

/**
 * Settings of a claiming transaction, sent together with BEGIN. The lock timeout is shorter than the
 * server's deadlock_timeout, so that a worker always yields; plans of keyed access stay what they are
 * whatever the statistics say.
 */
export function claimSetup(limits: {
  readonly lockTimeoutMs: number
  readonly statementTimeoutMs: number
}): string {
  return [
    `set local lock_timeout = ${Math.trunc(limits.lockTimeoutMs)}`,
    `set local statement_timeout = ${Math.trunc(limits.statementTimeoutMs)}`,
    keyedPlans,
  ].join('; ')
}

/** Puts the planner's settings back before users' own SQL runs in the same transaction. */
export const userPlannerSetup: string =
  'set local enable_seqscan = on; set local enable_bitmapscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on; set local max_parallel_workers_per_gather to default'

interface ReadyRow {
  event_key: string
  received_on: string
  attempts: number
  deadline_at: Date | null
  waits_for: string | null
  overdue: boolean
}

const columns = `event_key, received_on::text as received_on, attempts, deadline_at, waits_for, overdue`

/** The claim's statement, exported so that its plan can be asserted. */
export function claimStatement(schema: string, kind: 'next' | 'these' | 'suspect'): string {
  if (kind === 'next') {
    return `select ${columns} from ${schema}inbox_ready where event_key > $1::bigint and event_key <> all ($3::bigint[])
      order by event_key limit $2::integer for update skip locked`
  }
  if (kind === 'these') {
    return `select ${columns} from ${schema}inbox_ready where event_key = any ($1::bigint[])
      order by event_key for update skip locked`
  }
  return `select ${columns} from ${schema}inbox_suspects
    where due_at <= now() and ($1::bigint is null or event_key = $1::bigint)
    order by due_at, event_key limit 1 for update skip locked`
}

/** Locks rows. What it returns must be re-read: another worker may have finished it meanwhile. */
export async function claim(
  db: Database,
  tx: Executor,
  selection: Selection,
): Promise<ClaimedRow[]> {
  const rows = await tx.query<ReadyRow>({
    text: claimStatement(db.schema, selection.kind),
    repeated: true,
    values:
      selection.kind === 'next'
        ? [selection.after.toString(), selection.limit, (selection.except ?? []).map(String)]
        : selection.kind === 'these'
          ? [selection.keys.map(String)]
          : [selection.key?.toString() ?? null],
  })
  return rows.map((row) => ({
    key: BigInt(row.event_key),
    receivedOn: row.received_on,
    attempts: row.attempts,
    deadlineAt: row.deadline_at,
    waitsFor: row.waits_for,
    overdue: row.overdue,
  }))
}
