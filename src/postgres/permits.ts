/**
 * Keeps transactions that need a second connection from taking all of a pool: each would hold one and
 * wait for another for ever.
 */

/** How many may run at once; the others wait in the order in which they came. */
export class Permits {
  #free: number
  readonly #waiting: (() => void)[] = []

  constructor(most: number) {
    this.#free = most
  }

  /** Runs work once a permit is free, and gives the permit back. */
  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#free > 0) this.#free--
    else await new Promise<void>((resolve) => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.shift()
      if (next === undefined) this.#free++
      else next()
    }
  }
}
