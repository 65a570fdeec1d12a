/** What is in every table of a schema, to see whether something changed any of it. */
import type pg from 'pg'

/** By table: how many rows there are, and a hash of them all. */
export async function tableContents(
  pool: pg.Pool,
  { without = [] }: { readonly without?: readonly string[] } = {},
): Promise<Readonly<Record<string, string>>> {
  const { rows } = await pool.query<{ name: string }>(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname = 'hookledger' and c.relkind = 'r' and c.relname <> all ($1) order by 1`,
    [without],
  )
  const contents: Record<string, string> = {}
  for (const { name } of rows) {
    const { rows: found } = await pool.query<{ text: string }>(
      `select count(*) || ' rows ' || coalesce(md5(string_agg(t::text, e'\\n' order by t::text)), '') as text
       from hookledger."${name}" t`,
    )
    contents[name] = found[0]?.text ?? ''
  }
  return contents
}
