/**
 * Outcomes of requests on their way into the database. One that cannot be written stands in nobody's way: it is
 * written by itself, then as a failure of its own, and at last left to the end of its lease.
 */
import { classify, describeDatabaseError } from '../../postgres/sqlstate.ts'
import type { FinishedFetch, GatherContext } from './gather-context.ts'
import { oneOfEach, settleFetches, type SettleReport } from './settle.ts'

/** Outcomes written in one transaction at most. */
const mostAtOnce = 50
/** So often one is tried to be written by itself: what it costs to lose it is another request. */
const mostTries = 10

/** What was written. */
export interface Written {
  readonly report: SettleReport
  readonly requests: number
}

/** The outcomes of one gatherer that are not written yet. */
export class Outcomes {
  #waiting: FinishedFetch[] = []
  /** So many of them are written one by one, since something among them failed together. */
  #alone = 0
  readonly #tries = new WeakMap<FinishedFetch, number>()

  get isEmpty(): boolean {
    return this.#waiting.length === 0
  }

  add(finished: FinishedFetch): void {
    this.#waiting.push(finished)
  }

  /** Writes the next of them; null: there is none. Rejects where that fails: what then waits comes last. */
  async write(ctx: GatherContext): Promise<Written | null> {
    const isAlone = this.#alone > 0
    const [now, rest] = oneOfEach(this.#waiting, isAlone ? 1 : mostAtOnce)
    if (now.length === 0) return null
    this.#waiting = rest
    if (isAlone) this.#alone--
    try {
      return { report: await settleFetches(ctx, now), requests: now.length }
    } catch (error) {
      const [only] = now
      if (only === undefined || now.length > 1) {
        this.#alone = now.length
        // those that came meanwhile may not be of these
        this.#waiting = [...now, ...this.#waiting]
      } else this.#waiting.push(...this.#after(only, error))
      throw error
    }
  }

  /** What is left of an outcome that failed by itself. */
  #after(finished: FinishedFetch, error: unknown): readonly FinishedFetch[] {
    const tries = (this.#tries.get(finished) ?? 0) + 1
    if (tries >= mostTries) return []
    if (classify(error) !== 'poison') {
      this.#tries.set(finished, tries)
      return [finished]
    }
    if (finished.outcome.kind !== 'answered') return []
    const text = `the answer could not be written: ${describeDatabaseError(error)}`.slice(0, 300)
    const failure = { kind: 'unknown' } as const
    return [{ fetch: finished.fetch, outcome: { kind: 'failed', failure, text } }]
  }
}
