/**
 * What is due, under the locks of its destination and of its rows: sorted by what is to be done with it.
 * Every time is the database's; a dispatcher's own clock decides nothing.
 */
import type { Executor } from '../postgres/executor.ts'
import type { DispatchContext } from './dispatch-context.ts'
import { traitsOf } from './dispatch-context.ts'
import { planOf, type OperationStanding } from './next-step.ts'

/** An operation that is due. */
export interface Candidate {
  readonly operationId: string
  readonly standing: OperationStanding
  readonly orderId: string | null
  readonly whileStates: readonly string[] | null
  readonly attempts: number
  readonly flagged: boolean
  readonly ageMs: number
  /** When it was recorded, in milliseconds since 1970 by the database's clock. */
  readonly recordedMs: number
  /** An earlier operation of its order is not finished, and this destination takes them in sequence. */
  readonly blocked: boolean
  /** When it was due, exactly as the database writes it. */
  readonly dueAt: string
}

interface CandidateRow {
  readonly operation_id: string
  readonly state: string
  readonly key_generation: number
  readonly attempts: number
  readonly calls: number
  readonly lookups: number
  readonly flagged: boolean
  readonly order_id: string | null
  readonly while_states: readonly string[] | null
  readonly key_age_ms: number | null
  readonly age_ms: number
  readonly recorded_ms: number
  readonly due_at: string
  readonly blocked: boolean
}

/** Locks up to `most` operations that are due since `from` or later, the longest due first. */
export async function lockDue(
  { db: { schema: s }, name, destination }: DispatchContext,
  tx: Executor,
  most: number,
  from: string,
): Promise<Candidate[]> {
  const blocked =
    destination.contract.sequence === 'order'
      ? // not EXISTS, which could be answered by reading everything that is open, once
        `coalesce(o.order_id is not null and (select true from ${s}outbox_operations e
          where e.order_id = o.order_id and e.destination = o.destination and e.sequence < o.sequence
            and e.state not in ('sent', 'canceled', 'discarded') limit 1), false)`
      : 'false'
  const rows = await tx.query<CandidateRow>({
    text: `select o.operation_id::text as operation_id, o.state, o.key_generation, o.attempts, o.calls, o.lookups,
        o.flagged, o.order_id, o.while_states, o.next_attempt_at::text as due_at, ${blocked} as blocked,
        extract(epoch from statement_timestamp() - o.first_attempt_at)::double precision * 1000 as key_age_ms,
        extract(epoch from statement_timestamp() - o.created_at)::double precision * 1000 as age_ms,
        extract(epoch from o.created_at)::double precision * 1000 as recorded_ms
      from ${s}outbox_operations o
      where o.destination = $1 and o.next_attempt_at is not null and o.next_attempt_at <= statement_timestamp()
        and o.next_attempt_at >= $3::timestamptz
      order by o.next_attempt_at, o.sequence limit $2 for no key update skip locked`,
    repeated: true,
    values: [name, most, from],
  })
  return rows.map((row) => ({
    operationId: row.operation_id,
    standing: {
      uncertain: row.state === 'uncertain',
      generation: row.key_generation,
      keyAgeMs: row.key_age_ms,
      calls: row.calls,
      lookups: row.lookups,
    },
    orderId: row.order_id,
    whileStates: row.while_states,
    attempts: row.attempts,
    flagged: row.flagged,
    ageMs: row.age_ms,
    recordedMs: row.recorded_ms,
    blocked: row.blocked,
    dueAt: row.due_at,
  }))
}

/** An operation that its order has left behind. */
export interface Outlived {
  readonly candidate: Candidate
  readonly workflow: string
  readonly orderState: string
}

/** An operation that is not called now. */
export interface Postponed {
  readonly candidate: Candidate
  /** Milliseconds; null: only a person can say more. */
  readonly nextInMs: number | null
  /** Why a person is asked. */
  readonly reason: string | null
}

/** What is due, sorted. */
export interface SortedCandidates {
  readonly calls: readonly Candidate[]
  /** Those among `calls` whose key's window begins with this call. */
  readonly newWindows: readonly Candidate[]
  readonly lookups: readonly Candidate[]
  readonly outlived: readonly Outlived[]
  readonly postponed: readonly Postponed[]
}

/** How long one waits whose order somebody else holds at this moment, in milliseconds. */
const heldMs = 250
/** The net under operations that wait for an earlier one: its end makes them due at once. */
const blockedMs = 30_000

/** Sorts what is due; locks the orders of those that make sense only in some states of them. */
export async function sortCandidates(
  ctx: DispatchContext,
  tx: Executor,
  due: readonly Candidate[],
): Promise<SortedCandidates> {
  const calls: Candidate[] = []
  const newWindows: Candidate[] = []
  const lookups: Candidate[] = []
  const outlived: Outlived[] = []
  const postponed: Postponed[] = []
  const traits = traitsOf(ctx.destination)
  const orders = await lockOrders(ctx.db.schema, tx, due)
  for (const candidate of due) {
    const { standing, orderId, whileStates } = candidate
    if (candidate.blocked) {
      postponed.push({ candidate, nextInMs: blockedMs, reason: null })
      continue
    }
    // what may have been done already is never given up for what became of the order
    if (whileStates !== null && orderId !== null && !standing.uncertain) {
      const order = orders.get(orderId)
      if (order === undefined) {
        postponed.push({ candidate, nextInMs: heldMs, reason: null })
        continue
      }
      if (!whileStates.includes(order.state)) {
        outlived.push({ candidate, workflow: order.workflow, orderState: order.state })
        continue
      }
    }
    const plan = planOf(standing, traits)
    if (plan.act === 'ask') postponed.push({ candidate, nextInMs: null, reason: plan.reason })
    else if (plan.act === 'wait') postponed.push({ candidate, nextInMs: plan.forMs, reason: null })
    else if (plan.act === 'lookup') lookups.push(candidate)
    else {
      calls.push(candidate)
      if (plan.newWindow) newWindows.push(candidate)
    }
  }
  return { calls, newWindows, lookups, outlived, postponed }
}

interface OrderRow {
  readonly order_id: string
  readonly workflow: string
  readonly state: string
}

/** Never waits: who holds an order may be waiting for this destination's row. */
async function lockOrders(
  s: string,
  tx: Executor,
  due: readonly Candidate[],
): Promise<ReadonlyMap<string, OrderRow>> {
  const ids = due.flatMap(({ orderId, whileStates, standing, blocked }) =>
    orderId === null || whileStates === null || standing.uncertain || blocked ? [] : [orderId],
  )
  if (ids.length === 0) return new Map()
  const rows = await tx.query<OrderRow>({
    text: `select order_id, workflow, state from ${s}orders where order_id = any ($1::text[])
      order by order_id for no key update skip locked`,
    repeated: true,
    values: [[...new Set(ids)]],
  })
  return new Map(rows.map((row) => [row.order_id, row]))
}
