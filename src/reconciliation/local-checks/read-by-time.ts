/**
 * Reads rows of a span of time from tables that grow in the order of time: through their block range index,
 * whose pages come as a bitmap, and never the whole table. Everything else is looked up by its key.
 */
import type { Database, Executor, Value } from '../../postgres/executor.ts'

/** Settings of a transaction that reads so: one moment, nothing written. */
export const byTimeSetup: string = [
  'set transaction isolation level repeatable read read only',
  'set local enable_seqscan = off; set local enable_bitmapscan = on; set local enable_hashjoin = off',
  'set local enable_mergejoin = off; set local jit = off; set local max_parallel_workers_per_gather = 0',
].join('; ')

/** What is read with one fetch of the cursor. */
const fetchRows = 1000

/** Goes through the rows with a cursor, some at a time; `take` answers whether to go on. */
export async function readByTime<R extends object>(
  db: Database,
  text: string,
  values: readonly Value[],
  take: (rows: readonly R[], tx: Executor) => boolean | Promise<boolean>,
): Promise<void> {
  await db.transaction(
    async (tx) => {
      await tx.query({ text: `declare by_time no scroll cursor for ${text}`, values })
      for (;;) {
        const rows = await tx.query<R>({ text: `fetch ${fetchRows} from by_time` })
        if (rows.length === 0 || !(await take(rows, tx)) || rows.length < fetchRows) return
      }
    },
    { setup: byTimeSetup },
  )
}
