/** What takes part in a comparison: it is prepared without a clock, and then runs against one. */
import type pg from 'pg'
import type { CheckoutEvent } from '../checkout-events.ts'

/** The round that a contestant runs. */
export interface Round {
  readonly url: string
  /** A pool of the size that every contestant gets. */
  readonly pool: pg.Pool
  /** A schema of this round's own, which does not exist yet; others may be named after it. */
  readonly schema: string
  readonly events: readonly CheckoutEvent[]
}

/** A contestant that has everything in its queue. */
export interface Prepared {
  /** Processes all events; the clock runs. */
  run(): Promise<void>
  /** Throws unless every event was fulfilled exactly once; then lets go of everything. */
  finish(): Promise<void>
}

/** A way of processing events. */
export interface Contestant {
  readonly name: string
  /** What was chosen for it: concurrency, batch size. */
  readonly settings: string
  prepare(round: Round): Promise<Prepared>
}

/** Runs work for every item, `width` at a time. */
export async function inParallel<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    for (let item = items[next++]; item !== undefined; item = items[next++]) await work(item)
  }
  await Promise.all(Array.from({ length: width }, lane))
}

/** @throws Error unless all were fulfilled: a contestant that loses events has no figures. */
export function expectAll(fulfilled: number, expected: number): void {
  if (fulfilled !== expected) throw new Error(`${fulfilled} of ${expected} events were fulfilled`)
}
