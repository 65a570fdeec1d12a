/** Answers that several people ask for at once are made once, and kept for a moment. */
import type { Database } from '../postgres/executor.ts'

/**
 * Makes an answer for a database, and keeps it for so many milliseconds once it is there; whoever asks meanwhile gets
 * the same.
 */
export function cached<T>(
  keepMs: number,
  make: (db: Database) => Promise<T>,
): (db: Database) => Promise<T> {
  const kept = new WeakMap<Database, { until: number; readonly answer: Promise<T> }>()
  return async (db) => {
    const known = kept.get(db)
    if (known !== undefined && performance.now() < known.until) return known.answer
    const answer = make(db)
    const entry = { until: Infinity, answer }
    kept.set(db, entry)
    try {
      const made = await answer
      entry.until = performance.now() + keepMs
      return made
    } catch (error) {
      // what failed is tried again by whoever asks next
      if (kept.get(db) === entry) kept.delete(db)
      throw error
    }
  }
}
