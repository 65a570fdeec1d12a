/**
 * Texts that strangers write, in every place that can hold one: each text column of each table is made to end in a
 * piece of markup that would run if it were ever read as markup. Equal texts become equal texts, so that ids still
 * lead where they led; what a constraint keeps to words of ours stays.
 */
import type pg from 'pg'

/** What a page would run or load if it took text for markup; each says so in `window.hostile`. */
export const hostileTexts: readonly string[] = [
  '<script>window.hostile=1</script>',
  '"><script>window.hostile=1</script>',
  '</script><script>window.hostile=1</script>',
  '<img src=x onerror=window.hostile=1>',
  '"><img src=x onerror="window.hostile=1">',
  "'><img src=x onerror='window.hostile=1'>",
  '<svg onload=window.hostile=1>',
  '<svg><script>window.hostile=1</script></svg>',
  '<svg><animate onbegin=window.hostile=1 attributeName=x dur=1s>',
  '<iframe srcdoc="<script>parent.hostile=1</script>"></iframe>',
  '<iframe src="javascript:parent.hostile=1"></iframe>',
  '<a href="javascript:window.hostile=1">x</a>',
  'javascript:window.hostile=1',
  '<body onload=window.hostile=1>',
  '<details open ontoggle=window.hostile=1>',
  '<input autofocus onfocus=window.hostile=1>',
  '<video><source onerror=window.hostile=1></video>',
  '<object data="data:text/html,<script>window.hostile=1</script>"></object>',
  '<embed src="data:text/html,<script>window.hostile=1</script>">',
  '<math><mtext><img src=x onerror=window.hostile=1></mtext></math>',
  '<style>@import "//hostile.example/x.css";</style>',
  '<link rel=stylesheet href=//hostile.example/x.css>',
  '<base href=//hostile.example/>',
  '<meta http-equiv=refresh content="0;url=//hostile.example/">',
  '<form action=//hostile.example/><button>x</button></form>',
  '<template><script>window.hostile=1</script></template>',
  '{{constructor.constructor("window.hostile=1")()}}',
  '${window.hostile=1}',
  '&lt;script&gt;window.hostile=1&lt;/script&gt;',
  '\u202e<scr\u200bipt>window.hostile=1</script>\ufeff',
]

/** What holds our own words only: the code looks them up, or reads them by a shape. */
const own = new Set([
  'installation',
  'sources',
  'schema_migrations',
  'bulk_acts.filter',
  'bulk_items.target',
])

/** The text that a given one becomes; one that ends in `-N` the Nth. */
export function hostile(text: string): string {
  const number = /-(\d+)$/.exec(text)?.[1]
  const at =
    number === undefined
      ? [...text].reduce((sum, char) => sum + char.charCodeAt(0), 0)
      : Number(number)
  return text + (hostileTexts[at % hostileTexts.length] ?? '')
}

/** Makes every text of a schema hostile; answers the columns that took it, as `table.column`. */
export async function makeHostile(pool: pg.Pool, schema = 'hookledger'): Promise<string[]> {
  const client = await pool.connect()
  try {
    await client.query('begin')
    // neither triggers nor foreign keys: the texts change everywhere at once
    await client.query('set local session_replication_role = replica')
    const { rows } = await client.query<{ table: string; column: string; type: string }>(
      `select c.table_name as table, c.column_name as column, c.data_type as type
       from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
       where c.table_schema = $1 and t.table_type = 'BASE TABLE' and c.is_generated = 'NEVER'
         and c.data_type in ('text', 'jsonb')
         and not exists (select 1 from pg_inherits i where i.inhrelid = format('%I.%I', c.table_schema, c.table_name)::regclass)
       order by 1, 2`,
      [schema],
    )
    const taken: string[] = []
    for (const { table, column, type } of rows.filter(
      (each) => !own.has(each.table) && !own.has(`${each.table}.${each.column}`),
    )) {
      await client.query('savepoint one')
      try {
        const changed = await pollute(client, `${schema}.${table}`, column, type)
        if (changed > 0) taken.push(`${table}.${column}`)
      } catch {
        // a check or a length that keeps strangers' texts out
        await client.query('rollback to one')
      }
    }
    await client.query('commit')
    return taken
  } finally {
    client.release()
  }
}

async function pollute(
  client: pg.PoolClient,
  table: string,
  column: string,
  type: string,
): Promise<number> {
  if (type === 'jsonb') {
    const added = Object.fromEntries(hostileTexts.map((text, at) => [`${text} ${at}`, text]))
    const { rowCount } = await client.query(
      `update ${table} set ${column} = ${column} || $1::jsonb where jsonb_typeof(${column}) = 'object'`,
      [JSON.stringify(added)],
    )
    return rowCount ?? 0
  }
  const { rows } = await client.query<{ text: string }>(
    `select distinct ${column} as text from ${table} where ${column} <> ''`,
  )
  for (const { text } of rows)
    await client.query(`update ${table} set ${column} = $2 where ${column} = $1`, [
      text,
      hostile(text),
    ])
  return rows.length
}
