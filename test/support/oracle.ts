/**
 * Judges what is in the tables by queries of its own, against a history that the product cannot touch:
 * what was sent, and how it was answered. It shares no code with the engine and none with `audit`;
 * test/proofs/oracle.db.test.ts seeds every violation that it must see. The numbers are those of the
 * invariants: I for safety at any time, L once everything is quiet.
 */
import type pg from 'pg'

/** One request as its sender saw it. */
export interface SentDelivery {
  readonly account: string
  readonly environment: 'live' | 'test'
  readonly eventId: string
  /** Hex. */
  readonly sha256: string
  /** `ok`: a full 2xx was read. `fail`: certainly not accepted. `info`: either may be true. */
  readonly outcome: 'ok' | 'fail' | 'info'
}

/** An effect that an event of the provider's truth may have, and no other event. */
export interface AskedEffect {
  readonly eventId: string
  readonly orderId: string
  readonly effectType: string
  readonly reference: string
}

/** Everything known from outside. */
export interface OracleHistory {
  readonly deliveries: readonly SentDelivery[]
  /** Null where effects are not to be judged. */
  readonly effects: readonly AskedEffect[] | null
}

/** One broken invariant. */
export interface Violation {
  readonly invariant: string
  readonly key: string
}

/** What the oracle reads from: anything with the query of `pg`. */
export type OracleConnection = Pick<pg.Pool, 'connect'>

const unfinished = `(
  select event_key, 'ready' as home from hookledger.inbox_ready
  union all select event_key, 'delayed' from hookledger.inbox_delayed
  union all select event_key, 'suspect' from hookledger.inbox_suspects
  union all select event_key, 'deferred' from hookledger.inbox_deferred
  union all select event_key, 'dead' from hookledger.inbox_dead
  union all select event_key, 'ignored' from hookledger.inbox_ignored
  union all select event_key, 'gathering' from hookledger.inbox_gathers where waiting)`

const identity = `join hookledger.sources s on s.source_id = e.source_id`

/** What holds at any time. */
const safety: Readonly<Record<string, string>> = {
  I1_acked_lost: `select d.account || '/' || d.event_id from sent d
    left join (hookledger.inbox_events e ${identity}) on e.event_id = d.event_id and s.provider_account = d.account and s.environment = d.environment
    where d.outcome = 'ok' and e.event_key is null`,
  I1_acked_altered: `select d.event_id from sent d
    join (hookledger.inbox_events e ${identity}) on e.event_id = d.event_id and s.provider_account = d.account and s.environment = d.environment
    left join hookledger.payloads p on p.event_key = e.event_key
    where d.outcome = 'ok' and (encode(e.body_sha256, 'hex') <> d.sha256 or p.event_key is not null and encode(sha256(p.body), 'hex') <> d.sha256)`,
  I1_ack_without_write: `select d.event_id from (select account, environment, event_id, count(*) filter (where outcome = 'ok') as answered from sent group by 1, 2, 3) d
    join hookledger.sources s on s.provider_account = d.account and s.environment = d.environment
    where d.answered > (select count(*) from hookledger.deliveries t where t.source_id = s.source_id and t.event_id = d.event_id)`,
  I2_effect_twice: `select order_id || '/' || effect_type || '/' || effect_reference from hookledger.fulfillment_effects group by order_id, effect_type, effect_reference having count(*) > 1`,
  I2_payment_twice: `select payment_id from hookledger.ledger_payments group by source_id, payment_id having count(*) > 1`,
  I2_event_twice: `select event_id from hookledger.inbox_events group by source_id, event_id having count(*) > 1`,
  I2_decided_twice: `select event_key::text from hookledger.ledger_decisions where final group by event_key having count(*) > 1`,
  I4_forged: `select e.event_id from hookledger.inbox_events e ${identity}
    where not exists (select 1 from sent d where d.event_id = e.event_id and d.account = s.provider_account and d.environment = s.environment and d.sha256 = encode(e.body_sha256, 'hex'))`,
  I5_effect_apart: `select f.order_id || '/' || f.effect_type from hookledger.fulfillment_effects f
    left join hookledger.ledger_decisions d on d.decision_id = f.decision_id and d.order_id = f.order_id
    where d.decision_id is null or d.xid <> f.xid`,
  I5_change_without_trace: `select d.decision_id::text from hookledger.ledger_decisions d
    where d.kind in ('fulfilled', 'moved', 'reversed') and d.evidence -> 'fetch' is null
      and not exists (select 1 from hookledger.fulfillment_effects f where f.decision_id = d.decision_id)
      and not exists (select 1 from hookledger.ledger_payments p where p.decision_id = d.decision_id)`,
  I5_payment_apart: `select p.payment_id from hookledger.ledger_payments p
    left join hookledger.ledger_decisions d on d.decision_id = p.decision_id and d.order_id = p.order_id where d.decision_id is null`,
  I11_two_homes: `select e.event_key::text from hookledger.inbox_events e
    left join ${unfinished} u on u.event_key = e.event_key
    left join hookledger.ledger_decisions d on d.event_key = e.event_key and d.final
    group by e.event_key having count(u.home) + count(distinct d.decision_id) > 1`,
  I11_no_home: `select e.event_key::text from hookledger.inbox_events e
    where not exists (select 1 from ${unfinished} u where u.event_key = e.event_key)
      and not exists (select 1 from hookledger.ledger_decisions d where d.event_key = e.event_key and d.final)`,
  I11_unexplained: `select u.event_key || ' ' || u.home from ${unfinished} u
    where u.home in ('deferred', 'dead', 'ignored') and not exists (
      select 1 from hookledger.ledger_decisions d where d.event_key = u.event_key and d.kind = u.home and not d.final)`,
  I11_blank: `select decision_id::text from hookledger.ledger_decisions where btrim(reason) = '' or btrim(actor) = ''`,
  // every state is left as often as it is entered, but for where the order began and where it is
  I11_broken_chain: `select o.order_id || ' ' || v.state from hookledger.orders o
    cross join lateral (select case o.workflow when 'credits' then 'open' when 'subscriptions' then 'incomplete' when 'saas' then 'unseen' else 'pending' end as first) b
    cross join lateral (
      select m.state, sum(m.step) as over from (
        select d.from_state as state, 1 as step from hookledger.ledger_decisions d where d.order_id = o.order_id and d.from_state is not null and d.to_state is not null
        union all select d.to_state, -1 from hookledger.ledger_decisions d where d.order_id = o.order_id and d.from_state is not null and d.to_state is not null
        union all select o.state, 1 union all select b.first, -1) m group by m.state) v
    where v.over <> 0`,
  P4_entitled_unpaid: `select t.order_id || '/' || t.subject from hookledger.entitlements t
    left join hookledger.orders o on o.order_id = t.order_id
    left join hookledger.workflow_states w on w.workflow = o.workflow and w.state = o.state
    left join hookledger.ledger_decisions d on d.decision_id = t.granted_by and d.order_id = t.order_id
    where t.active and (w.entitles is not true or d.entitles is not true)`,
  P4_withheld: `select t.order_id || '/' || t.subject from hookledger.entitlements t
    join hookledger.orders o on o.order_id = t.order_id
    join hookledger.workflow_states w on w.workflow = o.workflow and w.state = o.state
    where t.stated and w.entitles and not t.active`,
  P4_changed_by_nothing: `select t.order_id || '/' || t.subject from hookledger.entitlements t
    where not exists (select 1 from hookledger.ledger_decisions d where d.decision_id = t.changed_by and d.order_id = t.order_id)`,
}

/** What only holds when every process has had the time to finish. */
const quiet: Readonly<Record<string, string>> = {
  L1_stuck: `select event_key || ' ' || home from ${unfinished} u where home in ('ready', 'delayed', 'suspect', 'gathering')`,
  L1_batch_left: `select batch_id::text from hookledger.inbox_batches`,
  L1_session_left: `select pid::text from pg_stat_activity
    where datname = current_database() and state like 'idle in transaction%' and pid <> pg_backend_pid()`,
  L1_wake_up_lost: `select w.event_key || ' ' || w.kind || ' ' || w.name from hookledger.inbox_waits w
    join hookledger.inbox_deferred d on d.event_key = w.event_key
    join hookledger.order_names n on n.source_id = w.source_id and n.kind = w.kind and n.name = w.name
    where n.order_id is not null and w.source_id <> 0`,
}

/** Against the provider's truth. */
const truth: Readonly<Record<string, string>> = {
  I3_effect_invented: `select f.order_id || '/' || f.effect_type || '/' || f.effect_reference from hookledger.fulfillment_effects f
    join hookledger.ledger_decisions d on d.decision_id = f.decision_id
    join hookledger.inbox_events e on e.event_key = d.event_key
    where not exists (select 1 from asked a where a.event_id = e.event_id and a.order_id = f.order_id and a.effect_type = f.effect_type and a.reference = f.effect_reference)`,
}

/** The violations that the tables show now. `isQuiet` after everything was given the time to finish. */
export async function findViolations(
  db: OracleConnection,
  history: OracleHistory,
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
    const checks = {
      ...safety,
      ...(isQuiet ? quiet : {}),
      ...(history.effects === null ? {} : truth),
    }
    const found: Violation[] = []
    for (const [invariant, sql] of Object.entries(checks)) {
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

async function load(client: pg.PoolClient, { deliveries, effects }: OracleHistory): Promise<void> {
  await client.query(
    `create temporary table sent (account text, environment text, event_id text, sha256 text, outcome text) on commit drop`,
  )
  await client.query(
    `create temporary table asked (event_id text, order_id text, effect_type text, reference text) on commit drop`,
  )
  await client.query(
    `insert into sent select * from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])`,
    [
      deliveries.map((each) => each.account),
      deliveries.map((each) => each.environment),
      deliveries.map((each) => each.eventId),
      deliveries.map((each) => each.sha256),
      deliveries.map((each) => each.outcome),
    ],
  )
  const asked = effects ?? []
  await client.query(
    `insert into asked select * from unnest($1::text[], $2::text[], $3::text[], $4::text[])`,
    [
      asked.map((each) => each.eventId),
      asked.map((each) => each.orderId),
      asked.map((each) => each.effectType),
      asked.map((each) => each.reference),
    ],
  )
}

/** The names of everything that is judged, for the test of the oracle itself. */
export const invariants: readonly string[] = [safety, quiet, truth].flatMap((group) =>
  Object.keys(group),
)
