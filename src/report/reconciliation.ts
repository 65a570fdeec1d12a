/**
 * How far the providers' own records have been looked at, what the last passes came to, and which repairs
 * still wait to be verified. A handful of rows, whatever the size of inbox and ledger.
 */
import type { Database } from '../postgres/executor.ts'
import {
  counted,
  exactJson,
  isoTime,
  requiredTime,
  type Count,
  type IsoTime,
} from './row-values.ts'

/** How far the records of one kind have been looked at, in one account of a source. */
export interface CheckpointView {
  /** `provider:account:environment`. */
  readonly source: string
  readonly kind: string
  /** Everything made at the provider before it has been looked at. */
  readonly through: IsoTime
  readonly age_ms: Count
  readonly moved_at: IsoTime
  /** A window is in work: whoever comes next goes on in it. */
  readonly in_work: boolean
  readonly deep_at: IsoTime | null
}

/** One pass over one source; the keys are what `--json` prints. */
export interface RunView {
  readonly run_id: string
  readonly source: string
  /** `scheduled`, `deep`, `manual`, or `range`: a window given by hand, which moves no checkpoint. */
  readonly how: string
  readonly actor: string
  readonly state: string
  /** By kind: window, pages, records, injected, known. */
  readonly coverage: unknown
  readonly calls: Count
  readonly injected: Count
  readonly opened: Count
  readonly closed: Count
  readonly repaired: Count
  readonly error: string | null
  readonly started_at: IsoTime
  /** When it last showed that it is alive. */
  readonly seen_at: IsoTime
  readonly finished_at: IsoTime | null
}

/** Reconciliation as it stands; the keys are what `status --json` prints. */
export interface ReconciliationStatus {
  readonly checkpoints: readonly CheckpointView[]
  /** The newest run of each source, and the newest complete one where that is another. */
  readonly runs: readonly RunView[]
  readonly repairs: {
    readonly applied: Count
    /** Applied, and the provider was not asked again yet whether all agrees now. */
    readonly unverified: Count
    readonly oldest_unverified_age_ms: Count | null
  }
}

/** Reads how reconciliation stands. */
export async function reconciliationStatus(db: Database): Promise<ReconciliationStatus> {
  const s = db.schema
  const [checkpoints, runs, repairs] = await Promise.all([
    readCheckpoints(db),
    db.query<RunRow>({
      text: `with recursive sources as (
          (select source from ${s}reconciliation_runs order by source limit 1)
          union all
          select (select r.source from ${s}reconciliation_runs r where r.source > p.source order by r.source limit 1)
          from sources p where p.source is not null
        )
        select distinct on (n.source, n.started_at, n.run_id) n.* from sources p
        cross join lateral (
          (select ${runColumns} from ${s}reconciliation_runs r where r.source = p.source order by r.started_at desc limit 1)
          union all
          (select ${runColumns} from ${s}reconciliation_runs r where r.source = p.source and r.state = 'complete'
           order by r.started_at desc limit 1)) n
        where p.source is not null order by n.source, n.started_at desc, n.run_id`,
    }),
    db.query<Record<'applied' | 'unverified', string> & { oldest_ms: string | null }>({
      text: `select (select count(*) from ${s}repairs) as applied, count(*) as unverified,
          ceil(extract(epoch from clock_timestamp() - min(applied_at)) * 1000)::bigint as oldest_ms
        from ${s}repairs where verified_at is null`,
    }),
  ])
  const [counts] = repairs
  const oldest = counts?.oldest_ms ?? null
  return {
    checkpoints,
    runs: runs.map(runView),
    repairs: {
      applied: counted(counts?.applied),
      unverified: counted(counts?.unverified),
      oldest_unverified_age_ms: oldest === null ? null : Math.max(0, counted(oldest)),
    },
  }
}

async function readCheckpoints(db: Database): Promise<CheckpointView[]> {
  const s = db.schema
  const rows = await db.query<
    Omit<CheckpointView, 'through' | 'moved_at' | 'deep_at' | 'age_ms'> &
      Record<'through' | 'moved_at', Date | string> & {
        deep_at: Date | string | null
        age_ms: string
      }
  >({
    text: `select concat_ws(':', n.provider, n.provider_account, n.environment) as source, c.kind, c.through,
        ceil(extract(epoch from clock_timestamp() - c.through) * 1000)::bigint as age_ms, c.moved_at,
        c.window_from is not null as in_work, c.deep_at
      from ${s}reconciliation_checkpoints c join ${s}sources n on n.source_id = c.source_id order by 1, 2`,
  })
  return rows.map((row) => ({
    ...row,
    through: requiredTime(row.through),
    age_ms: Math.max(0, counted(row.age_ms)),
    moved_at: requiredTime(row.moved_at),
    deep_at: isoTime(row.deep_at),
  }))
}

/** A run as a row. */
export type RunRow = Omit<RunView, 'started_at' | 'seen_at' | 'finished_at' | 'coverage'> &
  Record<'started_at' | 'seen_at', Date | string> & {
    coverage: string
    finished_at: Date | string | null
  }

/** The columns of a run, of a table named `r`. */
export const runColumns: string = `r.run_id::text as run_id, r.source, r.how, r.actor, r.state, r.coverage::text as coverage, r.calls,
  r.injected, r.opened, r.closed, r.repaired, r.error, r.started_at, r.seen_at, r.finished_at`

/** A run as it is printed. */
export function runView(row: RunRow): RunView {
  return {
    ...row,
    coverage: exactJson(row.coverage),
    calls: counted(row.calls),
    injected: counted(row.injected),
    opened: counted(row.opened),
    closed: counted(row.closed),
    repaired: counted(row.repaired),
    started_at: requiredTime(row.started_at),
    seen_at: requiredTime(row.seen_at),
    finished_at: isoTime(row.finished_at),
  }
}

/** The runs that were under way at one of these moments: those that saw something then. */
export async function runsAt(db: Database, moments: readonly IsoTime[]): Promise<RunView[]> {
  if (moments.length === 0) return []
  const rows = await db.query<RunRow>({
    text: `select distinct on (r.started_at, r.run_id) ${runColumns}
      from unnest($1::timestamptz[]) as k(at)
      join ${db.schema}reconciliation_runs r on r.started_at <= k.at + interval '1 millisecond'
        and coalesce(r.finished_at, r.seen_at) >= k.at - interval '1 millisecond'
      order by r.started_at, r.run_id limit 50`,
    values: [[...new Set(moments)]],
  })
  return rows.map(runView)
}

/** A repair: what was planned, by whom and why, from which state to which. */
export interface RepairView {
  readonly repair_id: string
  readonly finding_id: string
  readonly finding_kind: string
  readonly order_id: string | null
  readonly plan: unknown
  readonly reason: string
  readonly actor: string
  readonly database_role: string
  readonly previous_state: unknown
  readonly new_state: unknown
  readonly decision_id: string | null
  readonly applied_at: IsoTime
  /** When both sides were seen to agree; null until then. */
  readonly verified_at: IsoTime | null
}

/** The repairs of an order, and those of findings, in the order in which they were applied. */
export async function repairsAbout(
  db: Database,
  about: { readonly orderId: string | null; readonly findingIds: readonly string[] },
): Promise<RepairView[]> {
  if (about.orderId === null && about.findingIds.length === 0) return []
  const s = db.schema
  const rows = await db.query<
    Omit<RepairView, 'plan' | 'previous_state' | 'new_state' | 'applied_at' | 'verified_at'> &
      Record<'plan' | 'previous_state' | 'new_state', string> & {
        applied_at: Date | string
        verified_at: Date | string | null
      }
  >({
    text: `select r.repair_id::text as repair_id, r.finding_id::text as finding_id, f.kind as finding_kind, r.order_id,
        r.plan::text as plan, r.reason, r.actor, r.database_role, r.previous_state::text as previous_state,
        r.new_state::text as new_state, r.decision_id, r.applied_at, r.verified_at
      from ${s}repairs r join ${s}findings f on f.finding_id = r.finding_id
      where r.repair_id in (
        select repair_id from ${s}repairs where order_id = $1
        union select repair_id from ${s}repairs where finding_id = any ($2::uuid[]))
      order by r.applied_at, r.repair_id`,
    values: [about.orderId, about.findingIds],
  })
  return rows.map((row) => ({
    ...row,
    plan: exactJson(row.plan),
    previous_state: exactJson(row.previous_state),
    new_state: exactJson(row.new_state),
    applied_at: requiredTime(row.applied_at),
    verified_at: isoTime(row.verified_at),
  }))
}
