/**
 * A database whose transactions carry something more: what is looked at first under a lock, and what is written
 * with the result. So an act that commits by itself can be held to what somebody saw, and its answer recorded in the
 * very commit of what it changed.
 */
import type { Database, Executor } from '../postgres/executor.ts'

/** What every transaction of a guarded database does besides. */
export interface Guards {
  /** Runs first; what it throws leaves everything as it was. */
  readonly before?: (tx: Executor) => Promise<void>
  /** Runs last, with the result; what it throws undoes all of it. */
  readonly after?: (tx: Executor, result: unknown) => Promise<void>
}

/** The database with these guards. Single statements outside of transactions are not guarded. */
export function guarded(db: Database, { before, after }: Guards): Database {
  return {
    schema: db.schema,
    schemaName: db.schemaName,
    query: (statement) => db.query(statement),
    transaction: (work, options) =>
      db.transaction(async (tx) => {
        await before?.(tx)
        const result = await work(tx)
        await after?.(tx, result)
        return result
      }, options),
  }
}
