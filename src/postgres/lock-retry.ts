/**
 * Runs what needs strong locks on tables that are in use: it asks for a lock for a moment only, since
 * everybody else waits behind whoever waits, and asks again after a pause.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { sqlstateOf } from './sqlstate.ts'

/** A lock was not to be had, or somebody else was doing the same: XX000 is how that shows in catalogs. */
const passing = new Set(['55P03', '40P01', '40001', '23505', '42P06', '42P07', '42710', 'XX000'])

/** Milliseconds after which it gives up. */
const patienceMs = 120_000

/** Runs `work` until it is not in anybody's way. Throws what it threw last when it never was. */
export async function retryOnLocks<T>(
  work: () => Promise<T>,
  withinMs: number = patienceMs,
): Promise<T> {
  const until = performance.now() + withinMs
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      const state = sqlstateOf(error) ?? ''
      // a conflict of names that repeats itself is not somebody else in the act
      const again =
        passing.has(state) && (state === '55P03' || attempt < 20) && performance.now() < until
      if (!again) throw error
      await sleep(Math.min(1000, 50 * attempt) * (0.5 + Math.random()))
    }
  }
}
