/**
 * The row of a destination: locked while its operations are leased or settled, so that concurrency, rate
 * and breaker hold over all dispatchers, and so that they take turns for moments only.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Database, Executor, Value } from '../postgres/executor.ts'
import { keyedPlans } from '../postgres/keyed-plans.ts'
import type { DestinationFigures } from './budget.ts'
import type { Destinations } from './outbox-port.ts'
import { promiseOf, windowMsOf } from './promise.ts'

/** A dispatcher that is stopped inside its transaction holds up the others for so long, in milliseconds. */
const idleMs = 3000

/** Settings of a dispatching transaction, sent together with BEGIN. */
export function dispatchSetup(lockTimeoutMs: number): string {
  return [
    `set local idle_in_transaction_session_timeout = ${idleMs}`,
    `set local lock_timeout = ${Math.ceil(lockTimeoutMs)}`,
    keyedPlans,
  ].join('; ')
}

interface FiguresRow {
  readonly under_way: number
  readonly failures: number
  readonly closed_ms: number | null
  readonly tokens: number
  readonly refill_ms: number
}

/**
 * Locks a destination and reads its figures. What others wrote in their turn is in them, times too: whoever
 * waited for the lock finds the row changed, and then all of it is read anew.
 */
export async function lockFigures(
  schema: string,
  tx: Executor,
  name: string,
): Promise<DestinationFigures> {
  const [row] = await tx.query<FiguresRow>({
    text: `select under_way, failures, tokens,
        extract(epoch from closed_until - clock_timestamp())::double precision * 1000 as closed_ms,
        extract(epoch from clock_timestamp() - refilled_at)::double precision * 1000 as refill_ms
      from ${schema}outbox_destinations where destination = $1 for no key update`,
    repeated: true,
    values: [name],
  })
  if (row === undefined) {
    throw new HookledgerError(
      'HKL_CONFIG_UNKNOWN_NAME',
      `destination "${name}" is not registered in the database: start again`,
    )
  }
  return {
    underWay: row.under_way,
    failures: row.failures,
    closedForMs: row.closed_ms,
    tokens: row.tokens,
    sinceRefillMs: row.refill_ms,
  }
}

/** What a transaction leaves in the row. */
export interface FiguresAfter {
  readonly underWay: number
  readonly failures: number
  readonly closedForMs: number | null
  readonly tokens: number
}

/** The update of a locked destination's figures; its values follow `offset` others. */
export function figuresUpdate(schema: string, offset: number): string {
  const value = (n: number): string => `$${offset + n}`
  return `update ${schema}outbox_destinations set under_way = ${value(2)}, failures = ${value(3)},
      closed_until = clock_timestamp() + ${value(4)}::double precision * interval '1 millisecond',
      tokens = ${value(5)}, refilled_at = clock_timestamp()
    where destination = ${value(1)}`
}

/** The values of {@link figuresUpdate}. */
export function figuresValues(name: string, after: FiguresAfter): Value[] {
  return [name, after.underWay, after.failures, after.closedForMs, after.tokens]
}

/**
 * Registers what is configured; answers with warnings about operations whose destination is not. Their
 * destination may be configured elsewhere, so that they are no error here.
 */
export async function registerDestinations(
  db: Database,
  destinations: Destinations,
): Promise<readonly string[]> {
  const s = db.schema
  const rows = [...destinations].sort(([a], [b]) => (a < b ? -1 : 1))
  if (rows.length > 0) {
    await db.query({
      text: `insert into ${s}outbox_destinations as d (destination, promise, window_ms)
        select * from unnest($1::text[], $2::text[], $3::bigint[]) as n(destination, promise, window_ms) order by 1
        on conflict (destination) do update set promise = excluded.promise, window_ms = excluded.window_ms
          where d.promise <> excluded.promise or d.window_ms <> excluded.window_ms`,
      values: [
        rows.map(([name]) => name),
        rows.map(([, { contract }]) => promiseOf(contract)),
        rows.map(([, { contract }]) => windowMsOf(contract)),
      ],
    })
  }
  const unknown = await db.query<{ destination: string }>({
    text: `select d.destination from ${s}outbox_destinations d
      where d.destination <> all ($1::text[]) and exists (
        select 1 from ${s}outbox_operations o where o.destination = d.destination and o.next_attempt_at is not null)
      order by 1`,
    values: [rows.map(([name]) => name)],
  })
  return unknown.map(
    ({ destination }) =>
      `operations wait for destination "${destination}", which this configuration does not have: add it to destinations, or start what has it`,
  )
}
