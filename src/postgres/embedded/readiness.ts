/**
 * Waits until the server that was spawned, and no other program on that port, answers as the owner; and
 * makes sure that the database is there. Crash recovery is waited for, within a bound.
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { HookledgerError } from '../../core/errors.ts'
import { ownerRole } from './cluster.ts'
import type { ServerLog } from './server-log.ts'
import type { ServerProcess } from './server-process.ts'

/** Name of the database in the embedded cluster. */
export const databaseName = 'hookledger'

const readyTimeoutMs = 300_000
const noticeAfterMs = 5_000

/** Whether the server became ready; `'port taken'` when another program has its port. */
export type Readiness = 'ready' | 'port taken'

/**
 * Waits for the server.
 *
 * @throws HookledgerError HKL_EMBEDDED_START_FAILED when it ends or does not become ready in time.
 */
export async function waitUntilReady(
  server: ServerProcess,
  cluster: string,
  serverLog: ServerLog,
  logFile: string,
  log: (message: string) => void,
): Promise<Readiness> {
  const started = performance.now()
  let noticed = false
  while (!saysReady(cluster, server.pid)) {
    if (server.hasExited()) {
      const reason = serverLog.firstFatal()
      if (reason !== null && /could not create any TCP\/IP sockets/.test(reason))
        return 'port taken'
      throw failed(
        `PostgreSQL ended while it started: ${reason ?? 'it does not say why'}. See ${logFile}.`,
      )
    }
    const waited = performance.now() - started
    if (waited > readyTimeoutMs) {
      throw failed(`PostgreSQL is not ready after ${readyTimeoutMs / 1000} s. See ${logFile}.`)
    }
    if (waited > noticeAfterMs && !noticed) {
      noticed = true
      log('PostgreSQL is still starting; after a crash it replays its log first.')
    }
    await sleep(10)
  }
  return 'ready'
}

/** Checks that the port leads to this cluster, and creates the database when it is missing. */
export async function ensureDatabase(
  cluster: string,
  port: number,
  password: string,
): Promise<void> {
  const client = new pg.Client({
    host: '127.0.0.1',
    port,
    user: ownerRole,
    password,
    database: 'postgres',
    connectionTimeoutMillis: 30_000,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<{ directory: string; present: boolean }>(
      `select current_setting('data_directory') as directory,
              exists (select from pg_database where datname = $1) as present`,
      [databaseName],
    )
    if (realpathSync(rows[0]?.directory ?? '') !== realpathSync(cluster)) {
      throw failed(`Port ${port} leads to another PostgreSQL than the one in ${cluster}.`)
    }
    if (rows[0]?.present === false) await client.query(`create database ${databaseName}`)
  } catch (error) {
    if (error instanceof HookledgerError) throw error
    if ((error as { code?: string }).code === '28P01') {
      throw failed(
        'The password file of the embedded PostgreSQL does not fit its database: restore the file, or choose another HOOKLEDGER_DATA_DIR.',
        error,
      )
    }
    throw failed(`PostgreSQL on port ${port} does not answer as it should.`, error)
  } finally {
    await client.end().catch(() => {})
  }
}

/** The postmaster writes its status into its lock file; line 8 is padded to a fixed width. */
function saysReady(cluster: string, pid: number): boolean {
  const file = join(cluster, 'postmaster.pid')
  if (!existsSync(file)) return false
  try {
    const lines = readFileSync(file, 'utf8').split('\n')
    return Number(lines[0]) === pid && lines[7]?.trim() === 'ready'
  } catch {
    return false
  }
}

function failed(message: string, cause?: unknown): HookledgerError {
  return new HookledgerError('HKL_EMBEDDED_START_FAILED', message, { cause })
}
