/**
 * The one place where connections are taken and given back. A connection is reused only when it is
 * known to be sound and outside any transaction; one that somebody else left inside a transaction is
 * never worked on; a canceled wait for a synchronous standby makes the outcome of a COMMIT unknown.
 */
import pg from 'pg'
import { HookledgerError } from '../core/errors.ts'
import { giveBack, guardConnection, isOutside, statusOf } from './connection-guard.ts'
import type { Database, Executor, Statement, TransactionOptions } from './executor.ts'
import { Permits } from './permits.ts'
import { executorOf, run, send } from './run-statement.ts'
import { schemaPrefix } from './schema-name.ts'
import { classify, sqlstateOf } from './sqlstate.ts'

/** Settings of a pool made by Hookledger itself. */
export interface PoolOptions {
  readonly connectionString: string
  readonly max?: number
  readonly applicationName?: string
  /** Milliseconds to wait for a connection. Default 5000. */
  readonly connectionTimeoutMs?: number
  /** Milliseconds a statement may run, on the server. Default 5000. */
  readonly statementTimeoutMs?: number
}

/** A pool whose idle connections may die without ending the process. */
export function createPool(options: PoolOptions): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.connectionString,
    max: options.max ?? 10,
    application_name: options.applicationName ?? 'hookledger',
    connectionTimeoutMillis: options.connectionTimeoutMs ?? 5000,
    statement_timeout: options.statementTimeoutMs ?? 5000,
    // the client's own deadline stands behind the server's, for a connection that went silent
    query_timeout: (options.statementTimeoutMs ?? 5000) + 5000,
    idle_in_transaction_session_timeout: 30_000,
    keepAlive: true,
  })
  pool.on('error', () => {})
  return pool
}

/** The part of `pg.Pool` that is used; a user's own pool fits. */
export type PoolLike = Pick<pg.Pool, 'connect' | 'on'>

/** How a database over a pool behaves. */
export interface DatabaseOptions {
  /**
   * Milliseconds within which every answer must come, that of COMMIT too. A connection that fell silent
   * is given up after it; without it, whatever the pool says holds (by default: for ever).
   */
  readonly answerWithinMs?: number
}

/** A {@link Database} over a pool of the `pg` package. */
export function createDatabase(
  pool: PoolLike,
  schemaName: string,
  options: DatabaseOptions = {},
): Database {
  if (!heard.has(pool)) {
    heard.add(pool)
    pool.on('error', () => {}) // an idle connection that dies must not end the process
    // nor one that dies in the very bytes that say that it is ready, before whoever asked for it can listen
    pool.on('connect', (client) => client.on('error', () => {}))
  }
  return new PooledDatabase(pool, schemaName, options)
}

/** Pools whose errors are listened to. */
const heard = new WeakSet<object>()

/** One set of permits for a pool, whoever shares it. */
const permitsByPool = new WeakMap<object, Permits>()

function permitsOf(pool: PoolLike): Permits {
  const known = permitsByPool.get(pool)
  if (known !== undefined) return known
  const permits = new Permits(Math.max(1, (numberOf(pool, 'max') ?? Number.POSITIVE_INFINITY) - 1))
  permitsByPool.set(pool, permits)
  return permits
}

/** A numeric option of the pool, where it shows its options. */
function numberOf(pool: PoolLike, name: 'max' | 'query_timeout'): number | undefined {
  const options: unknown = 'options' in pool ? pool.options : undefined
  const value: unknown =
    typeof options === 'object' && options !== null ? Reflect.get(options, name) : undefined
  return typeof value === 'number' && value > 0 ? value : undefined
}

/** How long the server lets one of our transactions do nothing, in milliseconds. */
const idleMs = 20_000

class PooledDatabase implements Database {
  readonly schema: string
  readonly schemaName: string
  readonly #pool: PoolLike
  readonly #answerWithinMs: number | undefined

  constructor(pool: PoolLike, schemaName: string, options: DatabaseOptions) {
    this.#pool = pool
    // an app that wants its answers sooner keeps its own deadline
    const deadlines = [options.answerWithinMs, numberOf(pool, 'query_timeout')].filter(
      (each) => each !== undefined,
    )
    this.#answerWithinMs = deadlines.length === 0 ? undefined : Math.min(...deadlines)
    this.schemaName = schemaName
    this.schema = schemaPrefix(schemaName)
  }

  async query<R extends object>(statement: Statement): Promise<R[]> {
    const client = await this.#checkOut()
    const guard = guardConnection(client)
    try {
      const { rows } = await run<R>(client, statement, this.#answerWithinMs, this.#pool)
      // a transaction that somebody left open would have swallowed the statement without committing it
      if (!isOutside(client)) throw notCommitted()
      guard.assertDurable()
      guard.settle()
      client.release()
      return rows
    } catch (error) {
      guard.settle()
      giveBack(client, isSound(error) ? undefined : asError(error))
      throw error
    }
  }

  /** A connection that is outside any transaction: what others left open is ended by closing it. */
  async #checkOut(): Promise<pg.PoolClient> {
    for (;;) {
      const client = await this.#pool.connect()
      if (isOutside(client)) return client
      giveBack(client, new Error('it was given back inside a transaction'))
    }
  }

  transaction<T>(work: (tx: Executor) => Promise<T>, options: TransactionOptions = {}): Promise<T> {
    const run = (): Promise<T> => this.#transaction(work, options)
    return options.needsAnother === true ? permitsOf(this.#pool).run(run) : run()
  }

  async #transaction<T>(
    work: (tx: Executor) => Promise<T>,
    options: TransactionOptions,
  ): Promise<T> {
    const client = await this.#checkOut()
    const answerWithinMs = this.#answerWithinMs
    const guard = guardConnection(client)
    let committing = false
    try {
      // Said outright: a role or a pool may have another default. A process that is stopped in here keeps
      // its locks for so long, and no longer.
      const begin = `begin isolation level read committed; set local idle_in_transaction_session_timeout = ${idleMs}`
      await send(
        client,
        options.setup === undefined ? begin : `${begin}; ${options.setup}`,
        answerWithinMs,
      )
      if (guard.wasInside()) throw notCommitted()
      const result = await work(executorOf(client, answerWithinMs, this.#pool))
      if (options.beforeCommit !== undefined) await options.beforeCommit()
      if (statusOf(client) === 'I') throw endedInside()
      committing = true
      const answer = await send(client, 'commit', answerWithinMs)
      // COMMIT of a transaction that failed answers ROLLBACK without an error
      if (answer.command !== 'COMMIT') throw rolledBack()
      guard.assertDurable()
      guard.settle()
      client.release()
      if (options.afterCommit !== undefined) await options.afterCommit()
      return result
    } catch (error) {
      if (!guard.settled) await abandon(client, committing, error, answerWithinMs)
      guard.settle()
      if (committing && isUnknown(error)) {
        throw new HookledgerError(
          'HKL_TRANSACTION_UNKNOWN',
          'the outcome of a COMMIT is not known',
          { cause: error },
        )
      }
      throw error
    }
  }
}

/** Whether a connection can be reused after a statement of its own transaction failed like this. */
function isSound(error: unknown): boolean {
  return (
    sqlstateOf(error) !== undefined &&
    !['unknown', 'unavailable', 'reconnect'].includes(classify(error))
  )
}

/** How long a rollback may take where no other deadline is set, in milliseconds. */
const rollbackMs = 5000

/** Rolls back where the connection still answers; otherwise the server does when it is closed. */
async function abandon(
  client: pg.PoolClient,
  committing: boolean,
  error: unknown,
  answerWithinMs: number | undefined,
): Promise<void> {
  let failure: Error | undefined = asError(error)
  // an error of the server, or of our own code, leaves a connection that can roll back and be reused
  if (
    !committing &&
    (isSound(error) || (sqlstateOf(error) === undefined && !looksLikeConnection(error)))
  ) {
    try {
      await send(client, 'rollback', answerWithinMs ?? rollbackMs)
      failure = isOutside(client) ? undefined : failure
    } catch (rollbackError) {
      failure = asError(rollbackError)
    }
  }
  giveBack(client, failure)
}

function looksLikeConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if ('code' in error && typeof error.code === 'string' && /^E[A-Z]+$/.test(error.code)) return true
  return /terminated|not queryable|timeout|Connection|connection/.test(error.message)
}

function isUnknown(error: unknown): boolean {
  if (error instanceof HookledgerError) return false
  // a server that is out of space or broken while it commits may have committed
  return sqlstateOf(error) === undefined || ['unknown', 'unavailable'].includes(classify(error))
}

function rolledBack(): HookledgerError {
  return new HookledgerError(
    'HKL_LEDGER_CLAIM_LOST',
    'the transaction was rolled back by the server',
  )
}

function notCommitted(): HookledgerError {
  return new HookledgerError(
    'HKL_TRANSACTION_UNKNOWN',
    'the connection was inside a transaction that somebody else had left open: it was closed; end every transaction before releasing its client',
  )
}

function endedInside(): HookledgerError {
  return new HookledgerError(
    'HKL_TRANSACTION_CONTROL',
    'SQL inside the transaction ended it: remove the transaction control',
  )
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error('not an error', { cause: error })
}
