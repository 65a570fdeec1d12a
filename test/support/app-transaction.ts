/** A transaction of the app's own, as its checkout has one. */
import type pg from 'pg'

/** Runs one piece of work in it: committed, or rolled back where the work throws. */
export async function appTransaction<T>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    const answer = await work(client)
    await client.query('commit')
    return answer
  } catch (error) {
    await client.query('rollback')
    throw error
  } finally {
    client.release()
  }
}
