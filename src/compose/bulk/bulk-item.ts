/**
 * One target of a bulk act: done in the very commit that records its answer, as long as nobody has canceled. A
 * second process, or the same one after it was killed, finds the answer and does nothing.
 */
import { HookledgerError } from '../../core/errors.ts'
import { reach } from '../../core/failpoints.ts'
import { replayKeys, type ReplayableState, type ReplayedKeys } from '../../inbox/replay.ts'
import type { Database, Executor } from '../../postgres/executor.ts'
import { assignFinding, dismissFinding } from '../../reconciliation/finding-acts.ts'
import { guarded } from '../guarded-database.ts'
import type { HookledgerParts } from '../parts.ts'
import { repairsOf } from '../repairs.ts'
import { actsOver, lockOperation, Unchanged } from '../single-acts.ts'
import type { BulkTarget, BulkWork } from './bulk-acts.ts'

/** A bulk act that runs. */
export interface RunningBulk {
  readonly bulk_id: string
  readonly work: BulkWork
  readonly reason: string
  readonly actor: string
}

/** A target of it. */
export interface BulkItem extends BulkTarget {
  readonly number: number
}

/** Somebody else has answered it, or the act was canceled: nothing was done. */
export class Overtaken extends Error {}

/**
 * Does one. It is answered in the commit of the act; where there was nothing to commit, in one of its own.
 *
 * @throws Overtaken; Unchanged where it is in another state by now; whatever the act itself throws
 */
export async function doItem(
  parts: HookledgerParts,
  bulk: RunningBulk,
  item: BulkItem,
): Promise<void> {
  const db = parts.database()
  let isAnswered = false
  const answer = async (tx: Executor): Promise<void> => {
    await answerItem(db.schema, tx, bulk, item, done)
    isAnswered = true
  }
  await actOn(parts, bulk, item, answer)
  if (!isAnswered) await answerAlone(db, bulk, item, done)
}

const done: ItemAnswer = { state: 'done', code: null, message: null }

/** What became of a target. */
export interface ItemAnswer {
  readonly state: 'done' | 'unchanged' | 'failed'
  readonly code: string | null
  readonly message: string | null
}

/** Records an answer in a commit of its own. @throws Overtaken */
export function answerAlone(
  db: Database,
  bulk: RunningBulk,
  item: BulkItem,
  answer: ItemAnswer,
): Promise<void> {
  return db.transaction((tx) => answerItem(db.schema, tx, bulk, item, answer))
}

/** The bulk act's row is held until the commit: a cancel waits for it, and nothing is done after a cancel. */
async function answerItem(
  s: string,
  tx: Executor,
  { bulk_id: id }: RunningBulk,
  { number }: BulkItem,
  { state, code, message }: ItemAnswer,
): Promise<void> {
  await holdRunning(s, tx, id)
  const rows = await tx.query({
    text: `update ${s}bulk_items set state = $3, code = $4, message = $5, answered_at = now()
      where bulk_id = $1::uuid and number = $2 and state = 'pending' returning 1`,
    values: [id, number, state, code, message],
  })
  if (rows.length === 0) throw new Overtaken()
  await reach('B2')
}

/** @throws Overtaken where it was canceled */
async function holdRunning(s: string, tx: Executor, bulkId: string): Promise<void> {
  const running = await tx.query({
    text: `select 1 from ${s}bulk_acts where bulk_id = $1::uuid and state = 'running' for share`,
    values: [bulkId],
  })
  if (running.length === 0) throw new Overtaken()
}

/**
 * Holds a target before its act, for an act that passes over what somebody else holds: a second process waits here
 * for the first one, and goes on where that was killed.
 *
 * @throws Overtaken where it is answered
 */
async function holdItem(
  s: string,
  tx: Executor,
  { bulk_id: id }: RunningBulk,
  { number }: BulkItem,
): Promise<void> {
  await holdRunning(s, tx, id)
  const rows = await tx.query({
    text: `select 1 from ${s}bulk_items where bulk_id = $1::uuid and number = $2 and state = 'pending' for update`,
    values: [id, number],
  })
  if (rows.length === 0) throw new Overtaken()
}

type Answering = (tx: Executor) => Promise<void>

function actOn(
  parts: HookledgerParts,
  bulk: RunningBulk,
  item: BulkItem,
  answer: Answering,
): Promise<void> {
  const { work } = bulk
  switch (work.act) {
    case 'replay':
      return replay(parts, bulk, item, answer)
    case 'retry':
    case 'discard':
      return onOperation(parts, bulk, item, { act: work.act, answer })
    case 'repair':
      return repair(parts, bulk, item, { choice: work.details.choice, answer })
    case 'assign':
    case 'dismiss':
      return onFinding(parts, bulk, item, { work, answer })
  }
}

async function replay(
  parts: HookledgerParts,
  bulk: RunningBulk,
  item: BulkItem,
  answer: Answering,
): Promise<void> {
  const { target, was } = item
  const before = (tx: Executor): Promise<void> => holdItem(parts.database().schema, tx, bulk, item)
  const after = async (tx: Executor, result: unknown): Promise<void> => {
    if ((result as ReplayedKeys).replayed.length > 0) await answer(tx)
  }
  const db = guarded(parts.database(), { before, after })
  const { replayed, expired } = await replayKeys(db, was as ReplayableState, [idOf(target)], bulk)
  if (expired > 0)
    throw new HookledgerError(
      'HKL_INBOX_PAYLOAD_EXPIRED',
      'payload expired: ask the provider to send it again',
    )
  if (replayed.length === 0)
    throw new Unchanged(`it is not ${was} any more, or in a worker's hands at this moment`)
}

async function onOperation(
  parts: HookledgerParts,
  bulk: RunningBulk,
  { target, was }: BulkItem,
  { act, answer }: { readonly act: 'retry' | 'discard'; readonly answer: Answering },
): Promise<void> {
  const id = idOf(target)
  const db = parts.database()
  const before = async (tx: Executor): Promise<void> => {
    const standing = await lockOperation(db.schema, tx, id)
    if (standing !== undefined && standing.state !== was)
      throw new Unchanged(`it was ${was}, and is ${standing.state} by now`)
  }
  const acts = await actsOver(parts, guarded(db, { before, after: answer }))
  await (act === 'retry' ? acts.retry(id, bulk) : acts.discard(id, bulk))
}

async function onFinding(
  parts: HookledgerParts,
  bulk: RunningBulk,
  { target }: BulkItem,
  {
    work,
    answer,
  }: {
    readonly work: Extract<BulkWork, { readonly act: 'assign' | 'dismiss' }>
    readonly answer: Answering
  },
): Promise<void> {
  const db = parts.database()
  const id = idOf(target)
  const before = async (tx: Executor): Promise<void> => {
    const [row] = await tx.query<{ owner: string; state: string }>({
      text: `select owner, state from ${db.schema}findings where finding_id = $1::uuid for update`,
      values: [id],
    })
    if (row?.state === 'closed') throw new Unchanged('it is closed by now')
    if (work.act === 'assign' && row?.owner === work.details.owner)
      throw new Unchanged(`it is ${work.details.owner}'s already`)
  }
  const over = guarded(db, { before, after: answer })
  if (work.act === 'assign') await assignFinding(over, id, work.details.owner, bulk)
  else await dismissFinding(over, id, new Date(work.details.until), bulk)
}

/** Each plan is made as its turn comes: what it changes is what both sides say then. */
async function repair(
  parts: HookledgerParts,
  bulk: RunningBulk,
  { target }: BulkItem,
  { choice, answer }: { readonly choice: string | null; readonly answer: Answering },
): Promise<void> {
  let isDone = false
  const after = async (tx: Executor, result: unknown): Promise<void> => {
    const { kind } = (result ?? {}) as { readonly kind?: unknown }
    // the commit of the repair, and none of those that only read for it or verify it
    if (isDone || (kind !== 'applied' && kind !== 'recorded')) return
    await answer(tx)
    isDone = true
  }
  const { config, signals } = parts
  const db = guarded(parts.database(), { after })
  const repairs = await repairsOf({ db, config, signals })
  await repairs.apply(idOf(target), bulk, { choice: choice ?? undefined })
}

function idOf(target: string): string {
  return target.slice(target.indexOf(':') + 1)
}
