/**
 * What an operator wants to know first: how much is in which state, how old the oldest of it is, and
 * what is late. Counts only; every query stays within a second at a million events.
 */
import type { Database } from '../postgres/executor.ts'
import { destinationStatus, type DestinationStatus } from './destinations.ts'
import { shadowStatus, type ShadowStatus } from './shadow.ts'
import { gatheringStatus, type GatheringStatus } from './looks.ts'
import { reconciliationStatus, type ReconciliationStatus } from './reconciliation.ts'
import { counted, isoTime, type Count, type IsoTime } from './row-values.ts'

/** The answer of `hookledger status`; the keys are what `--json` prints. Ages are in milliseconds. */
export interface StatusReport {
  readonly schema: string
  readonly environment: string
  readonly migration: number
  readonly events: {
    readonly total: Count
    readonly pending: Count
    readonly deferred: Count
    readonly processed: Count
    readonly ignored: Count
    readonly dead: Count
  }
  readonly pending: {
    readonly ready: Count
    /** Failed, to be tried again when due. */
    readonly delayed: Count
    /** Were in the hands of a worker that died; they run alone. */
    readonly suspects: Count
    /** Wait for an answer of their provider. */
    readonly gathering: Count
    readonly oldest_age_ms: Count | null
  }
  readonly waiting: {
    readonly events: Count
    /** Past their deadline; still woken when what they wait for comes. */
    readonly overdue: Count
    readonly next_deadline_at: IsoTime | null
  }
  readonly deliveries: {
    readonly total: Count
    /** Deliveries of events that were stored already. */
    readonly duplicates: Count
    readonly last_new_event_at: IsoTime | null
  }
  readonly orders: readonly {
    readonly workflow: string
    readonly state: string
    readonly orders: Count
  }[]
  readonly entitlements: { readonly active: Count }
  readonly findings: readonly {
    readonly class: string
    readonly kind: string
    readonly open: Count
    readonly overdue: Count
  }[]
  /** Where operations go, and what of them is not finished. */
  readonly destinations: readonly DestinationStatus[]
  /** How far the providers' own records have been looked at, and what the last passes came to. */
  readonly reconciliation: ReconciliationStatus
  /** Requests to providers for what events are decided from; null where there are none. */
  readonly gathering: GatheringStatus | null
  /** Workflows that decide and grant nothing; null where there are none. */
  readonly shadow: ShadowStatus | null
  readonly workers: {
    /** Batches in work now, each held by one worker. */
    readonly batches: Count
    /** Processes heard of in the last 30 seconds, by what they do; what nobody does is absent. */
    readonly processes: readonly { readonly role: string; readonly processes: Count }[]
    readonly oldest_batch_age_ms: Count | null
    readonly decided_last_minute: Count
  }
  /** Requests refused in the last 24 hours. */
  readonly rejections: readonly {
    readonly source: string
    readonly reason: string
    readonly times: Count
  }[]
  /** The last day for which bodies have a partition of their own. */
  readonly partitions_until: string | null
}

/** Reads the status of a schema. */
export async function status(db: Database): Promise<StatusReport> {
  const s = db.schema
  // a handful of connections are enough to overlap the big counts with the small ones
  const all = await Promise.all([
    db.query<InstallationRow>({ text: installationSql(s), values: [db.schemaName] }),
    db.query<CountsRow>({ text: countsSql(s) }),
    db.query<{ workflow: string; state: string; orders: string }>({
      text: `select workflow, state, count(*) as orders from ${s}orders group by workflow, state order by workflow, state`,
    }),
    db.query<{ class: string; kind: string; open: string; overdue: string }>({
      text: `select class, kind, count(*) as open, count(*) filter (where due_at < now()) as overdue
        from ${s}findings where state in ('open', 'repairing') group by class, kind order by class, kind`,
    }),
    db.query<{ source: string; reason: string; times: string }>({
      text: `select source, reason, sum(times)::bigint as times from ${s}rejections
        where last_at > now() - interval '24 hours' group by source, reason order by source, reason`,
    }),
    destinationStatus(db),
    reconciliationStatus(db),
    shadowStatus(db),
    gatheringStatus(db),
    processesAtWork(db),
  ])
  const [[about], [row], orders, findings, rejections, destinations, reconciliation] = all
  const [, , , , , , , shadow, gatherings, processes] = all
  if (about === undefined || row === undefined) throw new Error('a query of one row returned none')
  const ready = counted(row.ready)
  const delayed = counted(row.delayed)
  const suspects = counted(row.suspects)
  const gathering = counted(row.gathering)
  return {
    schema: db.schemaName,
    environment: about.environment,
    migration: about.migration,
    events: {
      total: counted(row.events),
      pending: ready + delayed + suspects + gathering,
      deferred: counted(row.deferred),
      processed: counted(row.processed),
      ignored: counted(row.ignored),
      dead: counted(row.dead),
    },
    pending: {
      ready,
      delayed,
      suspects,
      gathering,
      oldest_age_ms: ageOf(row.oldest_pending_ms),
    },
    waiting: {
      events: counted(row.deferred),
      overdue: counted(row.overdue),
      next_deadline_at: isoTime(row.next_deadline_at),
    },
    deliveries: {
      total: counted(row.deliveries),
      duplicates: Math.max(0, counted(row.deliveries) - counted(row.delivered)),
      last_new_event_at: isoTime(row.last_new_event_at),
    },
    orders: orders.map((each) => ({ ...each, orders: counted(each.orders) })),
    entitlements: { active: counted(row.entitled) },
    findings: findings.map((each) => ({
      ...each,
      open: counted(each.open),
      overdue: counted(each.overdue),
    })),
    destinations,
    reconciliation,
    gathering: gatherings,
    shadow,
    workers: {
      batches: counted(row.batches),
      processes,
      oldest_batch_age_ms: ageOf(row.oldest_batch_ms),
      decided_last_minute: counted(row.decided),
    },
    rejections: rejections.map((each) => ({ ...each, times: counted(each.times) })),
    partitions_until: about.partitions_until,
  }
}

interface InstallationRow {
  environment: string
  migration: number
  partitions_until: string | null
}

function installationSql(s: string): string {
  return `select i.environment, (select max(migration_id) from ${s}migrations) as migration,
    (select to_char(max(to_date(right(c.relname, 8), 'YYYYMMDD')), 'YYYY-MM-DD')
     from pg_inherits h
     join pg_class c on c.oid = h.inhrelid
     join pg_class p on p.oid = h.inhparent
     join pg_namespace n on n.oid = p.relnamespace
     where n.nspname = $1 and p.relname = 'payloads' and c.relname ~ '^payloads_\\d{8}$') as partitions_until
    from ${s}installation i`
}

type CountsRow = Record<
  | 'events'
  | 'delivered'
  | 'processed'
  | 'ready'
  | 'delayed'
  | 'suspects'
  | 'gathering'
  | 'deferred'
  | 'overdue'
  | 'ignored'
  | 'dead'
  | 'deliveries'
  | 'entitled'
  | 'batches'
  | 'decided',
  string
> & {
  oldest_pending_ms: string | null
  oldest_batch_ms: string | null
  next_deadline_at: Date | string | null
  last_new_event_at: Date | string | null
}

/** Who was heard of lately, by what they do. */
async function processesAtWork(db: Database): Promise<StatusReport['workers']['processes']> {
  const rows = await db.query<{ role: string; processes: string }>({
    text: `select r.role, count(*) as processes from ${db.schema}processes p cross join unnest(p.roles) as r(role)
      where p.seen_at > clock_timestamp() - interval '30 seconds' group by r.role order by r.role`,
  })
  return rows.map(({ role, processes }) => ({ role, processes: counted(processes) }))
}

/**
 * A ready row whose event is finished already is only waiting to be dropped: it is not counted. The
 * oldest pending event is found by its key, since keys are given in order of arrival.
 */
function countsSql(s: string): string {
  const oldest = (table: string): string =>
    `(select event_key from ${s}${table} order by event_key limit 1)`
  return `select
    (select count(*) from ${s}inbox_events) as events,
    (select count(*) from ${s}inbox_events where via = 'webhook') as delivered,
    (select count(*) from ${s}ledger_decisions where final and event_key is not null) as processed,
    (select count(*) from ${s}inbox_ready r
     where not exists (select 1 from ${s}ledger_decisions d where d.event_key = r.event_key and d.final)) as ready,
    (select count(*) from ${s}inbox_delayed) as delayed,
    (select count(*) from ${s}inbox_suspects) as suspects,
    (select count(*) from ${s}inbox_gathers where waiting) as gathering,
    (select count(*) from ${s}inbox_deferred) as deferred,
    (select count(*) from ${s}inbox_deferred where overdue) as overdue,
    (select count(*) from ${s}inbox_ignored) as ignored,
    (select count(*) from ${s}inbox_dead) as dead,
    (select count(*) from ${s}deliveries) as deliveries,
    (select count(*) from ${s}entitlements where active and (valid_until is null or valid_until > now())) as entitled,
    (select count(*) from ${s}inbox_batches) as batches,
    (select ceil(extract(epoch from clock_timestamp() - min(started_at)) * 1000)::bigint from ${s}inbox_batches) as oldest_batch_ms,
    (select count(*) from (select decided_at from ${s}ledger_decisions order by decision_id desc limit 100000) l
     where decided_at > now() - interval '1 minute') as decided,
    (select min(deadline_at) from ${s}inbox_deferred where not overdue) as next_deadline_at,
    (select received_at from ${s}inbox_events order by event_key desc limit 1) as last_new_event_at,
    (select ceil(extract(epoch from clock_timestamp() - min(e.received_at)) * 1000)::bigint from ${s}inbox_events e
     where e.event_key in (${oldest('inbox_ready')}, ${oldest('inbox_delayed')}, ${oldest('inbox_suspects')},
       (select event_key from ${s}inbox_gathers where waiting order by event_key limit 1))) as oldest_pending_ms`
}

function ageOf(milliseconds: string | null): Count | null {
  return milliseconds === null ? null : Math.max(0, counted(milliseconds))
}
