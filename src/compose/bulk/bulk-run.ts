/**
 * Runs bulk acts. Any process that serves the console may, and several at once: every target is answered in the
 * commit of its act, so that none is left out and none done twice. A target that fails is told with its code, and
 * stops no other.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { HookledgerError } from '../../core/errors.ts'
import { reach } from '../../core/failpoints.ts'
import type { Database } from '../../postgres/executor.ts'
import { classify, describeDatabaseError, sqlstateOf } from '../../postgres/sqlstate.ts'
import { createLoop, type Loop } from '../../worker/loop.ts'
import type { HookledgerParts } from '../parts.ts'
import { Unchanged } from '../single-acts.ts'
import type { BulkWork } from './bulk-acts.ts'
import { countedItems } from './bulk-views.ts'
import {
  answerAlone,
  doItem,
  Overtaken,
  type BulkItem,
  type ItemAnswer,
  type RunningBulk,
} from './bulk-item.ts'

/** So many targets are read at a time. */
const chunk = 100
/** A passing failure is tried so often; then it is the target's answer. */
const mostTries = 3

/** A loop that runs them: for a process that lives. Wake it when one was started. */
export function bulkLoop(parts: HookledgerParts): Loop {
  const loop = createLoop({
    name: 'bulk',
    minIdleMs: 1000,
    maxIdleMs: 5000,
    signals: parts.signals,
    turn: () => runBulk(parts),
  })
  loops.set(parts, loop)
  return {
    ...loop,
    async stop() {
      loops.delete(parts)
      await loop.stop()
    },
  }
}

const loops = new WeakMap<HookledgerParts, Loop>()
const runs = new WeakMap<HookledgerParts, Promise<void>>()

/**
 * Sees to it that what runs goes on: wakes the loop of this process, or runs what is left in the background where it
 * has none (a console inside an app). Never rejects.
 */
export function wakeBulk(parts: HookledgerParts): void {
  const loop = loops.get(parts)
  if (loop !== undefined) {
    loop.wake()
    return
  }
  if (runs.has(parts)) return
  const run = async (): Promise<void> => {
    try {
      while (await runBulk(parts));
    } catch (error) {
      const message = describeDatabaseError(error)
      parts.signals.emit('worker.loop.failed', { loop: 'bulk', message })
    } finally {
      runs.delete(parts)
    }
  }
  runs.set(parts, run())
}

/** One turn over everything that runs; resolves whether there may be more to do. */
export async function runBulk(parts: HookledgerParts): Promise<boolean> {
  const db = parts.database()
  const running = await db.query<RunningBulk & BulkRow>({
    text: `select bulk_id::text as bulk_id, act, filter, details, reason, actor from ${db.schema}bulk_acts
      where state = 'running' order by started_at limit 10`,
    repeated: true,
  })
  let more = false
  for (const { bulk_id, reason, actor, act, filter, details } of running) {
    const work = { act, filter, details } as unknown as BulkWork
    if (await runChunk(parts, { bulk_id, reason, actor, work })) more = true
  }
  return more
}

interface BulkRow {
  readonly act: string
  readonly filter: object
  readonly details: object
}

/** Resolves whether there was anything left: what another process has in hand is its own to end. */
async function runChunk(parts: HookledgerParts, bulk: RunningBulk): Promise<boolean> {
  const db = parts.database()
  const items = await db.query<BulkItem & object>({
    text: `select number, target, was from ${db.schema}bulk_items
      where bulk_id = $1::uuid and state = 'pending' order by number limit ${chunk}`,
    values: [bulk.bulk_id],
  })
  await reach('B0')
  for (const item of items) {
    await reach('B1')
    const isLeft = await runItem(parts, bulk, item)
    if (!isLeft) return true
    await reach('B3')
  }
  if (items.length < chunk) await finish(db, bulk.bulk_id)
  return items.length > 0
}

/** Resolves whether the act still runs. */
async function runItem(
  parts: HookledgerParts,
  bulk: RunningBulk,
  item: BulkItem,
): Promise<boolean> {
  const db = parts.database()
  for (let tries = 1; ; tries++) {
    try {
      await doItem(parts, bulk, item)
      return true
    } catch (error) {
      if (error instanceof Overtaken) return isRunning(db, bulk)
      const answer = tries < mostTries && isPassing(error) ? null : answerTo(error)
      if (answer !== null) return answered(db, bulk, item, answer)
      await sleep(100 * tries * (0.5 + Math.random()))
    }
  }
}

/** Where the database is away this throws, too: then the target is left for the next turn. */
async function answered(
  db: Database,
  bulk: RunningBulk,
  item: BulkItem,
  answer: ItemAnswer,
): Promise<boolean> {
  try {
    await answerAlone(db, bulk, item, answer)
    return true
  } catch (error) {
    if (error instanceof Overtaken) return isRunning(db, bulk)
    throw error
  }
}

async function isRunning(db: Database, { bulk_id: id }: RunningBulk): Promise<boolean> {
  const rows = await db.query({
    text: `select 1 from ${db.schema}bulk_acts where bulk_id = $1::uuid and state = 'running'`,
    values: [id],
  })
  return rows.length > 0
}

/** Whether doing the same again may go well. An unknown commit is looked up by that: its answer is in the same commit. */
function isPassing(error: unknown): boolean {
  if (error instanceof Unchanged) return false
  if (error instanceof HookledgerError) return error.code === 'HKL_TRANSACTION_UNKNOWN'
  return ['retry', 'unknown', 'unavailable', 'reconnect'].includes(classify(error))
}

/** Codes that say that there is nothing to be done any more. */
const settled: ReadonlySet<string> = new Set(['HKL_OUTBOX_NOT_OPEN', 'HKL_FINDING_NOT_OPEN'])

function answerTo(error: unknown): ItemAnswer {
  if (error instanceof Unchanged) return { state: 'unchanged', code: null, message: error.message }
  if (error instanceof HookledgerError) {
    const { code, message } = error
    return { state: settled.has(code) ? 'unchanged' : 'failed', code, message: cut(message) }
  }
  const state = sqlstateOf(error)
  if (state === '55P03' || state === '57014' || state === '40P01')
    return {
      state: 'failed',
      code: 'HKL_API_TOO_SLOW',
      message: 'something else was at work on it: do it once more, by itself',
    }
  return {
    state: 'failed',
    code: 'HKL_API_FAILED',
    message: state === undefined ? 'this failed here' : `the database refused it (${state})`,
  }
}

function cut(message: string): string {
  return message.length <= 500 ? message : `${message.slice(0, 499)}…`
}

/** It failed only where nothing of it could be done. */
async function finish(db: Database, bulkId: string): Promise<void> {
  const s = db.schema
  await db.query({
    text: `update ${s}bulk_acts u set finished_at = now(), done = i.done, unchanged = i.unchanged, failed = i.failed,
        state = case when i.failed < u.targets then 'done' else 'failed' end
      from ${s}bulk_acts b cross join lateral (${countedItems(s)}) i
      where b.bulk_id = $1::uuid and u.bulk_id = b.bulk_id and u.state = 'running'
        and i.done + i.unchanged + i.failed = u.targets`,
    values: [bulkId],
  })
}
