/**
 * Judges the tables that a pass and repairs leave behind: inbox, decisions, checkpoints and repairs must
 * hold together and agree with what the provider made, and a second pass may change nothing. Queries of
 * their own, which share nothing with the engine or with `audit`. The letters are those of the
 * invariants: I at any time, L when a pass has ended.
 */
import type pg from 'pg'
import type { OracleConnection, Violation } from './oracle.ts'

/** What may change when a pass over the same records runs again: nothing but how often a finding was seen. */
export async function settledState(pool: pg.Pool): Promise<ReadonlyMap<string, string>> {
  const state = new Map<string, string>()
  for (const [name, sql] of Object.entries(settled)) {
    const { rows } = await pool.query<{ row: string }>(
      `select (to_jsonb(t) ${sql.without.map((column) => `- '${column}'`).join(' ')})::text as row from hookledger.${name} t order by 1`,
    )
    state.set(name, rows.map(({ row }) => row).join('\n'))
  }
  return state
}

const settled: Readonly<Record<string, { readonly without: readonly string[] }>> = {
  inbox_events: { without: [] },
  inbox_ready: { without: [] },
  inbox_deferred: { without: [] },
  inbox_dead: { without: [] },
  inbox_ignored: { without: [] },
  ledger_decisions: { without: [] },
  ledger_payments: { without: [] },
  fulfillment_effects: { without: [] },
  entitlements: { without: [] },
  orders: { without: [] },
  order_names: { without: [] },
  outbox_operations: { without: [] },
  operator_acts: { without: [] },
  repairs: { without: [] },
  findings: { without: ['last_seen_at', 'times_seen'] },
}

/** Rows of one state that the other does not have, as `table: row`. */
export function changesBetween(
  before: ReadonlyMap<string, string>,
  after: ReadonlyMap<string, string>,
): readonly string[] {
  return [...after].flatMap(([name, text]) => {
    const known = before.get(name) ?? ''
    if (known === text) return []
    const [was, is] = [new Set(known.split('\n')), new Set(text.split('\n'))]
    return [
      ...[...is].filter((row) => !was.has(row)).map((row) => `${name} + ${row}`),
      ...[...was].filter((row) => !is.has(row)).map((row) => `${name} - ${row}`),
    ]
  })
}

/** What the provider made, as the tables must have it. */
export interface ProviderTruth {
  /** Events that its list shows, with when it made them. */
  readonly listed: readonly { readonly id: string; readonly createdAt: Date }[]
  /** Of these, the ones that were delivered. */
  readonly delivered: readonly string[]
}

const eventsHere = `hookledger.inbox_events e join hookledger.sources s on s.source_id = e.source_id and s.provider = 'stripe'`

const checks: Readonly<Record<string, string>> = {
  L2_missing: `select t.id from listed t where not exists (select 1 from ${eventsHere} where e.event_id = t.id)`,
  L2_delivered_again: `select t.id from delivered t join hookledger.inbox_events e on e.event_id = t.id where e.via = 'reconciliation'`,
  L2_injected_twice: `select e.event_id from hookledger.inbox_events e group by e.source_id, e.event_id having count(*) > 1`,
  L2_undecided: `select e.event_id from hookledger.inbox_events e where e.via in ('reconciliation', 'repair')
    and not exists (select 1 from hookledger.ledger_decisions d where d.event_key = e.event_key and (d.final or d.kind in ('ignored', 'deferred', 'dead')))`,
  I13_checkpoint_ahead: `select c.kind || ' ' || t.id from hookledger.reconciliation_checkpoints c
    join listed t on c.kind = 'event' and t.created_at < c.through
    where not exists (select 1 from ${eventsHere} where e.event_id = t.id)`,
  I13_checkpoint_beyond_now: `select kind from hookledger.reconciliation_checkpoints where through > clock_timestamp()`,
  I11_repair_unexplained: `select r.repair_id::text from hookledger.repairs r
    left join hookledger.ledger_decisions d on d.decision_id = r.decision_id
    where btrim(r.reason) = '' or btrim(r.actor) = '' or r.decision_id is not null and (d.decision_id is null or d.kind <> 'repaired' or not d.final)`,
  I11_repair_apart: `select r.repair_id::text from hookledger.repairs r join hookledger.ledger_decisions d on d.decision_id = r.decision_id where d.xid <> r.xid`,
  I11_repair_other_actor: `select r.repair_id::text from hookledger.repairs r join hookledger.ledger_decisions d on d.decision_id = r.decision_id where d.actor <> r.actor`,
  I12_decided_without_repair: `select d.decision_id::text from hookledger.ledger_decisions d
    where d.kind = 'repaired' and not exists (select 1 from hookledger.repairs r where r.decision_id = d.decision_id)`,
  I12_without_act: `select r.repair_id::text from hookledger.repairs r where r.actor not like 'rule:%'
    and not exists (select 1 from hookledger.operator_acts a where a.actor = r.actor and a.act like '%repair%' and a.target like '%' || r.finding_id::text)`,
  I12_closed_unverified: `select f.finding_id::text from hookledger.findings f join hookledger.repairs r on r.finding_id = f.finding_id
    where f.state = 'closed' group by f.finding_id having bool_and(r.verified_at is null)`,
  I12_repaired_twice: `select finding_id::text from hookledger.repairs group by finding_id, plan having count(*) > 1`,
}

/** What the tables break, once a pass (and perhaps repairs) came to its end. */
export async function reconcileViolations(
  db: OracleConnection,
  truth: ProviderTruth,
): Promise<readonly Violation[]> {
  const client = await db.connect()
  try {
    await client.query('begin isolation level repeatable read')
    await client.query(
      'set local enable_indexscan = off; set local enable_indexonlyscan = off; set local enable_bitmapscan = off',
    )
    await client.query(
      `create temporary table listed (id text, created_at timestamptz) on commit drop`,
    )
    await client.query(`create temporary table delivered (id text) on commit drop`)
    await client.query(`insert into listed select * from unnest($1::text[], $2::timestamptz[])`, [
      truth.listed.map(({ id }) => id),
      truth.listed.map(({ createdAt }) => createdAt),
    ])
    await client.query(`insert into delivered select * from unnest($1::text[])`, [truth.delivered])
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

/** The names of everything that is judged by tables, for the test of the oracle itself. */
export const reconcileInvariants: readonly string[] = Object.keys(checks)
