/**
 * Judges one case: every promise is asked of the tables by queries of the oracle's own, against what was sent, answered
 * and called as the drill itself saw it. It is asked on the heap: a broken index must not hide what it should prevent.
 */
import { ledgerChecks, type Check } from './ledger-checks.ts'
import { outboxChecks } from './outbox-checks.ts'
import type { Asked, MadeEvent, SeenHistory, Violation } from './verdict.ts'

/** The most that is told of one check. */
const mostOfOne = 5

/** What the tables show to be wrong. `isQuiet`: everything was given the time to finish. */
export async function judge(
  db: Asked,
  schema: string,
  history: SeenHistory,
  isQuiet: boolean,
): Promise<readonly Violation[]> {
  await db.query('begin isolation level repeatable read')
  try {
    await db.query(
      'set local enable_indexscan = off; set local enable_indexonlyscan = off; set local enable_bitmapscan = off',
    )
    await load(db, history)
    const found: Violation[] = []
    for (const check of [...ledgerChecks, ...outboxChecks]) {
      if (check.whenQuiet === true && !isQuiet) continue
      for (const detail of await askOne(db, schema, check))
        found.push({ fault: check.fault, promise: check.promise, detail })
    }
    return found
  } finally {
    await db.query('rollback')
  }
}

async function askOne(db: Asked, schema: string, { sql }: Check): Promise<readonly string[]> {
  const named = `"${schema.replaceAll('"', '""')}"`
  const text = sql.replaceAll('$h', named).replaceAll('$n', `'${schema.replaceAll("'", "''")}'`)
  const { rows } = await db.query(
    `select v.detail from (${text}) as v(detail) order by 1 limit ${mostOfOne}`,
  )
  return rows.map(({ detail }) => String(detail))
}

async function load(db: Asked, history: SeenHistory): Promise<void> {
  const { deliveries, calls, made, complete } = history
  await db.query(
    `create temporary table sent (event_id text, sha256 text, outcome text) on commit drop;
     create temporary table made (event_id text, must boolean, created bigint) on commit drop;
     create temporary table calls (destination text, key text, operation text, sha256 text, status integer, applied boolean) on commit drop`,
  )
  const fill = async (table: string, rows: readonly object[]): Promise<void> => {
    await db.query(
      `insert into ${table} select * from jsonb_populate_recordset(null::${table}, $1::jsonb)`,
      [JSON.stringify(rows)],
    )
  }
  await fill(
    'sent',
    deliveries.map(({ eventId, sha256, outcome }) => ({ event_id: eventId, sha256, outcome })),
  )
  await fill(
    'made',
    made.map(({ eventId, created }) => ({ event_id: eventId, must: complete, created })),
  )
  await fill(
    'calls',
    // from its second generation on a key is the operation's id, a colon and a number
    calls.map((call) => ({ ...call, operation: call.key.split(':')[0] })),
  )
}

/** Whether every event that the provider made is in the inbox. */
export async function hasArrived(
  db: Asked,
  schema: string,
  made: readonly MadeEvent[],
): Promise<boolean> {
  const h = `"${schema.replaceAll('"', '""')}"`
  const ids = made.map(({ eventId }) => eventId)
  const { rows } = await db.query(
    `select count(distinct event_id)::int as n from ${h}.inbox_events where event_id = any ($1)`,
    [ids],
  )
  return rows[0]?.['n'] === new Set(ids).size
}

/** Whether anything is still to be done: asked again and again until nothing is, or the time is over. */
export async function isQuiet(db: Asked, schema: string): Promise<boolean> {
  const h = `"${schema.replaceAll('"', '""')}"`
  const { rows } = await db.query(
    `select exists (select from ${h}.inbox_ready) or exists (select from ${h}.inbox_delayed)
      or exists (select from ${h}.inbox_suspects) or exists (select from ${h}.inbox_batches)
      or exists (select from ${h}.inbox_gathers where waiting)
      or exists (select from ${h}.outbox_operations where state in ('pending', 'sending') or state = 'uncertain' and next_attempt_at is not null) as busy`,
  )
  return rows[0]?.['busy'] === false
}
