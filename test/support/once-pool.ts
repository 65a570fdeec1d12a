/** A pool for one piece of work. */
import pg from 'pg'

/** Runs work on a pool that ends with it. */
export async function oncePool<T>(url: string, work: (pool: pg.Pool) => Promise<T>): Promise<T> {
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  pool.on('error', () => {})
  try {
    return await work(pool)
  } finally {
    await pool.end()
  }
}
