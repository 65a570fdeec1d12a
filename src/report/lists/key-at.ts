/**
 * Where in a table that grows in the order of its numbers a moment lies, by the block ranges of its times: so that a
 * list of last Tuesday does not begin with today.
 */
import type { Executor } from '../../postgres/executor.ts'

/** A table, its number, and nothing more: its times are in `received_at`. */
export interface Numbered {
  /** With its schema. */
  readonly table: string
  readonly key: string
}

/** How far from a moment the rows next to it are looked for. */
const near = ['2 minutes', '1 hour', '1 day', '40 days']

/** How long after its number was drawn a row may become visible: moments and numbers agree that far. */
const slack = `interval '2 minutes'`

/**
 * A number from which on there is every row from a moment on (`first`), or up to which there is every row before it
 * (`last`): that of the row next to it, or where there is none for a long time, one that cuts nothing off. Null where
 * there is no such row at all. Whoever needs exactly these moments asks for the moment as well.
 *
 * @param moment ISO text; null is now, by the database's clock
 */
export async function keyAt(
  tx: Pick<Executor, 'query'>,
  { table, key }: Numbered,
  which: 'first' | 'last',
  moment: string | null,
): Promise<bigint | null> {
  const at = 'coalesce($1::timestamptz, now())'
  for (const distance of near) {
    const [from, to] =
      which === 'first'
        ? [`${at} - ${slack}`, `${at} + interval '${distance}'`]
        : [`${at} - interval '${distance}'`, `${at} + ${slack}`]
    const [row] = await tx.query<{ key: string | null }>({
      // a sum of a number and nothing is in no index: what is left is the moment
      text: `select ${which === 'first' ? 'min' : 'max'}(${key} + 0) as key from ${table}
        where received_at >= ${from} and received_at < ${to}`,
      values: [moment],
    })
    if (row?.key != null) return BigInt(row.key)
  }
  const beyond = which === 'first' ? `received_at >= ${at}` : `received_at < ${at}`
  const [found] = await tx.query<{ newest: string | null }>({
    text: `select case when exists (select from ${table} where ${beyond}) then (select max(${key}) from ${table}) end as newest`,
    values: [moment],
  })
  if (found?.newest == null) return null
  return which === 'first' ? 0n : BigInt(found.newest)
}
