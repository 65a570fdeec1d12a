/**
 * What the rest of Hookledger knows of a database connection. Rules that every caller keeps, because
 * seven client libraries differ in the rest: values are bound and only ever text, numbers, booleans,
 * null, Buffers or arrays of them; JSON is bound as `$n::text::jsonb`, times as ISO text; bigint
 * comes back as text.
 */

/** A bound value. */
export type Value =
  string | number | boolean | null | Uint8Array | readonly (string | number | boolean | null)[]

/**
 * A statement with its bound values. `binary` asks for binary results, of `text` and `bytea` columns
 * only: bytes that the driver may not have carried exactly come back as null, to be read as text.
 */
export interface Statement {
  readonly text: string
  readonly values?: readonly Value[]
  /** Prepared under this name, once for each connection; the text must be the same for ever. */
  readonly name?: string
  /** Runs again and again with the same text: prepared by itself, where connections keep that. */
  readonly repeated?: boolean
  readonly binary?: boolean
  /** The app's own SQL: exactly one statement, bound and read as the app has set up its driver. */
  readonly extended?: boolean
  /** Milliseconds within which the answer must come, where it may take longer than others. */
  readonly withinMs?: number
}

/** Rows as the driver returns them: snake_case columns. */
export type Row = Record<string, unknown>

/** Rows, and how many rows the statement touched. */
export interface Result<R> {
  readonly rows: R[]
  readonly rowCount: number
}

/** Runs statements on one connection, inside whatever transaction that connection is in. */
export interface Executor {
  query<R extends object = Row>(statement: Statement): Promise<R[]>
  /** Like `query`, with the count of touched rows. */
  execute<R extends object = Row>(statement: Statement): Promise<Result<R>>
}

/** A pool of connections to one schema of Hookledger's. */
export interface Database {
  /** The quoted schema with a trailing dot, ready to stand before a table's name. */
  readonly schema: string
  /** The schema's plain name. */
  readonly schemaName: string
  /** One statement in a transaction of its own. */
  query<R extends object = Row>(statement: Statement): Promise<R[]>
  /**
   * Runs `work` in one transaction at READ COMMITTED and commits it.
   *
   * @throws HookledgerError HKL_TRANSACTION_UNKNOWN when the COMMIT was sent and its outcome is not
   * known; any other error means that nothing was written.
   */
  transaction<T>(work: (tx: Executor) => Promise<T>, options?: TransactionOptions): Promise<T>
}

/** How a transaction begins and what it does just before it commits. */
export interface TransactionOptions {
  /** Extra simple statements sent together with BEGIN (only literals, no values). */
  readonly setup?: string
  /** Says that `work` needs another connection meanwhile: the pool always keeps one free for it. */
  readonly needsAnother?: boolean
  /** A failpoint or probe that runs just before COMMIT is sent. */
  readonly beforeCommit?: () => Promise<void>
  /** A failpoint or probe that runs when COMMIT was answered. */
  readonly afterCommit?: () => Promise<void>
}
