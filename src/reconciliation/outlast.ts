/**
 * What passes by itself ends no pass: a lock in somebody's hands, a connection that is lost. A process that
 * was stopped in the middle of a transaction keeps its locks for as long as the server lets it do nothing.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { classify, sqlstateOf } from '../postgres/sqlstate.ts'

/** For so long, in milliseconds: longer than the server leaves a transaction alone that does nothing. */
export const patienceMs = 30_000
const longestPauseMs = 500

/** Runs `step` again while it fails for what passes. It must be safe to run it twice. */
export async function outlast<T>(step: () => Promise<T>): Promise<T> {
  const until = performance.now() + patienceMs
  for (let tries = 1; ; tries++) {
    try {
      return await step()
    } catch (error) {
      if (!isPassing(error) || performance.now() >= until) throw error
      await pause(tries)
    }
  }
}

/** Between two tries. */
export async function pause(tries: number): Promise<void> {
  await sleep(Math.random() * Math.min(longestPauseMs, 50 * tries))
}

/** Whether the same can be done by trying again: a lock, a lost connection, a COMMIT of unknown outcome. */
export function isPassing(error: unknown): boolean {
  if (sqlstateOf(error) !== undefined)
    return ['retry', 'reconnect', 'unknown'].includes(classify(error))
  if (!(error instanceof Error)) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return (
    /^(?:HKL_TRANSACTION_UNKNOWN|HKL_LEDGER_CLAIM_LOST|E[A-Z]+)$/.test(code) ||
    /connection|timeout/i.test(error.message)
  )
}
