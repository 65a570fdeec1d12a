/**
 * One statement on one connection: values bound and read in forms that no driver setting of the app's can
 * change, prepared where it is worth it, with a deadline for the answer.
 */
import type pg from 'pg'
import { arrayLiteral } from './array-literal.ts'
import type { Executor, Result, Statement, Value } from './executor.ts'
import { forgetPrepared, isPreparedElsewhere, keepsPrepared, preparedName } from './prepared.ts'
import { resultParsers } from './result-parsers.ts'
import { sqlstateOf, withoutValues } from './sqlstate.ts'

const replacement = Buffer.from('\ufffd')
const byteaOid = 17

/**
 * Binary results: half the size of hexadecimal text. The driver reads every value as UTF-8 first, so
 * that bytes which are not come back with U+FFFD in their place: such a value may be inexact, and null
 * says so. The same holds for numbers, which is why none may be read this way.
 */
const binaryTypes = {
  getTypeParser: (oid: number) => (value: Buffer) => {
    if (oid !== byteaOid) return value.toString('utf8')
    return value.includes(replacement) ? null : value
  },
} as unknown as pg.CustomTypesConfig

/** An executor over one connection, such as the app's own transaction; prepares only where `pool` is given. */
export function executorOf(
  client: Pick<pg.ClientBase, 'query'>,
  answerWithinMs?: number,
  pool?: object,
): Executor {
  return {
    query: async <R extends object>(statement: Statement) =>
      (await run<R>(client, statement, answerWithinMs, pool)).rows,
    execute: (statement) => run(client, statement, answerWithinMs, pool),
  }
}

/** Sends statements without values as one simple message. */
export async function send(
  client: pg.PoolClient,
  text: string,
  answerWithinMs: number | undefined,
): Promise<pg.QueryResult> {
  return client.query({ text, ...deadlineOf(answerWithinMs) } as pg.QueryConfig)
}

/** The driver takes a deadline of a single query under this name, which its types leave out. */
function deadlineOf(answerWithinMs: number | undefined): { query_timeout?: number } {
  return answerWithinMs === undefined ? {} : { query_timeout: answerWithinMs }
}

/** A value as the driver takes it. */
function bound(value: Value): unknown {
  return Array.isArray(value)
    ? arrayLiteral(value as readonly (string | number | boolean | null)[])
    : value
}

/** Runs one statement on a connection, with values bound and read in our own forms. */
export async function run<R extends object>(
  client: Pick<pg.ClientBase, 'query'>,
  statement: Statement,
  answerWithinMs: number | undefined,
  pool: object | undefined,
): Promise<Result<R>> {
  const { text, values = [], extended = false } = statement
  const name = statement.name ?? repeatedName(statement, pool)
  const form = extended
    ? { values: [...values], queryMode: 'extended' } // the app's own: as its driver binds and reads values
    : {
        values: values.map(bound),
        types: statement.binary === true ? binaryTypes : resultParsers,
        binary: statement.binary === true,
      }
  try {
    const result = await client.query<R & pg.QueryResultRow>({
      text,
      ...(name === undefined ? {} : { name }),
      ...form,
      ...deadlineOf(statement.withinMs ?? answerWithinMs),
    } as pg.QueryConfig)
    return { rows: result.rows, rowCount: result.rowCount ?? 0 }
  } catch (error) {
    if (pool !== undefined && isPreparedElsewhere(sqlstateOf(error))) forgetPrepared(pool)
    throw extended ? error : withoutValues(error)
  }
}

function repeatedName(
  { text, repeated = false }: Statement,
  pool: object | undefined,
): string | undefined {
  return repeated && pool !== undefined && keepsPrepared(pool) ? preparedName(text) : undefined
}
