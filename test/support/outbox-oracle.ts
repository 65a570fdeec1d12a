/**
 * Judges the outbox by queries of its own, against the destinations' own logs, which the product cannot
 * touch. It shares no code with the engine and none with `audit`; test/proofs/outbox-oracle.db.test.ts
 * seeds every violation that it must see. I and P hold at any time, L once everything is quiet.
 */
import type pg from 'pg'
import type { DestinationLog } from './destination-log.ts'
import { operationOf } from './destination-log.ts'
import type { OracleConnection, Violation } from './oracle.ts'

/** A destination as the test knows it, whatever the product was told. */
export interface JudgedDestination {
  readonly log: DestinationLog
  /** Whether it knows a key again. */
  readonly honorsKeys: boolean
  /** Whether a request is the stored bytes, or the `body` in them. */
  readonly sends: 'request' | 'body'
  /** How long after the first call a call whose outcome is unknown may be repeated. Null: not judged. */
  readonly windowMs: number | null
}

/** Operations that every effect of a type must have. */
export interface Route {
  readonly effectType: string
  readonly destination: string
  readonly name: string
}

/** An operation that the app added in a transaction that was committed. */
export interface AddedOperation {
  readonly destination: string
  readonly key: string
}

/** Everything known from outside. */
export interface OutboxHistory {
  readonly destinations: Readonly<Record<string, JudgedDestination>>
  readonly routes: readonly Route[]
  readonly added: readonly AddedOperation[]
}

const operations = 'hookledger.outbox_operations'

const attempts = `(
  select a.*, w.outcome, w.late, w.answered_at from hookledger.outbox_attempts a
  left join hookledger.outbox_answers w on w.attempt_id = a.attempt_id)`

/** What an operator did to an operation: their word stands for what no answer says. */
const byOperator = (act: string): string =>
  `exists (select 1 from hookledger.operator_acts y where y.target = o.operation_id::text and y.act like '%${act}%')`

/** What holds at any time. */
const safety: Readonly<Record<string, string>> = {
  I6_missing: `select f.order_id || '/' || f.effect_type || '/' || f.effect_reference || ' > ' || r.destination
    from hookledger.fulfillment_effects f join routes r on r.effect_type = f.effect_type
    left join ${operations} o on o.order_id = f.order_id and o.effect_type = f.effect_type and o.effect_reference = f.effect_reference
      and o.destination = r.destination and o.name = r.name
    where o.operation_id is null`,
  I6_besides: `select o.operation_id::text from ${operations} o
    left join hookledger.fulfillment_effects f on f.order_id = o.order_id and f.effect_type = o.effect_type and f.effect_reference = o.effect_reference
    left join routes r on r.effect_type = o.effect_type and r.destination = o.destination and r.name = o.name
    where o.effect_type is not null and (f.order_id is null or r.name is null)`,
  I6_twice: `select min(o.operation_id::text) from ${operations} o where o.effect_type is not null
    group by o.order_id, o.effect_type, o.effect_reference, o.destination, o.name having count(*) > 1`,
  I6_apart: `select o.operation_id::text from ${operations} o
    join hookledger.fulfillment_effects f on f.order_id = o.order_id and f.effect_type = o.effect_type and f.effect_reference = o.effect_reference
    where o.xid <> f.xid or o.decision_id is distinct from f.decision_id`,
  I6_unlisted: `select coalesce(e.id, o.operation_id::text) from (
      select d.decision_id, l.id from hookledger.ledger_decisions d
      cross join lateral jsonb_array_elements_text(coalesce(d.evidence -> 'operations', '[]')) as l(id)) e
    full join (select * from ${operations} where effect_type is not null) o
      on o.decision_id = e.decision_id and o.operation_id::text = e.id
    where e.id is null or o.operation_id is null`,
  I6_app_missing: `select a.destination || ' ' || a.key from added a
    left join ${operations} o on o.effect_type is null and o.destination = a.destination and o.name = a.key
    where o.operation_id is null`,
  I6_app_besides: `select o.operation_id::text from ${operations} o
    left join added a on a.destination = o.destination and a.key = o.name
    where o.effect_type is null and a.key is null`,
  I7_uncommitted: `select c.destination || ' ' || c.key from calls c
    left join ${operations} o on o.operation_id::text = c.operation and o.destination = c.destination
    where o.operation_id is null`,
  // an attempt is written before its call: there are never more requests than attempts under a key
  I7_unannounced: `select c.key from calls c
    left join (select operation_id, key_generation, count(*) as made from hookledger.outbox_attempts where kind = 'call' group by 1, 2) a
      on a.operation_id::text = c.operation and a.key_generation = c.generation
    group by c.key, a.made having count(*) > coalesce(a.made, 0)`,
  I7_attempts_uncounted: `select o.operation_id::text from ${operations} o
    left join hookledger.outbox_attempts a on a.operation_id = o.operation_id
    group by o.operation_id having count(a.number) <> coalesce(max(a.number), 0) or count(a.number) <> o.attempts`,
  I8_bytes_changed: `select c.key from calls c join ${operations} o on o.operation_id::text = c.operation
    join judged j on j.destination = o.destination left join hookledger.outbox_requests r on r.operation_id = o.operation_id
    where c.sha256 <> case j.sends when 'request' then encode(o.request_sha256, 'hex')
      else encode(sha256(convert_to(convert_from(r.request, 'UTF8')::jsonb ->> 'body', 'UTF8')), 'hex') end`,
  I8_two_payloads: `select c.destination || ' ' || c.operation from calls c group by c.destination, c.operation having count(distinct c.sha256) > 1`,
  I8_stored_changed: `select o.operation_id::text from ${operations} o join hookledger.outbox_requests r on r.operation_id = o.operation_id
    where sha256(r.request) <> o.request_sha256 or octet_length(r.request) <> o.request_bytes`,
  I8_bytes_lost: `select o.operation_id::text from ${operations} o
    where o.state in ('pending', 'sending', 'uncertain', 'dead') and not exists (select 1 from hookledger.outbox_requests r where r.operation_id = o.operation_id)`,
  I8_generation_unproven: `select o.operation_id || ' ' || a.key_generation from ${operations} o
    join hookledger.outbox_attempts a on a.operation_id = o.operation_id
    where a.key_generation > 1 and not ${byOperator('retry')} and not exists (
      select 1 from ${attempts} p where p.operation_id = o.operation_id and p.number < a.number
        and p.kind = 'lookup' and p.outcome = 'absent' and p.key_generation = a.key_generation - 1)`,
  I9_false_sent: `select o.operation_id::text from ${operations} o where o.state = 'sent' and not ${byOperator('resolve')}
    and not exists (select 1 from calls c where c.operation = o.operation_id::text and c.destination = o.destination
      and c.status between 200 and 299 and c.means = 'done')
    and not (exists (select 1 from lookups l where l.operation = o.operation_id::text and l.destination = o.destination and l.means = 'done')
      and exists (select 1 from ${attempts} a where a.operation_id = o.operation_id and a.kind = 'lookup' and a.outcome = 'present'))`,
  I9_sent_without_answer: `select o.operation_id::text from ${operations} o where o.state = 'sent' and not ${byOperator('resolve')}
    and not exists (select 1 from ${attempts} a where a.operation_id = o.operation_id and a.outcome in ('sent', 'present'))`,
  I9_given_up_but_done: `select o.operation_id || ' ' || o.state from ${operations} o
    where o.state in ('canceled', 'dead') and exists (
      select 1 from calls c where c.operation = o.operation_id::text and c.destination = o.destination and c.work = 'applied')`,
  I10_applied_twice: `select c.destination || ' ' || c.operation from calls c join judged j on j.destination = c.destination
    where j.honors and c.work = 'applied' group by c.destination, c.operation having count(*) > 1`,
  I10_promise: `select o.operation_id::text from ${operations} o join judged j on j.destination = o.destination
    where (o.promise = 'once') <> j.honors`,
  // a call after one whose outcome is unknown, the first of which is longer ago than the window, with no proof in between
  P6_past_window: `select o.operation_id || ' ' || a.number from ${operations} o
    join judged j on j.destination = o.destination and j.honors and j.window_ms is not null
    join ${attempts} a on a.operation_id = o.operation_id and a.kind = 'call'
    cross join lateral (select coalesce(max(p.number), 0) as number from ${attempts} p
      where p.operation_id = o.operation_id and p.number < a.number and p.outcome = 'absent') proof
    cross join lateral (select min(p.started_at) as since from ${attempts} p
      where p.operation_id = o.operation_id and p.kind = 'call' and p.number > proof.number and p.number < a.number
        and (p.outcome is null or p.late or p.outcome = 'uncertain')) unknown
    where not ${byOperator('retry')} and a.started_at > unknown.since + j.window_ms * interval '1 millisecond'`,
  I11_canceled_unexplained: `select o.operation_id::text from ${operations} o where o.state = 'canceled' and not exists (
    select 1 from hookledger.ledger_decisions d where d.order_id = o.order_id and d.kind = 'canceled' and not d.final
      and d.evidence ->> 'operation' = o.operation_id::text)`,
}

const open = `(select * from hookledger.findings where state in ('open', 'repairing') and kind in ('operation_dead', 'operation_uncertain'))`

/** What only holds when every process has had the time to finish. */
const quiet: Readonly<Record<string, string>> = {
  L1_stuck: `select o.operation_id || ' ' || o.state from ${operations} o
    where o.state in ('pending', 'sending') or o.state = 'uncertain' and o.next_attempt_at is not null`,
  L1_nobody_asked: `select o.operation_id || ' ' || o.state from ${operations} o
    where o.state in ('dead', 'uncertain') and o.next_attempt_at is null and not exists (
      select 1 from ${open} f where f.kind = 'operation_' || o.state and f.evidence ->> 'operation' = o.operation_id::text)`,
  L1_finding_left: `select f.kind || ' ' || (f.evidence ->> 'operation') from ${open} f
    left join ${operations} o on o.operation_id::text = f.evidence ->> 'operation'
    where o.operation_id is null or f.kind <> 'operation_' || o.state`,
  L1_wake_left: `select order_id from hookledger.outbox_wakes`,
  L1_session_left: `select pid::text from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%' and pid <> pg_backend_pid()`,
}

/**
 * The violations that the tables show, asked while nothing dispatches: tables and logs must be of one time.
 * `isQuiet` after everything was given the time to finish.
 */
export async function findOutboxViolations(
  db: OracleConnection,
  history: OutboxHistory,
  isQuiet: boolean,
): Promise<readonly Violation[]> {
  const client = await db.connect()
  try {
    await client.query('begin isolation level repeatable read')
    // on the heap: a broken index must not hide what it should have prevented
    await client.query(
      'set local enable_indexscan = off; set local enable_indexonlyscan = off; set local enable_bitmapscan = off',
    )
    await load(client, history)
    const found: Violation[] = []
    for (const [invariant, sql] of Object.entries({ ...safety, ...(isQuiet ? quiet : {}) })) {
      const { rows } = await client.query<{ key: string }>(
        `select v.key from (${sql}) as v(key) order by 1 limit 20`,
      )
      found.push(...rows.map(({ key }) => ({ invariant, key })))
    }
    return found
  } finally {
    await client.query('rollback')
    client.release()
  }
}

const tables = [
  `create temporary table judged (destination text, honors boolean, sends text, window_ms bigint) on commit drop`,
  `create temporary table calls (destination text, key text, operation text, generation integer, sha256 text, work text, status integer, means text) on commit drop`,
  `create temporary table lookups (destination text, operation text, means text) on commit drop`,
  `create temporary table routes (effect_type text, destination text, name text) on commit drop`,
  `create temporary table added (destination text, key text) on commit drop`,
]

async function load(client: pg.PoolClient, history: OutboxHistory): Promise<void> {
  for (const table of tables) await client.query(table)
  const fill = async (table: string, rows: readonly object[]): Promise<void> => {
    await client.query(
      `insert into ${table} select * from jsonb_populate_recordset(null::${table}, $1::jsonb)`,
      [JSON.stringify(rows)],
    )
  }
  const destinations = Object.entries(history.destinations)
  await fill(
    'judged',
    destinations.map(([destination, { honorsKeys, sends, windowMs }]) => ({
      destination,
      honors: honorsKeys,
      sends,
      window_ms: windowMs,
    })),
  )
  for (const [destination, { log }] of destinations) {
    await fill(
      'calls',
      log.calls().map(({ key, sha256, work, answer }) => ({
        destination,
        key,
        operation: operationOf(key),
        generation: Number(key.split(':')[1] ?? '1'),
        sha256,
        work,
        status: answer?.status ?? null,
        means: answer?.means ?? null,
      })),
    )
    await fill(
      'lookups',
      log.entries.flatMap((entry) =>
        entry.kind === 'looked_up'
          ? [{ destination, operation: operationOf(entry.key), means: entry.means }]
          : [],
      ),
    )
  }
  await fill(
    'routes',
    history.routes.map(({ effectType, destination, name }) => ({
      effect_type: effectType,
      destination,
      name,
    })),
  )
  await fill('added', history.added)
}

/** The names of everything that is judged, for the test of the oracle itself. */
export const outboxInvariants: readonly string[] = [safety, quiet].flatMap((group) =>
  Object.keys(group),
)
