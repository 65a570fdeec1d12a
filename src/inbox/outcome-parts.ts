/**
 * The inbox's part of a batch's one statement: ready rows go, and what is not finished gets the row
 * that says why. What waits for an order or a name that this batch changed becomes ready.
 */
import type { TraceContext } from '../core/tracing.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import type { Outcome } from '../workflow/outcome.ts'
import type { ClaimedRow } from './claim.ts'
import { customerName, waitedCustomers } from './customer-links.ts'
import type { SourceName } from './ledger-port.ts'

/** An event with its outcome and the ready row it came from. */
export interface Settled {
  readonly row: ClaimedRow
  readonly outcome: Outcome
  /** What wakes it, where it is deferred. */
  readonly waits: readonly SourceName[]
  /** Of the span that decided it; absent where traces are off. */
  readonly trace?: TraceContext | null
}

/** An event to be tried again. */
export interface Retried {
  readonly row: ClaimedRow
  readonly delayMs: number
  readonly error: string
}

/** What the inbox writes for one batch. */
export interface InboxWrites {
  readonly from: 'inbox_ready' | 'inbox_suspects'
  /** Every ready row that leaves the list. */
  readonly taken: readonly ClaimedRow[]
  readonly settled: readonly Settled[]
  readonly retried: readonly Retried[]
  readonly defaultDeferralMs: number
  /** Dead events that only an operator may re-arm. */
  readonly operatorOnly: ReadonlySet<bigint>
  /** Names and orders that were bound, opened or changed. */
  readonly wakes: readonly SourceName[]
  /** Null where the writes belong to no registered batch. */
  readonly batchId: string | null
}

/** The parts, in no particular order: they all see the same snapshot. */
export function inboxParts(schema: string, writes: InboxWrites): WritePart[] {
  const of = (kind: string): Settled[] =>
    writes.settled.filter((each) => each.outcome.kind === kind)
  return [
    takenPart(schema, writes),
    deferredPart(schema, of('deferred'), writes.defaultDeferralMs),
    waitsPart(schema, of('deferred')),
    ignoredPart(schema, of('ignored')),
    deadPart(schema, of('dead'), writes.operatorOnly),
    delayedPart(schema, writes.retried),
    ...wakeParts(schema, writes.wakes),
    writes.batchId === null ? null : batchPart(schema, writes.batchId),
  ].filter((part): part is WritePart => part !== null)
}

function takenPart(s: string, writes: InboxWrites): WritePart | null {
  if (writes.taken.length === 0) return null
  return {
    name: 'taken',
    sql: `taken as (delete from ${s}${writes.from} where event_key = any (:1::bigint[]) returning 1)`,
    values: [keysOf(writes.taken)],
    expected: writes.taken.length,
  }
}

function keysOf(rows: readonly ClaimedRow[]): string[] {
  return rows.map((row) => row.key.toString())
}

function deferredPart(s: string, settled: readonly Settled[], defaultMs: number): WritePart | null {
  if (settled.length === 0) return null
  // An event that waited before keeps its deadline: waiting again must not prolong it. Both this moment
  // and that of an order's change are taken under the order's lock, so that the net can compare them.
  return {
    name: 'deferred',
    sql: `deferred as (
      insert into ${s}inbox_deferred (event_key, received_on, attempts, deferred_at, deadline_at, waits_for, at_deadline, overdue)
      select event_key, received_on, attempts, clock_timestamp(), coalesce(deadline_at, now() + for_ms * interval '1 millisecond'), waits_for, at_deadline, overdue
      from unnest(:1::bigint[], :2::date[], :3::smallint[], :4::timestamptz[], :5::bigint[], :6::text[], :7::text[], :8::boolean[])
        as n(event_key, received_on, attempts, deadline_at, for_ms, waits_for, at_deadline, overdue)
      returning 1)`,
    values: [
      settled.map((each) => each.row.key.toString()),
      settled.map((each) => each.row.receivedOn),
      settled.map((each) => each.row.attempts),
      settled.map((each) => each.row.deadlineAt?.toISOString() ?? null),
      settled.map((each) => each.outcome.wait?.forMs ?? defaultMs),
      settled.map((each) => each.outcome.wait?.description ?? ''),
      settled.map((each) => each.outcome.wait?.atDeadline ?? 'finding'),
      settled.map((each) => staysOverdue(each)),
    ],
    expected: settled.length,
  }
}

/** An event whose wait was overdue before stays so; one that comes back from the dead waits anew. */
export function staysOverdue({ row }: Settled): boolean {
  return row.overdue && row.deadlineAt !== null
}

function waitsPart(s: string, settled: readonly Settled[]): WritePart | null {
  const rows = settled.flatMap((each) =>
    [...each.waits, ...waitedCustomers(each.outcome).map(customerName)].map((name) => ({
      ...name,
      key: each.row.key.toString(),
    })),
  )
  if (rows.length === 0) return null
  return {
    name: 'waits',
    sql: `waits as (
      insert into ${s}inbox_waits (kind, source_id, name, event_key)
      select distinct * from unnest(:1::text[], :2::integer[], :3::text[], :4::bigint[])
      on conflict (kind, source_id, name, event_key) do nothing returning 1)`,
    values: [
      rows.map((row) => row.kind),
      rows.map((row) => row.sourceId),
      rows.map((row) => row.value),
      rows.map((row) => row.key),
    ],
  }
}

/** Everything that wakes a deferred event: its names that are not bound yet, and every change of its order. */
export function waitedNames(
  outcome: Outcome,
  isBound: (name: SourceName) => boolean,
): SourceName[] {
  const { wait, event } = outcome
  if (wait === null) return []
  const names: SourceName[] = wait.names
    .map((name) => ({ sourceId: event.sourceId, kind: name.kind, value: name.value }))
    .filter((name) => !isBound(name))
  if (wait.orderId !== null) names.push({ sourceId: 0, kind: 'order', value: wait.orderId })
  return names
}

function ignoredPart(s: string, settled: readonly Settled[]): WritePart | null {
  if (settled.length === 0) return null
  return {
    name: 'ignored',
    sql: `ignored as (
      insert into ${s}inbox_ignored (event_key, received_on, reason, event_type)
      select * from unnest(:1::bigint[], :2::date[], :3::text[], :4::text[]) returning 1)`,
    values: [
      settled.map((each) => each.row.key.toString()),
      settled.map((each) => each.row.receivedOn),
      settled.map((each) => each.outcome.reason),
      settled.map((each) => each.outcome.event.eventType),
    ],
    expected: settled.length,
  }
}

function deadPart(
  s: string,
  settled: readonly Settled[],
  operatorOnly: ReadonlySet<bigint>,
): WritePart | null {
  if (settled.length === 0) return null
  return {
    name: 'died',
    sql: `died as (
      insert into ${s}inbox_dead (event_key, received_on, reason, attempts, rearmed_by)
      select * from unnest(:1::bigint[], :2::date[], :3::text[], :4::smallint[], :5::text[]) returning 1)`,
    values: [
      settled.map((each) => each.row.key.toString()),
      settled.map((each) => each.row.receivedOn),
      settled.map((each) => each.outcome.reason),
      settled.map((each) => Math.min(each.row.attempts + 1, 32767)),
      settled.map((each) => (operatorOnly.has(each.row.key) ? 'operator' : 'redelivery')),
    ],
    expected: settled.length,
  }
}

function delayedPart(s: string, retried: readonly Retried[]): WritePart | null {
  if (retried.length === 0) return null
  return {
    name: 'delayed',
    sql: `delayed as (
      insert into ${s}inbox_delayed (event_key, received_on, attempts, due_at, last_error, deadline_at, waits_for, overdue)
      select event_key, received_on, attempts, now() + delay_ms * interval '1 millisecond', last_error, deadline_at, waits_for, overdue
      from unnest(:1::bigint[], :2::date[], :3::smallint[], :4::bigint[], :5::text[], :6::timestamptz[], :7::text[], :8::boolean[])
        as n(event_key, received_on, attempts, delay_ms, last_error, deadline_at, waits_for, overdue)
      returning 1)`,
    values: [
      retried.map((each) => each.row.key.toString()),
      retried.map((each) => each.row.receivedOn),
      retried.map((each) => each.row.attempts + 1),
      retried.map((each) => Math.round(each.delayMs)),
      retried.map((each) => each.error),
      retried.map((each) => each.row.deadlineAt?.toISOString() ?? null),
      retried.map((each) => each.row.waitsFor),
      retried.map((each) => each.row.overdue),
    ],
    expected: retried.length,
  }
}

/**
 * Wakes what waits for names. Rows are locked sorted by event, so that two batches that wake the same
 * events cannot deadlock; deleting the row is the token: only one of them makes the event ready.
 */
export function wakeParts(s: string, names: readonly SourceName[]): WritePart[] {
  if (names.length === 0) return []
  return [
    {
      name: 'woken',
      sql: `woken_keys as materialized (
        select distinct w.event_key
        from unnest(:1::text[], :2::integer[], :3::text[]) as k(kind, source_id, name)
        join ${s}inbox_waits w on w.kind = k.kind and w.source_id = k.source_id and w.name = k.name),
      woken_locked as materialized (
        select d.event_key from ${s}inbox_deferred d
        where d.event_key in (select event_key from woken_keys) order by d.event_key for update),
      woken_deferred as (
        delete from ${s}inbox_deferred d using woken_locked l where d.event_key = l.event_key
        returning d.event_key, d.received_on, d.attempts, d.deadline_at, d.waits_for, d.overdue),
      woken_ignored_locked as materialized (
        select i.event_key from ${s}inbox_ignored i
        where i.event_key in (select event_key from woken_keys) order by i.event_key for update),
      woken_ignored as (
        delete from ${s}inbox_ignored i using woken_ignored_locked l where i.event_key = l.event_key
        returning i.event_key, i.received_on),
      woken_waits as (
        delete from ${s}inbox_waits w
        where w.event_key in (select event_key from woken_deferred union all select event_key from woken_ignored)
        returning 1),
      woken as (
        insert into ${s}inbox_ready (event_key, received_on, attempts, deadline_at, waits_for, overdue)
        select event_key, received_on, attempts, deadline_at, waits_for, overdue from (
          select event_key, received_on, attempts, deadline_at, waits_for, overdue from woken_deferred
          union all select event_key, received_on, 0::smallint, null, null, false from woken_ignored) w
        order by event_key on conflict (event_key) do nothing returning 1)`,
      values: [
        names.map((name) => name.kind),
        names.map((name) => name.sourceId),
        names.map((name) => name.value),
      ],
      atLeast: 'woken_found',
    },
    // one whose deadline passes at this moment is neither deferred nor ignored in this snapshot
    { name: 'woken_found', sql: 'woken_found as (select 1 from woken_keys)', values: [] },
  ]
}

function batchPart(s: string, batchId: string): WritePart {
  return {
    name: 'batch_done',
    sql: `batch_done as (delete from ${s}inbox_batches where batch_id = :1::uuid returning 1)`,
    values: [batchId],
    expected: 1,
  }
}
