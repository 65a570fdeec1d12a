/** Runs a transaction again while it cannot be: the order is in other hands, or the database was not there. */
import { setTimeout as sleep } from 'node:timers/promises'
import { HookledgerError } from '../../core/errors.ts'
import { classify, sqlstateOf } from '../../postgres/sqlstate.ts'
import { OrderHeld } from './draft.ts'

/** Milliseconds after which it gives up. */
const patienceMs = 5000

/**
 * Runs until it has ended otherwise than by something that passes.
 *
 * @throws HookledgerError HKL_REPAIR_CHANGED when somebody else never let go of the order
 */
export async function patiently<T>(run: () => Promise<T>): Promise<T> {
  const until = performance.now() + patienceMs
  for (let pauseMs = 20; ; pauseMs = Math.min(200, pauseMs * 2)) {
    try {
      return await run()
    } catch (error) {
      if (!isPassing(error)) throw error
      if (performance.now() >= until) throw error instanceof OrderHeld ? held(error) : error
      await sleep(pauseMs * (0.5 + Math.random()))
    }
  }
}

function held({ orderId }: OrderHeld): HookledgerError {
  return new HookledgerError(
    'HKL_REPAIR_CHANGED',
    `order ${orderId} is being worked on by another transaction, and nothing was applied: try again`,
  )
}

function isPassing(error: unknown): boolean {
  if (error instanceof OrderHeld) return true
  if (error instanceof HookledgerError)
    return error.code === 'HKL_LEDGER_CLAIM_LOST' || error.code === 'HKL_TRANSACTION_UNKNOWN'
  const verdict = classify(error)
  return verdict === 'retry' || verdict === 'reconnect' || sqlstateOf(error) === '55P03'
}

/** Ends a run over many findings where the provider does not answer any more: each of them would wait in vain. */
export interface Patience {
  answered(): void
  /** Counts a failure. @throws what is no failure of a single finding */
  failed(error: unknown): void
  isOver(): boolean
}

/** So many in a row that could not be asked about. */
const mostUnanswered = 3

/** Patience for one run. */
export function createPatience(): Patience {
  let unanswered = 0
  return {
    answered: () => {
      unanswered = 0
    },
    failed: (error) => {
      if (!(error instanceof HookledgerError)) throw error
      unanswered = error.code === 'HKL_RECONCILE_UNAVAILABLE' ? unanswered + 1 : 0
    },
    isOver: () => unanswered >= mostUnanswered,
  }
}
