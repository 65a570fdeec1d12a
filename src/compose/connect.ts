/** The database of a configuration: the app's own pool, or one of ours that ends with us. */
import { HookledgerError } from '../core/errors.ts'
import type { Database } from '../postgres/executor.ts'
import { createDatabase, createPool } from '../postgres/pool.ts'
import { requireConnections } from './connections.ts'
import { environmentVariable } from './environment.ts'
import type { ResolvedConfig } from './options.ts'

/** A database, and how it is let go. */
export interface Connected {
  readonly database: Database
  /** Ends a pool of ours; the app's own is left alone. */
  close(): Promise<void>
}

/**
 * Connects to nothing yet: a pool does so when it is first asked.
 *
 * @param otherwise the URL where the configuration names no database
 * @throws HookledgerError HKL_CONFIG_INVALID when there is no database, or its pool is too small
 */
export function connect(
  { database, schemaName, limits }: ResolvedConfig,
  otherwise: string | undefined,
): Connected {
  if (database !== undefined && typeof database !== 'string') {
    requireConnections(database)
    // the app's own pool may wait for ever for a connection that fell silent: a worker may not
    const options = { answerWithinMs: limits.statementTimeoutMs + 5000 }
    return {
      database: createDatabase(database, schemaName, options),
      close: () => Promise.resolve(),
    }
  }
  const url = database ?? otherwise ?? environmentVariable('DATABASE_URL')
  if (url === undefined) {
    throw new HookledgerError(
      'HKL_CONFIG_INVALID',
      'no database: set DATABASE_URL, or give `database` in the configuration, or run "hookledger dev"',
    )
  }
  const pool = createPool({
    connectionString: url,
    statementTimeoutMs: limits.statementTimeoutMs,
  })
  return { database: createDatabase(pool, schemaName), close: () => pool.end() }
}
