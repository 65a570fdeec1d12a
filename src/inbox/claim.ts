/**
 * Claims ready events by row locks that live as long as the transaction: no lease, no clock, no
 * zombie. A worker's scan goes round: each claim starts after the last key, so that events left behind
 * (their order is held by somebody else) do not stand in the way of those after them.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import type { EventContent, InboxEvent, SourceIdentity } from '../workflow/event.ts'

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
  | { readonly kind: 'next'; readonly after: bigint; readonly limit: number; readonly except?: readonly bigint[] }
  | { readonly kind: 'these'; readonly keys: readonly bigint[] }
  | { readonly kind: 'suspect'; readonly key?: bigint }

/** A claimed event, re-read under its lock. */
export interface ClaimedEvent {
  readonly row: ClaimedRow
  readonly event: InboxEvent
  /** True when a final decision exists: the ready row is dropped without another one. */
  readonly finished: boolean
  readonly decisionId: bigint
}

/**
 * Settings of a claiming transaction, sent together with BEGIN. The lock timeout is shorter than the
 * server's deadlock_timeout, so that a worker always yields; plans of keyed access stay what they are
 * whatever the statistics say.
 */
export function claimSetup(limits: { readonly lockTimeoutMs: number; readonly statementTimeoutMs: number }): string {
  return [
    `set local lock_timeout = ${Math.trunc(limits.lockTimeoutMs)}`,
    `set local statement_timeout = ${Math.trunc(limits.statementTimeoutMs)}`,
    `set local idle_in_transaction_session_timeout = 20000`,
    `set local enable_seqscan = off; set local enable_bitmapscan = off`,
    `set local enable_hashjoin = off; set local enable_mergejoin = off; set local jit = off`,
  ].join('; ')
}

/** Puts the planner's settings back before users' own SQL runs in the same transaction. */
export const userPlannerSetup: string =
  'set local enable_seqscan = on; set local enable_bitmapscan = on; set local enable_hashjoin = on; set local enable_mergejoin = on'

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
export async function claim(db: Database, tx: Executor, selection: Selection): Promise<ClaimedRow[]> {
  const rows = await tx.query<ReadyRow>({
    text: claimStatement(db.schema, selection.kind),
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

/** Reads a source row; names the configured source that it belongs to. */
export interface SourceLookup {
  identify(row: { readonly provider: string; readonly account: string; readonly environment: string }): {
    readonly identity: SourceIdentity
    readonly accountAllowed: boolean
  }
}

/** What reading events needs besides the database. */
export interface EventReading {
  readonly sources: SourceLookup
  /** Parses stored bytes; never throws. */
  readonly parse: (bytes: Uint8Array) => EventContent
}

interface EventRow {
  event_key: string
  source_id: number
  provider: string
  provider_account: string
  environment: string
  event_id: string
  event_type: string
  via: string
  received_at: Date | string
  occurred_at: Date | string | null
  finished: boolean
  decision_id: string
}

/** Re-reads claimed events under their locks, with their bodies and an id for each one's decision. */
export async function readClaimed(
  db: Database,
  tx: Executor,
  rows: readonly ClaimedRow[],
  reading: EventReading,
): Promise<ClaimedEvent[]> {
  const s = db.schema
  const keys = rows.map((row) => row.key.toString())
  const events = await tx.query<EventRow>({
    text: `select e.event_key, e.source_id, s.provider, s.provider_account, s.environment, e.event_id, e.event_type,
        e.via, e.received_at, e.occurred_at,
        exists (select 1 from ${s}ledger_decisions d where d.event_key = e.event_key and d.final) as finished,
        nextval(pg_get_serial_sequence('${s}ledger_decisions', 'decision_id')) as decision_id
      from unnest($1::bigint[]) as k(event_key)
      join ${s}inbox_events e on e.event_key = k.event_key
      join ${s}sources s on s.source_id = e.source_id`,
    values: [keys],
  })
  const byKey = await readBodies(db, tx, rows)
  const rowsByKey = new Map(rows.map((row) => [row.key, row]))
  return events
    .flatMap((found) => {
      const row = rowsByKey.get(BigInt(found.event_key))
      if (row === undefined) return []
      const content = contentOf(byKey.get(row.key), reading)
      return [{ row, event: eventOf(found, content, reading), finished: found.finished, decisionId: BigInt(found.decision_id) }]
    })
    .sort((a, b) => (a.row.key < b.row.key ? -1 : 1))
}

interface BodyRow {
  event_key: string
  body: Uint8Array | null
}

/** Bodies by event, in binary form; the few that are not plain UTF-8 are read again as text. */
async function readBodies(db: Database, tx: Executor, rows: readonly ClaimedRow[]): Promise<Map<bigint, Uint8Array>> {
  const days = [...new Set(rows.map((row) => row.receivedOn))]
  const read = (keys: readonly string[], binary: boolean): Promise<BodyRow[]> =>
    tx.query<BodyRow>({
      text: `select event_key::text as event_key, body from ${db.schema}claimed_payloads($1::bigint[], $2::date[])`,
      values: [keys, days],
      binary,
    })
  const found = await read(rows.map((row) => row.key.toString()), true)
  const inexact = found.filter((row) => row.body === null).map((row) => row.event_key)
  if (inexact.length > 0) found.push(...(await read(inexact, false)))
  const bodies = new Map<bigint, Uint8Array>()
  for (const { event_key: key, body } of found) if (body !== null) bodies.set(BigInt(key), body)
  return bodies
}

function contentOf(body: Uint8Array | undefined, reading: EventReading): EventContent {
  if (body === undefined) return { readable: false, reason: 'payload expired' }
  return reading.parse(body)
}

function eventOf(row: EventRow, content: EventContent, reading: EventReading): InboxEvent {
  const { identity, accountAllowed } = reading.sources.identify({
    provider: row.provider,
    account: row.provider_account,
    environment: row.environment,
  })
  return {
    key: BigInt(row.event_key),
    sourceId: row.source_id,
    source: identity,
    accountAllowed,
    eventId: row.event_id,
    eventType: row.event_type,
    receivedAt: new Date(row.received_at),
    occurredAt: row.occurred_at === null ? null : new Date(row.occurred_at),
    synthetic: row.via !== 'webhook' && row.via !== 'app',
    content,
  }
}
