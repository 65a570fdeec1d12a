/**
 * Writes findings in the transaction of whoever found them. Rows are locked in the order of their ids, so that
 * two passes and any number of workers can write the same ones at once.
 */
import type { Database, Executor, Value } from '../postgres/executor.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import { inSlices } from './in-slices.ts'
import type { Discrepancy, FindingCounts, FindingsSql, FindingsWriter } from './ports.ts'

/** Creates the writer over the ledger's statements. */
export function createFindingsWriter(schema: string, sql: FindingsSql): FindingsWriter {
  return {
    id: (kind, source, about) => sql.id(kind, source, about),
    found: (tx, found) => writeFound(schema, sql, tx, found),
    close: (tx, ids, because) => closeFindings(schema, sql, tx, ids, because),
  }
}

/** What a repair did about a finding is verified by the same commit that closes it. */
async function closeFindings(
  schema: string,
  sql: FindingsSql,
  tx: Executor,
  ids: readonly string[],
  because: string,
): Promise<number> {
  const part = sql.closed([...new Set(ids)], because)
  if (part === null) return 0
  const closed = await rowsOf<{ finding_id: string }>(tx, part)
  await tx.query({
    text: `update ${schema}repairs set verified_at = now() where finding_id = any ($1::uuid[]) and verified_at is null`,
    values: [closed.map((row) => row.finding_id)],
  })
  return closed.length
}

/** Findings that were looked at again and that nothing was found of anew. */
export interface Rechecked {
  /** Both sides agree: why, by id. */
  readonly agreed: readonly { readonly id: string; readonly because: string }[]
  /** They still differ, as they did. */
  readonly differing: readonly string[]
}

/** Where findings are written. */
export interface WriteContext {
  readonly db: Database
  readonly findings: FindingsWriter
  readonly lockTimeoutMs: number
}

/** So many findings are written in one transaction: no lock is held for long. */
const atOnce = 100

/** Writes what was found and closes what agrees, some at a time. */
export async function writeFindings(
  { db, findings, lockTimeoutMs }: WriteContext,
  found: readonly Discrepancy[],
  { agreed, differing }: Rechecked,
): Promise<{
  readonly opened: number
  readonly openedIds: readonly string[]
  readonly closed: number
}> {
  const setup = `set local lock_timeout = ${lockTimeoutMs}`
  const openedIds: string[] = []
  let closed = 0
  for (const some of inSlices(found, atOnce))
    openedIds.push(...(await db.transaction((tx) => findings.found(tx, some), { setup })).openedIds)
  for (const [because, ids] of byReason(agreed))
    for (const some of inSlices(ids, atOnce))
      closed += await db.transaction((tx) => findings.close(tx, some, because), { setup })
  for (const some of inSlices(differing, atOnce)) await seenAgain(db, setup, some)
  return { opened: openedIds.length, openedIds, closed }
}

function byReason(agreed: Rechecked['agreed']): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>()
  for (const { id, because } of agreed) groups.set(because, [...(groups.get(because) ?? []), id])
  return groups
}

async function seenAgain(db: Database, setup: string, ids: readonly string[]): Promise<void> {
  await db.transaction(
    (tx) =>
      tx.query({
        text: `update ${db.schema}findings set last_seen_at = now(), times_seen = times_seen + 1
          where finding_id in (select finding_id from ${db.schema}findings
            where finding_id = any ($1::uuid[]) order by finding_id for update)`,
        values: [[...ids].sort()],
      }),
    { setup },
  )
}

async function writeFound(
  schema: string,
  sql: FindingsSql,
  tx: Executor,
  found: readonly Discrepancy[],
): Promise<FindingCounts> {
  const part = sql.found(found)
  if (part === null) return { opened: 0, openedIds: [], seen: 0 }
  const ids = new Set(found.map(({ draft, source }) => sql.id(draft.kind, source, draft.about)))
  const before = await tx.query<{ finding_id: string; state: string }>({
    text: `select finding_id::text as finding_id, state from ${schema}findings
      where finding_id = any ($1::uuid[]) order by finding_id for update`,
    values: [[...ids].sort()],
  })
  const earlier = new Map(before.map((row) => [row.finding_id, row.state]))
  const after = await rowsOf<{ finding_id: string; state: string; is_new: boolean }>(tx, part)
  // what was not there to be locked may have been written by somebody else meanwhile: then it is theirs
  const openedIds = after
    .filter(({ finding_id: id, state, is_new: isNew }) => {
      const before = earlier.get(id)
      return state === 'open' && (before === undefined ? isNew : !isOpen(before))
    })
    .map((row) => row.finding_id)
  return { opened: openedIds.length, openedIds, seen: after.length - openedIds.length }
}

function isOpen(state: string | undefined): boolean {
  return state === 'open' || state === 'repairing'
}

/** One part as a statement of its own, with the rows that it answers. */
async function rowsOf<R extends object>(tx: Executor, part: WritePart): Promise<R[]> {
  const values: readonly Value[] = part.values
  return tx.query<R>({
    text: `with ${part.sql.replace(/:(\d+)\b/g, (_, n: string) => `$${n}`)} select * from ${part.name}`,
    values,
  })
}
