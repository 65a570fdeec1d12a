/**
 * A pool without a database: every statement of the receiver is built and handed over as always, and is
 * answered at once as if all its events were new and stored. What is left of a delivery's cost is ours.
 */
import type pg from 'pg'
import type { PoolLike } from '../src/postgres/pool.ts'

/** The pool. It understands what a receiver sends: the intake statement, and the registration of sources. */
export function absentDatabase(): PoolLike {
  let lastKey = 0
  const client = {
    on: () => client,
    off: () => client,
    release: () => {},
    getTransactionStatus: () => 'I',
    query: ({ text, values = [] }: pg.QueryConfig<unknown[]>) => {
      const rows = text.includes('inbox_events') ? [storedAll(values, () => ++lastKey)] : []
      return Promise.resolve({ rows, rowCount: rows.length, command: 'SELECT' })
    },
  }
  const pool = {
    options: { max: 20 },
    on: () => pool,
    connect: () => Promise.resolve(client),
  }
  return pool as unknown as PoolLike
}

/** The sixth value names the source of each event: `{1,1,…}`, which stands for the ids as well. */
function storedAll(
  values: readonly unknown[],
  nextKey: () => number,
): { source_ids: string; event_keys: string } {
  const sources = String(values[5])
  const keys = sources
    .slice(1, -1)
    .split(',')
    .map(() => nextKey())
  return { source_ids: sources, event_keys: `{${keys.join(',')}}` }
}
