/**
 * What waits for an answer, in order of its deadlines, with one timer for the oldest: a timer for each
 * request would cost every request for the sake of the few that are late.
 */

/** Something that must be answered by a moment of `performance.now()`. */
export interface Awaited {
  readonly deadline: number
}

/** A set whose members are told when they are late. Members are added in order of their deadlines. */
export class Deadlines<T extends Awaited> {
  readonly #waiting = new Set<T>()
  readonly #onLate: (late: readonly T[]) => void
  #timer: NodeJS.Timeout | undefined

  /** `onLate` is called with members whose deadline passed; it is to delete them. */
  constructor(onLate: (late: readonly T[]) => void) {
    this.#onLate = onLate
  }

  get size(): number {
    return this.#waiting.size
  }

  add(member: T): void {
    this.#waiting.add(member)
    this.#watch()
  }

  has(member: T): boolean {
    return this.#waiting.has(member)
  }

  /** False when it was deleted before. */
  delete(member: T): boolean {
    return this.#waiting.delete(member)
  }

  #watch(): void {
    if (this.#timer !== undefined) return
    const [oldest] = this.#waiting
    if (oldest === undefined) return
    const delayMs = Math.max(1, Math.ceil(oldest.deadline - performance.now()))
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#tell()
      this.#watch()
    }, delayMs)
    this.#timer.unref()
  }

  #tell(): void {
    const now = performance.now()
    const late: T[] = []
    for (const member of this.#waiting) {
      if (member.deadline > now) break
      late.push(member)
    }
    if (late.length > 0) this.#onLate(late)
  }
}
