/**
 * One statement out of many writes. Each part is a data-modifying WITH query of its own; all of them
 * see the same snapshot, none sees another's rows, and they become visible together.
 */
import type { Executor, Value } from './executor.ts'

/** One write of the statement. */
export interface WritePart {
  /** A unique name for the WITH query; helpers of the part may be named `<name>_…`. */
  readonly name: string
  /**
   * The SQL of one or more WITH queries (`a as (…), b as (…)`), the last of which is called `name` and
   * returns rows to be counted. Placeholders are written `:1`, `:2`, … and number this part's values.
   */
  readonly sql: string
  readonly values: readonly Value[]
  /** How many rows `name` must return; a difference is the caller's to judge. */
  readonly expected?: number
  /**
   * A companion right behind this part, which counts the rows that it should have written. Fewer mean
   * that somebody moved one meanwhile: both run once more, in a statement that sees where it went.
   */
  readonly atLeast?: string
}

/**
 * Runs all parts as one statement and returns how many rows each one wrote, by name. Only for few rows is
 * it `repeated`: a plan that is kept may be older than the tables' growth, and many rows are worth their own.
 */
export async function runParts(
  tx: Executor,
  parts: readonly WritePart[],
  repeated = false,
): Promise<ReadonlyMap<string, number>> {
  if (parts.length === 0) return new Map()
  const counts = await runStatement(tx, parts, repeated)
  const short = new Set(
    parts.flatMap(({ name, atLeast }) =>
      atLeast !== undefined && (counts.get(name) ?? 0) < (counts.get(atLeast) ?? 0)
        ? [name, atLeast]
        : [],
    ),
  )
  if (short.size > 0)
    await runStatement(
      tx,
      parts.filter(({ name }) => short.has(name)),
      false,
    )
  return counts
}

async function runStatement(
  tx: Executor,
  parts: readonly WritePart[],
  repeated: boolean,
): Promise<ReadonlyMap<string, number>> {
  const values: Value[] = []
  const queries: string[] = []
  for (const part of parts) {
    const offset = values.length
    queries.push(part.sql.replace(/:(\d+)\b/g, (_, n: string) => `$${offset + Number(n)}`))
    values.push(...part.values)
  }
  const counts = parts.map((part) => `(select count(*)::integer from ${part.name}) as ${part.name}`)
  const [row] = await tx.query<Record<string, number>>({
    text: `with ${queries.join(',\n')}\nselect ${counts.join(', ')}`,
    repeated,
    values,
  })
  return new Map(parts.map((part) => [part.name, row?.[part.name] ?? 0]))
}
