/**
 * What the tables of mirrors must satisfy, by queries of their own, against what the provider knows: which
 * version of an object each event told of when it was first delivered. No code is shared with the engine or
 * with `audit`.
 */
import type pg from 'pg'
import type { AccessChange, OrderEnd } from './subscription-oracle.ts'

/** What was delivered: of an event, and what the object was when it came. */
export interface ToldEvent {
  readonly eventId: string
  /** The version of the object at that time; {@link goneVersion} where it was gone. */
  readonly version: number
}

/** The version of what is gone: later than any other. */
export const goneVersion = 1_000_000

/** What an answer showed: its body is `{"value": object}`. */
const answers = `(select v.evidence_id, v.order_id, v.source_id, v.object_id, v.number, v.is_late, encode(v.body_sha256, 'hex') as sha256,
    coalesce((convert_from(v.body, 'UTF8')::jsonb -> 'value' -> 'metadata' ->> 'version')::integer, ${goneVersion}) as version
  from hookledger.evidence v where v.kind <> 'event')`

/** Final decisions of events that only say "look again". */
const looks = `(select d.decision_id, d.order_id, d.kind, d.reason, d.evidence -> 'fetch' as fetch, e.event_id, e.source_id
  from hookledger.ledger_decisions d join hookledger.inbox_events e on e.event_key = d.event_key
  where d.final and e.event_type like 'customer.subscription.%' and d.kind in ('moved', 'absorbed'))`

/** What holds at any time. */
const safety: Readonly<Record<string, string>> = {
  M1_answer_older_than_its_event: `select d.event_id || ': told version ' || t.version || ', decided from ' || a.version
    from ${looks} d join told t on t.event_id = d.event_id
    join ${answers} a on a.evidence_id = (d.fetch ->> 'evidence')::bigint where a.version < t.version`,
  M2_decided_without_a_look: `select d.event_id from ${looks} d
    left join ${answers} a on a.evidence_id = (d.fetch ->> 'evidence')::bigint and a.order_id = d.order_id and a.source_id = d.source_id
      and a.number = (d.fetch ->> 'number')::bigint and a.sha256 = d.fetch ->> 'sha256'
    where a.evidence_id is null`,
  M3_late_answer_counted: `select d.event_id from ${looks} d
    join ${answers} a on a.evidence_id = (d.fetch ->> 'evidence')::bigint where a.is_late`,
  // decisions of an order stand in one chain: what they were made from is never an earlier request
  M4_went_back: `select x.event_id from (
      select d.event_id, (d.fetch ->> 'number')::bigint as number,
        max((d.fetch ->> 'number')::bigint) over (partition by d.order_id order by d.decision_id rows between unbounded preceding and 1 preceding) as before
      from ${looks} d where d.reason not like 'already decided%') x
    where x.number < x.before`,
  M5_numbers: `select l.order_id || ' ' || l.object_id from hookledger.looked_at l
    left join hookledger.evidence v on v.evidence_id = l.evidence_id
    where l.answered > 0 and (v.evidence_id is null or v.number <> l.answered or v.order_id <> l.order_id or v.object_id <> l.object_id)
      or exists (select from hookledger.evidence n where n.order_id = l.order_id and n.source_id = l.source_id and n.kind = l.kind
        and n.object_id = l.object_id and (n.number > l.answered or n.number > l.sent))`,
  M6_another_accounts_answer: `select d.event_id from ${looks} d join hookledger.orders o on o.order_id = d.order_id
    where o.source_id <> d.source_id`,
}

/** What only holds once everything had the time to finish. */
const quiet: Readonly<Record<string, string>> = {
  M7_waits_for_nobody: `select g.event_key || ' ' || g.order_id from hookledger.inbox_gathers g
    where not exists (select from hookledger.inbox_deferred d where d.event_key = g.event_key)`,
  M8_request_left: `select f.order_id || ' ' || f.object_id || ' ' || coalesce(f.last_error, '-') from hookledger.fetches f`,
}

/** The violations that the tables show now; `isQuiet` after everything had the time to finish. */
export async function mirrorViolations(
  pool: Pick<pg.Pool, 'connect'>,
  told: readonly ToldEvent[],
  isQuiet: boolean,
): Promise<string[]> {
  const client = await pool.connect()
  try {
    await client.query('begin isolation level repeatable read')
    await client.query(
      'create temporary table told (event_id text primary key, version integer) on commit drop',
    )
    await client.query('insert into told select * from unnest($1::text[], $2::integer[])', [
      told.map(({ eventId }) => eventId),
      told.map(({ version }) => version),
    ])
    await client.query('analyze told')
    const found: string[] = []
    for (const [invariant, sql] of Object.entries({ ...safety, ...(isQuiet ? quiet : {}) })) {
      const { rows } = await client.query<{ key: string }>(
        `select v.key from (${sql}) as v(key) order by 1 limit 20`,
      )
      found.push(...rows.map(({ key }) => `${invariant} ${key}`))
    }
    return found
  } finally {
    await client.query('rollback')
    client.release()
  }
}

/** The names of everything that is judged, for the test of the oracle itself. */
export const mirrorInvariants: readonly string[] = [...Object.keys(safety), ...Object.keys(quiet)]

/** Writes every change of access down from now on, in a table of its own. */
export async function traceAccess(pool: Pick<pg.Pool, 'query'>): Promise<void> {
  await pool.query(`
    create unlogged table public.access_trace (seq bigint generated always as identity, commit_id text not null,
      order_id text not null, key text not null, value text);
    create function public.trace_access() returns trigger language plpgsql as $$
    declare row record;
    begin
      row := case when tg_op = 'DELETE' then old else new end;
      insert into public.access_trace (commit_id, order_id, key, value) values (
        pg_current_xact_id()::text, row.order_id, row.subject || ' ' || row.entitlement,
        case when tg_op <> 'DELETE' and row.active
          then row.quantity || ' ' || coalesce(extract(epoch from row.valid_until)::bigint::text, '-') end);
      return null;
    end $$;
    create trigger trace_access after insert or update or delete on hookledger.entitlements
      for each row execute function public.trace_access()`)
}

/** What was written down, by order. */
export async function tracedAccess(
  pool: Pick<pg.Pool, 'query'>,
): Promise<ReadonlyMap<string, readonly AccessChange[]>> {
  const { rows } = await pool.query<AccessChange>(
    `select order_id as order, commit_id as commit, key, value from public.access_trace order by seq`,
  )
  const byOrder = new Map<string, AccessChange[]>()
  for (const row of rows) {
    const list = byOrder.get(row.order)
    if (list === undefined) byOrder.set(row.order, [row])
    else list.push(row)
  }
  return byOrder
}

/** The orders in the tables, as the oracle compares them. */
export async function actualEnds(
  pool: Pick<pg.Pool, 'query'>,
): Promise<ReadonlyMap<string, OrderEnd>> {
  const { rows } = await pool.query<{ id: string; state: string; access: object; facts: object }>(
    `select o.order_id as id, o.state,
      coalesce((select jsonb_object_agg(t.subject || ' ' || t.entitlement,
          t.quantity || ' ' || coalesce(extract(epoch from t.valid_until)::bigint::text, '-'))
        from hookledger.entitlements t where t.order_id = o.order_id and t.active), '{}') as access,
      coalesce((select jsonb_object_agg(f.effect_type || ' ' || f.effect_reference, (f.data ->> 'cents')::integer)
        from hookledger.fulfillment_effects f where f.order_id = o.order_id), '{}') as facts
    from hookledger.orders o`,
  )
  return new Map(
    rows.map(({ id, state, access, facts }) => [
      id,
      { state, access, facts } as unknown as OrderEnd,
    ]),
  )
}
