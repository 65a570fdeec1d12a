/**
 * Goes through the records of one kind, page by page. A page is asked for with nothing locked, and then
 * stored in one commit with the place that the walk has come to; a page that cannot be right stores nothing.
 */
import { reach } from '../core/failpoints.ts'
import type { Executor } from '../postgres/executor.ts'
import { RecordsError, type ProviderRecord, type RecordPage } from '../workflow/records.ts'
import type { Coverage, PageCount } from './coverage.ts'
import { isPassing, outlast, patienceMs, pause } from './outlast.ts'
import {
  CheckpointLost,
  type PassContext,
  type SourceRun,
  type WalkTarget,
} from './pass-context.ts'
import { nextPosition, type Position } from './slices.ts'
import type { Track } from './track.ts'

/** What is done with the records of a page. */
export interface PageWork {
  /** Writes what was found, in the commit that moves the walk on. */
  write(tx: Executor): Promise<void>
  /** Counts, once that is committed. */
  stored(): PageCount
}

/** Prepares a page: whatever asks or reads goes before its transaction. */
export type PreparePage = (records: readonly ProviderRecord[]) => Promise<PageWork>

/** A slice whose cursor is lost begins anew so often. */
const mostRestarts = 3

/** Walks to the end. Rejects with RecordsError, BudgetSpent, the signal's reason, or a database's error. */
export async function walk(
  context: PassContext,
  run: SourceRun,
  target: WalkTarget,
  track: Track,
  coverage: Coverage,
  prepare: PreparePage,
): Promise<void> {
  const { kind, account } = target
  if (track.window !== null) coverage.begin(kind, track.window)
  let pages = 0
  let restarts = 0
  for (let at = track.position; at !== null; at = track.position) {
    run.signal.throwIfAborted()
    run.progress({ account, step: 'listing', kind, reached: at.sliceFrom, to: at.to })
    const page = await listPage(run, target, at, context.settings.pageSize)
    await reach('C1')
    if (page === null) {
      if (++restarts > mostRestarts) throw lostAgain(kind)
      pages = 0
      await store(context, track, { ...at, cursor: null }, nothing)
      continue
    }
    pages++
    const next = nextPosition(at, page.next, pages, context.settings.sliceMs)
    if (next === null) await reach('C5')
    const work = await outlast(() => prepare(page.records))
    if (!(await store(context, track, next, work))) continue
    if (next === null) await reach('C6')
    coverage.page(kind, work.stored(), page.next === null)
    if (page.next === null) pages = restarts = 0
  }
}

/** Null: the cursor is not known any more. */
async function listPage(
  { asker }: SourceRun,
  { kind, account }: WalkTarget,
  { sliceFrom: from, sliceTo: to, cursor }: Position,
  limit: number,
): Promise<RecordPage | null> {
  let page: RecordPage
  try {
    page = await asker.list({ kind, account, from, to, cursor, limit })
  } catch (error) {
    const lost = error instanceof RecordsError && error.trouble === 'cursor_lost'
    if (lost && cursor !== null) return null
    throw error
  }
  if (page.next !== null && page.next === cursor) {
    throw new RecordsError('garbage', `the list of ${kind} gave the page that it gave before`)
  }
  return page
}

const nothing: PageWork = {
  write: async () => {},
  stored: () => ({ records: 0, injected: 0, known: 0 }),
}

/** Stores a page. False: somebody else is further on, and what to ask for next has changed. */
async function store(
  { db, lockTimeoutMs }: PassContext,
  track: Track,
  next: Position | null,
  work: PageWork,
): Promise<boolean> {
  const until = performance.now() + patienceMs
  for (let tries = 1; ; tries++) {
    try {
      await db.transaction(
        async (tx) => {
          await work.write(tx)
          await reach('C2')
          await track.advance(tx, next)
          await reach('C3')
        },
        {
          setup: `set local lock_timeout = ${lockTimeoutMs}`,
          beforeCommit: async () => void (await reach('C4')),
        },
      )
      track.committed()
      return true
    } catch (error) {
      const isLost = error instanceof CheckpointLost
      if (!isLost && (!isPassing(error) || performance.now() >= until)) throw error
      if (!isLost) await pause(tries)
      const recovery = await outlast(() => track.recover())
      if (recovery !== 'again') return recovery === 'stored'
    }
  }
}

function lostAgain(kind: string): RecordsError {
  return new RecordsError(
    'garbage',
    `the cursor of the list of ${kind} was lost ${mostRestarts + 1} times in one slice: the slice is asked for again by the next pass`,
  )
}
