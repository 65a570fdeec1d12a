/**
 * A clock that stands still until a test moves it: for the simulated provider, for `play`, and for the times that events
 * and signatures carry. PostgreSQL keeps its own time; nothing on a database is moved by it.
 */

/** A clock. Its functions need no `this`: `createStripeDouble({ clock: clock.now, … })`. */
export interface TestClock {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** The same as a date: `play([…], { now: clock.date() })`. */
  readonly date: () => Date
  /** The same in whole seconds: `created` of an event, `timestamp` of a signature. */
  readonly seconds: () => number
  /** Moves it on by milliseconds; answers `now()`. Only forward: time that goes back is `set`. */
  readonly advance: (ms: number) => number
  /** Sets it to any moment. */
  readonly set: (to: Date) => void
}

/**
 * Makes a clock; it shows 2026-01-01 unless told otherwise.
 *
 * @example
 * const clock = createTestClock()
 * const double = createStripeDouble({ signingSecret, clock: clock.now })
 * clock.advance(31 * 86_400_000) // its events are forgotten
 */
export function createTestClock(start: Date = new Date('2026-01-01T00:00:00Z')): TestClock {
  let now = momentOf(start)
  return {
    now: () => now,
    date: () => new Date(now),
    seconds: () => Math.floor(now / 1000),
    advance(ms) {
      if (!Number.isSafeInteger(ms) || ms < 0)
        throw new Error(`advance takes whole milliseconds from 0, not ${ms}: to go back, use set`)
      now = momentOf(new Date(now + ms))
      return now
    },
    set(to) {
      now = momentOf(to)
    },
  }
}

function momentOf(date: Date): number {
  const ms = date.getTime()
  if (Number.isNaN(ms)) throw new Error('a clock cannot show an invalid date')
  return ms
}
