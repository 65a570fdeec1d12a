/**
 * The transaction in which an event is decided anew: of the worker's kind, tried again for a while where somebody
 * else has the order in hand.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { HookledgerError } from '../core/errors.ts'
import type { Executor } from '../postgres/executor.ts'
import { sqlstateOf } from '../postgres/sqlstate.ts'
import { BatchOutdated, EventFailure } from './batch-failure.ts'
import { claimSetup } from './claim.ts'
import { OrderHeld } from './redecide-plan.ts'
import type { WorkContext } from './work-batch.ts'

/** Rolls a transaction back that was only to look. */
export class Undone<T> extends Error {
  readonly seen: T

  constructor(seen: T) {
    super('rolled back on purpose')
    this.seen = seen
  }
}

/** How often an order that somebody else holds is tried, and how long it is waited for in between. */
const tries = 20
const waitMs = 100

/** Runs in a transaction of the worker's kind; what is in somebody else's hands is tried again for a while. */
export async function underLock<T>(
  ctx: WorkContext,
  work: (tx: Executor) => Promise<T>,
): Promise<T> {
  for (let left = tries; ; left--) {
    try {
      return await ctx.db.transaction(work, { setup: claimSetup(ctx.limits) })
    } catch (error) {
      if (error instanceof Undone) return error.seen as T
      if (error instanceof EventFailure) throw failed(error)
      if (!isCrowded(error)) throw error
      if (left <= 1) throw inWork(error)
      await sleep(waitMs)
    }
  }
}

function isCrowded(error: unknown): boolean {
  if (error instanceof OrderHeld || error instanceof BatchOutdated) return true
  if (error instanceof HookledgerError) return error.code === 'HKL_LEDGER_CLAIM_LOST'
  return ['55P03', '40P01', '40001'].includes(sqlstateOf(error) ?? '')
}

function inWork(cause: unknown): HookledgerError {
  return new HookledgerError(
    'HKL_LEDGER_CLAIM_LOST',
    'its order is in work by somebody else: nothing was changed, try again in a moment',
    { cause },
  )
}

function failed({ cause }: EventFailure): HookledgerError {
  const why = cause instanceof Error ? cause.message : 'an error that cannot be told'
  return new HookledgerError(
    'HKL_REPAIR_IMPOSSIBLE',
    `not decided anew: the SQL of one of its effects failed: ${why}`,
    { cause },
  )
}
