/**
 * What a case ended with, as the app and its customers see it: states, effects, entitlements, operations, and the rows of
 * the app's own tables. Two cases of the same events must end with the same.
 */
import type { Asked } from './verdict.ts'

/** An end. Lists are sorted. */
export interface End {
  /** By order: its state, effects, entitlements and operations, a line each. */
  readonly orders: readonly string[]
  /** Of the app's own tables: the table's name and a row's columns, a line each. */
  readonly tables: readonly TableRow[]
}

/** One row of one of the app's tables, column by column. */
export interface TableRow {
  readonly table: string
  readonly columns: Readonly<Record<string, string | null>>
}

/** Reads the end of a case. `schema` is the product's own; every other table is the app's. */
export async function readEnd(db: Asked, schema: string): Promise<End> {
  const h = `"${schema.replaceAll('"', '""')}"`
  const { rows } = await db.query(
    `select line from (
      select 'order ' || order_id || ' (' || workflow || ') is ' || state as line from ${h}.orders
      union all select 'effect ' || order_id || ' ' || effect_type || ' ' || effect_reference from ${h}.fulfillment_effects
      union all select 'entitlement ' || subject || ' ' || entitlement || ' of ' || order_id || coalesce(' x' || quantity, '') from ${h}.entitlements where active
      union all select 'operation ' || coalesce(order_id, '') || ' ' || coalesce(effect_type, '') || ' ' || coalesce(effect_reference, '') || ' to ' || destination || ' ' || name
        from ${h}.outbox_operations where effect_type is not null
    ) as l order by line collate "C"`,
  )
  return { orders: rows.map(({ line }) => String(line)), tables: await readTables(db, schema) }
}

async function readTables(db: Asked, schema: string): Promise<readonly TableRow[]> {
  const { rows } = await db.query(
    `select n.nspname as schema, c.relname as table,
        array(select a.attname::text from pg_attribute a left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
          where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attidentity = ''
            and a.atttypid not in ('timestamptz'::regtype, 'timestamp'::regtype, 'uuid'::regtype)
            and coalesce(pg_get_expr(d.adbin, d.adrelid), '') not like 'nextval(%'
          order by a.attnum) as columns
      from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p') and not c.relispartition and n.nspname <> $1 and n.nspname <> 'information_schema' and n.nspname !~ '^pg_'
      order by 1, 2`,
    [schema],
  )
  const found: TableRow[] = []
  for (const { schema: owner, table, columns } of rows) {
    const names = columns as readonly string[]
    const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
    const list = names.map((name) => `${quoted(name)}::text as ${quoted(name)}`).join(', ')
    const result = await db.query(
      `select ${list} from ${quoted(String(owner))}.${quoted(String(table))}`,
    )
    for (const row of result.rows)
      found.push({
        table: `${String(owner)}.${String(table)}`,
        columns: row as Record<string, string | null>,
      })
  }
  return found
}

/** The columns that two runs without a fault do not agree in: what they hold is of a run, and not of its events. */
export function volatileColumns(one: End, other: End): ReadonlySet<string> {
  const names = new Set<string>()
  for (const { table, columns } of [...one.tables, ...other.tables])
    for (const name of Object.keys(columns)) names.add(`${table}.${name}`)
  const valuesOf = (end: End, name: string): string =>
    JSON.stringify(
      end.tables
        .filter(({ table, columns }) =>
          Object.keys(columns).some((each) => `${table}.${each}` === name),
        )
        .map(({ table, columns }) => columns[name.slice(table.length + 1)] ?? null)
        .sort(),
    )
  return new Set([...names].filter((name) => valuesOf(one, name) !== valuesOf(other, name)))
}

/** Lines that only one of two ends has, of what Hookledger keeps. */
export function orderDifferences(expected: End, actual: End): readonly string[] {
  return lineDifferences(expected.orders, actual.orders)
}

/** Lines that only one of two ends has, of the app's own tables. */
export function tableDifferences(
  expected: End,
  actual: End,
  volatile: ReadonlySet<string>,
): readonly string[] {
  const lines = (end: End): string[] =>
    end.tables
      .map(
        ({ table, columns }) =>
          `${table}: ${Object.entries(columns)
            .filter(([name]) => !volatile.has(`${table}.${name}`))
            .map(([name, value]) => `${name}=${value ?? 'null'}`)
            .join(' ')}`,
      )
      .sort()
  return lineDifferences(lines(expected), lines(actual))
}

function lineDifferences(
  expected: readonly string[],
  actual: readonly string[],
): readonly string[] {
  const left = [...actual]
  const missing: string[] = []
  for (const line of expected) {
    const at = left.indexOf(line)
    if (at === -1) missing.push(`missing: ${line}`)
    else left.splice(at, 1)
  }
  return [...missing, ...left.map((line) => `too much: ${line}`)]
}
