/**
 * Simulated time: entries run one after the other in the order of their moments, spread over as much
 * real time as the run may take. What an entry adds later takes its place among the others.
 */
import { setTimeout as sleep } from 'node:timers/promises'

interface Entry {
  atMs: number
  sequence: number
  run: () => void | Promise<void>
}

/** How fast simulated time runs. */
export interface TimelineOptions {
  /** Milliseconds of simulated time that are planned. */
  plannedMs: number
  /** Milliseconds of real time that they take; 0 runs everything as fast as it goes. */
  spreadMs: number
  /** Ends the run at the next entry. */
  signal?: AbortSignal
}

/** A queue of moments. */
export class Timeline {
  readonly #entries: Entry[] = []
  #sequence = 0
  #nowMs = 0

  /** The moment of the entry that runs now, in milliseconds of simulated time. */
  get nowMs(): number {
    return this.#nowMs
  }

  /** Adds an entry; a moment that has passed means "as soon as possible". */
  add(atMs: number, run: () => void | Promise<void>): void {
    const entry: Entry = { atMs: Math.max(atMs, this.#nowMs), sequence: this.#sequence++, run }
    // A binary search keeps the queue sorted; moments that are equal keep their order.
    let low = 0
    let high = this.#entries.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.#entries[middle]!.atMs <= entry.atMs) low = middle + 1
      else high = middle
    }
    this.#entries.splice(low, 0, entry)
  }

  /** Runs all entries; resolves when none is left, or when the signal ends it. */
  async run(options: TimelineOptions): Promise<void> {
    const started = Date.now()
    const pace = options.spreadMs / options.plannedMs
    for (let entry = this.#entries.shift(); entry; entry = this.#entries.shift()) {
      const waitMs = started + entry.atMs * pace - Date.now()
      if (waitMs > 1) await pause(waitMs, options.signal)
      if (options.signal?.aborted) return
      this.#nowMs = entry.atMs
      await entry.run()
    }
  }
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, signal ? { signal } : {})
  } catch (error) {
    if (!signal?.aborted) throw error
  }
}

/** Waits for the work, at the longest until the signal ends the run. */
export async function untilAborted(
  work: Promise<unknown>,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (!signal) return void (await work)
  const aborted = new Promise<void>((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
  await Promise.race([work, aborted])
}
