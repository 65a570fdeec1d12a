/**
 * How far the records of one kind have been gone through. A checkpoint moves by compare-and-set in the
 * commit that stores what was found: whoever loses reads it again and goes on from there.
 */
import type { Executor } from '../postgres/executor.ts'
import type { Position } from './slices.ts'

/** A checkpoint as it was read. */
export interface Checkpoint {
  readonly sourceId: number
  readonly kind: string
  /** Everything made before it has been gone through. */
  readonly through: Date
  readonly version: string
  /** The window in work; null while there is none. */
  readonly position: Position | null
  /** Where the last window ended that went as far back as a deep pass does. */
  readonly deepAt: Date | null
  /** The run that moved it last. */
  readonly runId: string | null
  /** Whether that run ended before it had compared what it saw, or is still at it. */
  readonly isUncompared: boolean
  /** Nothing earlier is gone through unless it is asked for by hand. */
  readonly installedAt: Date
}

interface CheckpointRow {
  readonly version: string
  readonly through: string
  readonly window_from: string | null
  readonly window_to: string | null
  readonly slice_from: string | null
  readonly slice_to: string | null
  readonly cursor: string | null
  readonly deep_at: string | null
  readonly run_id: string | null
  readonly uncompared: boolean
  readonly installed_at: string
}

const ms = (column: string): string =>
  `floor(extract(epoch from ${column}) * 1000)::bigint::text as ${column}`

/** Reads a checkpoint, making it where there is none: it starts when Hookledger was installed. */
export async function readCheckpoint(
  tx: Pick<Executor, 'query'>,
  schema: string,
  sourceId: number,
  kind: string,
): Promise<Checkpoint> {
  const read = async (): Promise<CheckpointRow | undefined> =>
    (
      await tx.query<CheckpointRow>({
        text: `select version::text as version, ${['through', 'window_from', 'window_to', 'slice_from', 'slice_to', 'deep_at'].map(ms).join(', ')}, cursor,
            run_id::text as run_id, run_id is not null and not exists (
              select from ${schema}reconciliation_runs r where r.run_id = c.run_id and r.compared_at is not null) as uncompared,
            (select floor(extract(epoch from created_at) * 1000)::bigint::text from ${schema}installation) as installed_at
          from ${schema}reconciliation_checkpoints c where source_id = $1 and kind = $2`,
        values: [sourceId, kind],
      })
    )[0]
  const row = (await read()) ?? (await makeCheckpoint(tx, schema, sourceId, kind).then(read))
  if (row === undefined) throw new Error('the checkpoint is gone')
  return toCheckpoint(sourceId, kind, row)
}

async function makeCheckpoint(
  tx: Pick<Executor, 'query'>,
  schema: string,
  sourceId: number,
  kind: string,
): Promise<void> {
  await tx.query({
    text: `insert into ${schema}reconciliation_checkpoints (source_id, kind, through)
      select $1, $2, created_at from ${schema}installation
      on conflict (source_id, kind) do nothing`,
    values: [sourceId, kind],
  })
}

function toCheckpoint(sourceId: number, kind: string, row: CheckpointRow): Checkpoint {
  const { window_from: from, window_to: to, slice_from: sliceFrom, slice_to: sliceTo } = row
  return {
    sourceId,
    kind,
    through: moment(row.through),
    version: row.version,
    position:
      from === null || to === null || sliceFrom === null || sliceTo === null
        ? null
        : {
            from: moment(from),
            to: moment(to),
            sliceFrom: moment(sliceFrom),
            sliceTo: moment(sliceTo),
            cursor: row.cursor,
          },
    deepAt: row.deep_at === null ? null : moment(row.deep_at),
    runId: row.run_id,
    isUncompared: row.uncompared,
    installedAt: moment(row.installed_at),
  }
}

/** Where a checkpoint moves to. */
export interface CheckpointMove {
  /** The window in work; null closes it. */
  readonly position: Position | null
  /** Raises `through` to this; it never moves back. */
  readonly through?: Date | undefined
  readonly deepAt?: Date | undefined
}

/**
 * Moves it, unless somebody else did since it was read.
 *
 * @param runId who moves it; null leaves it with whoever moved it last
 * @returns it as it is now, or null when lost
 */
export async function moveCheckpoint(
  tx: Pick<Executor, 'query'>,
  schema: string,
  read: Checkpoint,
  runId: string | null,
  { position, through, deepAt }: CheckpointMove,
): Promise<Checkpoint | null> {
  const [row] = await tx.query<{ version: string }>({
    text: `update ${schema}reconciliation_checkpoints set
        version = version + 1, run_id = coalesce($11::uuid, run_id), moved_at = now(),
        window_from = $4::timestamptz, window_to = $5::timestamptz,
        slice_from = $6::timestamptz, slice_to = $7::timestamptz, cursor = $8,
        through = greatest(through, $9::timestamptz),
        deep_at = greatest(deep_at, $10::timestamptz)
      where source_id = $1 and kind = $2 and version = $3::bigint
      returning version::text as version`,
    values: [
      read.sourceId,
      read.kind,
      read.version,
      position?.from.toISOString() ?? null,
      position?.to.toISOString() ?? null,
      position?.sliceFrom.toISOString() ?? null,
      position?.sliceTo.toISOString() ?? null,
      position?.cursor ?? null,
      through?.toISOString() ?? null,
      deepAt?.toISOString() ?? null,
      runId,
    ],
  })
  if (row === undefined) return null
  return {
    ...read,
    version: row.version,
    runId: runId ?? read.runId,
    isUncompared: true,
    position,
    through: later(read.through, through),
    deepAt: deepAt ?? read.deepAt,
  }
}

function later(a: Date, b: Date | undefined): Date {
  return b !== undefined && b > a ? b : a
}

function moment(text: string): Date {
  return new Date(Number(text))
}

/** When each account was last moved on, in any of its kinds: those that waited longest come first. */
export async function lastMoves(
  tx: Pick<Executor, 'query'>,
  schema: string,
  sourceIds: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  const rows = await tx.query<{ source_id: number; moved_ms: string }>({
    text: `select source_id, floor(extract(epoch from max(moved_at)) * 1000)::bigint::text as moved_ms
      from ${schema}reconciliation_checkpoints where source_id = any ($1::integer[])
      group by source_id`,
    values: [sourceIds],
  })
  return new Map(rows.map((row) => [row.source_id, Number(row.moved_ms)]))
}
