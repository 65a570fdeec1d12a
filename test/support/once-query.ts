/** One statement on a connection of its own. */
import pg from 'pg'

/** Runs one statement (or several, in one text) and answers the rows of the last. */
export async function queryOnce<Row extends pg.QueryResultRow = pg.QueryResultRow>(
  url: string,
  text: string,
  values?: unknown[],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    const result = await client.query<Row>(text, values)
    return (Array.isArray(result) ? (result.at(-1) as typeof result) : result).rows
  } finally {
    await client.end().catch(() => {})
  }
}
