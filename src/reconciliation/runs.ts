/**
 * The record of passes: what each went through, how far it came and why it ended. A run whose process is
 * gone does not stay `running`: whoever comes next says so.
 */
import { randomUUID } from 'node:crypto'
import type { Database } from '../postgres/executor.ts'
import type { Coverage } from './coverage.ts'
import type { PassHow, RunReport } from './pass-report.ts'

/** A run says so often that it is alive, in milliseconds. */
export const heartbeatMs = 5000
/** A run that has not said so for this long is over. */
const silentMs = 60_000

/** A run to be written down. */
export interface NewRun {
  readonly source: string
  readonly how: PassHow
  readonly actor: string
}

/** A run that was written down. */
export interface OpenedRun {
  readonly runId: string
  readonly startedAt: Date
}

/** Begins a run, whoever else is at it. */
export async function openRun(db: Database, run: NewRun): Promise<OpenedRun> {
  await endSilentRuns(db, run.source)
  const opened = await insertRun(db, run, null)
  if (opened === null) throw new Error('the run was not written down')
  return opened
}

/**
 * Begins a scheduled run where one is due: none began within `everyMs`, and none is under way. Null where
 * none is. Two that look at the same moment may both begin: that costs calls and nothing else.
 */
export async function openDueRun(
  db: Database,
  run: Omit<NewRun, 'how'>,
  { everyMs, deepEveryMs }: { readonly everyMs: number; readonly deepEveryMs: number },
): Promise<(OpenedRun & { readonly how: PassHow }) | null> {
  await endSilentRuns(db, run.source)
  const how = (await isDeepDue(db, run.source, deepEveryMs)) ? 'deep' : 'scheduled'
  const opened = await insertRun(db, { ...run, how }, everyMs)
  if (opened !== null && how === 'deep') await dropOldRuns(db, run.source)
  return opened === null ? null : { ...opened, how }
}

async function insertRun(
  db: Database,
  { source, how, actor }: NewRun,
  everyMs: number | null,
): Promise<OpenedRun | null> {
  const [row] = await db.query<{ run_id: string; started_ms: string }>({
    text: `insert into ${db.schema}reconciliation_runs (run_id, source, how, actor)
      select $1::uuid, $2, $3, $4
      where $5::bigint is null or not exists (
        select from ${db.schema}reconciliation_runs r
        where r.source = $2 and r.how <> 'range'
          and (r.state = 'running' or r.started_at > now() - $5::bigint * interval '1 millisecond'))
      returning run_id::text as run_id, floor(extract(epoch from started_at) * 1000)::bigint::text as started_ms`,
    values: [randomUUID(), source, how, actor, everyMs],
  })
  return row === undefined
    ? null
    : { runId: row.run_id, startedAt: new Date(Number(row.started_ms)) }
}

/** Deep passes are counted by the run: one that was not complete is made again. */
async function isDeepDue(db: Database, source: string, deepEveryMs: number): Promise<boolean> {
  const [row] = await db.query<{ due: boolean }>({
    text: `select not exists (
        select from ${db.schema}reconciliation_runs
        where source = $1 and how = 'deep' and state = 'complete'
          and started_at > now() - $2::bigint * interval '1 millisecond') as due`,
    values: [source, deepEveryMs],
  })
  return row?.due ?? false
}

async function endSilentRuns(db: Database, source: string): Promise<void> {
  await db.query({
    text: `update ${db.schema}reconciliation_runs set
        state = 'failed', finished_at = now(),
        error = 'its process ended before it did: the next pass went on from where it was'
      where source = $1 and state = 'running' and seen_at < now() - $2::bigint * interval '1 millisecond'`,
    values: [source, silentMs],
  })
}

/** Runs are kept for so many days. */
const keptDays = 90

/** Nobody asks for old ones; what a checkpoint names is kept, since it says how far that can be trusted. */
async function dropOldRuns(db: Database, source: string): Promise<void> {
  await db.query({
    text: `delete from ${db.schema}reconciliation_runs r
      where source = $1 and started_at < now() - $2::integer * interval '1 day' and state <> 'running'
        and not exists (select from ${db.schema}reconciliation_checkpoints c where c.run_id = r.run_id)`,
    values: [source, keptDays],
  })
}

/** What a run has come to so far. */
export interface RunCounts {
  readonly coverage: Coverage
  readonly calls: number
  readonly opened: number
  readonly closed: number
  readonly repaired: number
}

/** Says that the run is alive and how far it is. */
export async function touchRun(db: Database, runId: string, counts: RunCounts): Promise<void> {
  await db.query({
    text: `update ${db.schema}reconciliation_runs set seen_at = now(), ${countsSql}
      where run_id = $1::uuid and state = 'running'`,
    values: [runId, ...countValues(counts)],
  })
}

/** Says that both sides were compared as far as the run had come: what it had seen need not be seen again. */
export async function markCompared(db: Database, runId: string): Promise<void> {
  await db.query({
    text: `update ${db.schema}reconciliation_runs set compared_at = now() where run_id = $1::uuid`,
    values: [runId],
  })
}

/** Ends a run. */
export async function closeRun(
  db: Database,
  runId: string,
  end: Pick<RunReport, 'state' | 'error'>,
  counts: RunCounts,
): Promise<Date> {
  const [row] = await db.query<{ finished_ms: string }>({
    text: `update ${db.schema}reconciliation_runs set
        seen_at = now(), finished_at = now(), state = $7, error = $8, ${countsSql}
      where run_id = $1::uuid
      returning floor(extract(epoch from finished_at) * 1000)::bigint::text as finished_ms`,
    values: [runId, ...countValues(counts), end.state, end.error],
  })
  return new Date(Number(row?.finished_ms))
}

const countsSql = `coverage = $2::text::jsonb, calls = $3, injected = (select coalesce(sum((c.value ->> 'injected')::integer), 0)
        from jsonb_each($2::text::jsonb) c), opened = $4, closed = $5, repaired = $6`

function countValues({
  coverage,
  calls,
  opened,
  closed,
  repaired,
}: RunCounts): (string | number)[] {
  return [JSON.stringify(coverage), calls, opened, closed, repaired]
}
