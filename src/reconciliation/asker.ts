/**
 * Asks a provider: never faster than its rate, never more than the budget of a pass, and again after a
 * pause where it said that it is not available. What it cannot mend it lets through.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { backoffMs } from '../core/backoff.ts'
import { RecordsError } from '../workflow/records.ts'
import { BudgetSpent, type AskedSource, type Asker } from './pass-context.ts'

/** How a source is asked. */
export interface AskerOptions {
  readonly callsPerSecond: number
  /** Calls of one pass. Lists may use four fifths of them: what is found must be asked for by reference. */
  readonly budget: number
  /** Ends waiting and asking. */
  readonly signal: AbortSignal
}

/** A call that the provider could not answer is made so many times in all. */
const tries = 5
/** What of the budget lists may use. */
const listsShare = 0.8
const firstPauseMs = 500
const longestPauseMs = 30_000
/** A provider that asks to be left alone for longer ends the pass; the next one asks again. */
const patienceMs = 60_000

/** An asker of one source for one pass. */
export function createAsker(source: AskedSource, options: AskerOptions): Asker {
  const { records } = source.source
  const { signal } = options
  const pace = createPace(options.callsPerSecond)
  let calls = 0

  const once = async <T>(ask: () => Promise<T>, share: number): Promise<T> => {
    if (calls >= options.budget * share) throw new BudgetSpent(spent(options.budget))
    calls++
    await pace.turn(signal)
    return ask()
  }
  const ask = async <T>(call: () => Promise<T>, share = 1): Promise<T> => {
    for (let failures = 1; ; failures++) {
      try {
        return await once(call, share)
      } catch (error) {
        signal.throwIfAborted()
        const waitMs = pauseMs(error, failures)
        if (waitMs === null) throw error
        await sleep(waitMs, undefined, { signal })
      }
    }
  }
  return {
    get calls() {
      return calls
    },
    list: (query) => ask(() => records.list({ ...query, signal }), listsShare),
    fetch: (reference) => ask(() => records.fetch(reference, signal)),
    async accounts() {
      const accounts = await ask(() => records.accounts(source.account, signal))
      // a source of its own account alone knows that without asking anybody
      if (accounts.length < 2) calls--
      return accounts
    },
    async endpoints() {
      const { endpoints } = records
      return endpoints === undefined ? undefined : ask(() => endpoints(source.account, signal))
    },
  }
}

/** How long to wait before the next try; null: this failure is not mended by one. */
function pauseMs(error: unknown, failures: number): number | null {
  if (!(error instanceof RecordsError) || error.trouble !== 'unavailable') return null
  if (failures >= tries) return null
  const ownMs = backoffMs(failures, Math.random(), {
    firstMs: firstPauseMs,
    maxMs: longestPauseMs,
  })
  const askedMs = error.retryAfterMs ?? 0
  return askedMs > patienceMs ? null : Math.max(ownMs, askedMs)
}

function spent(budget: number): string {
  return `the ${budget} calls of one pass are spent: the next pass goes on from here (reconcile.callsPerPass)`
}

/** Keeps calls apart: each takes the next free moment, and what was not used is not saved up. */
function createPace(perSecond: number): { turn(signal: AbortSignal): Promise<void> } {
  const gapMs = 1000 / perSecond
  let freeAt = 0
  return {
    async turn(signal) {
      const now = performance.now()
      const at = Math.max(now, freeAt)
      freeAt = at + gapMs
      // a timer is no finer than a millisecond, and a call that comes half a gap early does no harm
      if (at - now >= 1) await sleep(at - now, undefined, { signal })
    },
  }
}
