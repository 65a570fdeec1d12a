/** What the first page is made of: stages, findings, processes, the schema, and what to look at first. */
import type { Database } from '../postgres/executor.ts'
import type { Reference } from './reference.ts'
import { counted, requiredTime, type Count, type IsoTime } from './row-values.ts'

/** A stage that events go through, and what is not finished there. */
export interface Stage {
  readonly stage: 'inbox' | 'waiting' | 'gathering' | 'outbox' | 'findings' | 'reconciliation'
  readonly unfinished: Count
  /** Of the oldest unfinished thing; of reconciliation: of the oldest checkpoint. */
  readonly oldest_age_ms: Count | null
  readonly dead: Count
  readonly overdue: Count
  readonly uncertain: Count
}

/** The stages whose figures stand in tables of their own: inbox, waiting, gathering, findings. */
export async function readStages(db: Database): Promise<Stage[]> {
  const [row] = await db.query<Record<string, string | null>>({ text: stagesStatement(db.schema) })
  const of = (name: string): number => counted(row?.[name])
  const age = (name: string): number | null => {
    const value = row?.[name] ?? null
    return value === null ? null : Math.max(0, counted(value))
  }
  const nothing = { dead: 0, overdue: 0, uncertain: 0 }
  return [
    {
      ...nothing,
      stage: 'inbox',
      unfinished: of('ready') + of('delayed') + of('suspects'),
      oldest_age_ms: age('inbox_ms'),
      dead: of('dead'),
    },
    {
      ...nothing,
      stage: 'waiting',
      unfinished: of('deferred'),
      oldest_age_ms: age('waiting_ms'),
      overdue: of('overdue'),
    },
    { ...nothing, stage: 'gathering', unfinished: of('gathers'), oldest_age_ms: age('fetches_ms') },
    {
      ...nothing,
      stage: 'findings',
      unfinished: of('findings'),
      oldest_age_ms: age('findings_ms'),
      overdue: of('findings_overdue'),
    },
  ]
}

/** The statement, exported so that its plan can be asserted. */
export function stagesStatement(s: string): string {
  const age = (moment: string): string =>
    `ceil(extract(epoch from clock_timestamp() - ${moment}) * 1000)::bigint`
  const oldest = (...tables: string[]): string =>
    `(select ${age('min(e.received_at)')} from ${s}inbox_events e where e.event_key in (${tables
      .map((table) => `(select min(event_key) from ${s}${table})`)
      .join(', ')}))`
  return `select (select count(*) from ${s}inbox_ready) as ready,
    (select count(*) from ${s}inbox_delayed) as delayed,
    (select count(*) from ${s}inbox_suspects) as suspects,
    ${oldest('inbox_ready', 'inbox_delayed', 'inbox_suspects')} as inbox_ms,
    (select count(*) from ${s}inbox_dead) as dead,
    (select count(*) from ${s}inbox_deferred) as deferred,
    (select count(*) from ${s}inbox_deferred where overdue) as overdue,
    ${oldest('inbox_deferred')} as waiting_ms,
    (select count(*) from ${s}inbox_gathers where waiting) as gathers,
    (select ${age('min(asked_at)')} from ${s}fetches) as fetches_ms,
    (select count(*) from ${s}findings where state in ('open', 'repairing')) as findings,
    (select count(*) from ${s}findings where state in ('open', 'repairing') and due_at < now()) as findings_overdue,
    (select ${age('min(first_seen_at)')} from ${s}findings where state in ('open', 'repairing')) as findings_ms`
}

/** Open findings. */
export interface FindingCounts {
  readonly open: Count
  readonly overdue: Count
  /** End by themselves. */
  readonly lag: Count
  /** A person decides. */
  readonly contradiction: Count
  readonly by_kind: readonly {
    readonly class: string
    readonly kind: string
    readonly open: Count
    readonly overdue: Count
  }[]
}

/** Counts open findings by class and kind. */
export async function findingCounts(db: Database): Promise<FindingCounts> {
  const rows = await db.query<{ class: string; kind: string; open: string; overdue: string }>({
    text: `select class, kind, count(*) as open, count(*) filter (where due_at < now()) as overdue
      from ${db.schema}findings where state in ('open', 'repairing') group by class, kind order by class, kind`,
  })
  const kinds = rows.map((row) => ({
    ...row,
    open: counted(row.open),
    overdue: counted(row.overdue),
  }))
  const sum = (of: (row: (typeof kinds)[number]) => number): number =>
    kinds.reduce((total, row) => total + of(row), 0)
  return {
    open: sum((row) => row.open),
    overdue: sum((row) => row.overdue),
    lag: sum((row) => (row.class === 'lag' ? row.open : 0)),
    contradiction: sum((row) => (row.class === 'contradiction' ? row.open : 0)),
    by_kind: kinds,
  }
}

/** A process that was heard of lately. */
export interface ProcessView {
  readonly process_id: string
  readonly host: string
  readonly pid: Count
  readonly roles: readonly string[]
  readonly version: string
  readonly started_at: IsoTime
  readonly seen_at: IsoTime
  /** Heard of in the last 30 seconds. */
  readonly alive: boolean
}

/** The processes of the last hour, those at work first. */
export async function processesHeardOf(db: Database): Promise<ProcessView[]> {
  const rows = await db.query<
    Omit<ProcessView, 'started_at' | 'seen_at'> & Record<'started_at' | 'seen_at', Date | string>
  >({
    text: `select process_id::text as process_id, host, pid, roles, version, started_at, seen_at,
        seen_at > clock_timestamp() - interval '30 seconds' as alive
      from ${db.schema}processes where seen_at > clock_timestamp() - interval '1 hour'
      order by alive desc, seen_at desc, process_id limit 200`,
  })
  return rows.map((row) => ({
    ...row,
    started_at: requiredTime(row.started_at),
    seen_at: requiredTime(row.seen_at),
  }))
}

/** The database's schema, against what this version knows. */
export interface SchemaFacts {
  readonly name: string
  readonly environment: string
  readonly migration: Count
  readonly newest: Count
  /** `older`: to be migrated. `newer`: a newer version has migrated it, and this one still runs on it. */
  readonly drift: 'none' | 'older' | 'newer'
  /** The last day for which bodies have a partition of their own. */
  readonly partitions_until: string | null
}

/** Reads them, with the database's clock. */
export async function schemaFacts(
  db: Database,
  newest: Count,
): Promise<{ readonly at: IsoTime; readonly facts: SchemaFacts }> {
  const s = db.schema
  const [row] = await db.query<{
    environment: string
    migration: number
    partitions_until: string | null
    at: Date | string
  }>({
    text: `select i.environment, (select max(migration_id) from ${s}migrations) as migration, clock_timestamp() as at,
        (select to_char(max(to_date(right(c.relname, 8), 'YYYYMMDD')), 'YYYY-MM-DD')
         from pg_inherits h join pg_class c on c.oid = h.inhrelid join pg_class p on p.oid = h.inhparent
         join pg_namespace n on n.oid = p.relnamespace
         where n.nspname = $1 and p.relname = 'payloads' and c.relname ~ '^payloads_\\d{8}$') as partitions_until
      from ${s}installation i`,
    values: [db.schemaName],
  })
  if (row === undefined) throw new Error('a schema without an installation')
  const { environment, migration, partitions_until } = row
  const drift = migration === newest ? 'none' : migration < newest ? 'older' : 'newer'
  const facts = { name: db.schemaName, environment, migration, newest, drift, partitions_until }
  return { at: requiredTime(row.at), facts: facts as SchemaFacts }
}

/** Refused requests of one source. */
export interface RejectionCount {
  readonly source: string
  readonly reason: string
  readonly times: Count
  readonly last_at: IsoTime
}

/** What was refused in the last 24 hours. */
export async function refusedLately(db: Database): Promise<RejectionCount[]> {
  const rows = await db.query<{
    source: string
    reason: string
    times: string
    last_at: Date | string
  }>({
    text: `select source, reason, sum(times)::bigint as times, max(last_at) as last_at from ${db.schema}rejections
      where last_at > now() - interval '24 hours' group by source, reason order by source, reason limit 200`,
  })
  return rows.map((row) => ({
    ...row,
    times: counted(row.times),
    last_at: requiredTime(row.last_at),
  }))
}

/** What to look at first, of each sort of thing; null where there is none. */
export interface FirstThings {
  readonly dead_event: Reference | null
  readonly overdue_event: Reference | null
  readonly asking_operation: Reference | null
  readonly finding: Reference | null
}

/** Finds them, each by its index. */
export async function firstThings(db: Database): Promise<FirstThings> {
  const s = db.schema
  const [row] = await db.query<Record<string, string | null>>({
    text: `with dead as (select event_key from ${s}inbox_dead order by died_at, event_key limit 1),
      overdue as (select event_key from ${s}inbox_deferred where overdue order by deadline_at, event_key limit 1),
      named as (
        select k.what, concat_ws(':', n.provider, n.provider_account, n.environment) || '/' || e.event_id as id
        from (select 'dead' as what, event_key from dead union all select 'overdue', event_key from overdue) k
        join ${s}inbox_events e on e.event_key = k.event_key join ${s}sources n on n.source_id = e.source_id)
      select (select id from named where what = 'dead') as dead_event,
        (select id from named where what = 'overdue') as overdue_event,
        (select operation_id::text from ${s}outbox_operations
          where state in ('dead', 'uncertain') and next_attempt_at is null order by sequence limit 1) as asking_operation,
        (select finding_id::text from ${s}findings where state in ('open', 'repairing')
          order by due_at < now() desc, class = 'contradiction' desc, severity = 'high' desc, due_at, finding_id limit 1) as finding`,
  })
  const refer = (kind: Reference['kind'], id: string | null | undefined): Reference | null =>
    id === null || id === undefined ? null : { kind, id }
  return {
    dead_event: refer('event', row?.['dead_event']),
    overdue_event: refer('event', row?.['overdue_event']),
    asking_operation: refer('operation', row?.['asking_operation']),
    finding: refer('finding', row?.['finding']),
  }
}
