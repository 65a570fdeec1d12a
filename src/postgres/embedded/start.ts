/**
 * The embedded PostgreSQL: a real server from an npm package, for `dev` and for tests. One data
 * directory has one server at a time; whatever was killed before, the next start finds its data again
 * and never deletes a cluster.
 */
import { mkdirSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { HookledgerError } from '../../core/errors.ts'
import { ensureCluster, ownerRole, readOrCreatePassword, sweepLeftovers } from './cluster.ts'
import { acquireDirectoryLock } from './directory-lock.ts'
import { clusterIn, findCluster, settleHome } from './location.ts'
import { clearOrphans } from './orphan.ts'
import { locatePackageBinaries } from './package-binaries.ts'
import { choosePort, rememberPort } from './port.ts'
import { databaseName, ensureDatabase, waitUntilReady } from './readiness.ts'
import { prepareRuntime, sweepRuntimes } from './runtime.ts'
import type { Runtime } from './runtime.ts'
import { chooseServerAccount } from './server-account.ts'
import type { ServerAccount } from './server-account.ts'
import { openServerLog } from './server-log.ts'
import { spawnServer } from './server-process.ts'
import type { ServerExit, ServerProcess, StopMode } from './server-process.ts'
import { serverArguments } from './server-settings.ts'

/** Options of {@link startEmbeddedPostgres}. */
export interface EmbeddedPostgresOptions {
  /** Directory for everything; the server's part goes into `postgres/` in it. Created when missing. */
  readonly dataDir: string
  /** A fixed port on 127.0.0.1. Without it a free one is chosen and remembered. */
  readonly port?: number
  /** Server settings that win over the defaults, as in postgresql.conf. */
  readonly settings?: Readonly<Record<string, string>>
  /** Told in one line what takes long or is unusual. Never told a secret. */
  readonly log?: (message: string) => void
}

/** A running embedded server. */
export interface EmbeddedPostgres {
  /** URL of the database `hookledger` as its owner, a superuser. Contains the password. */
  readonly url: string
  readonly port: number
  /** Process id of the server. */
  readonly pid: number
  /** The cluster's directory. */
  readonly clusterDir: string
  /** How the server ended, by `stop` or by itself. */
  readonly exited: Promise<ServerExit>
  /** Stops the server in bounded time; `fast` unless told otherwise. Calling it again waits for the same end. */
  stop(mode?: StopMode): Promise<void>
}

interface Ready {
  readonly base: string
  readonly cluster: string
  readonly runtime: Runtime
  readonly account: ServerAccount | null
  readonly password: string
  readonly options: EmbeddedPostgresOptions
}

const portAttempts = 5

/**
 * Starts the embedded PostgreSQL of a data directory, making it on first use and recovering it after a
 * crash.
 *
 * @throws HookledgerError HKL_EMBEDDED_UNAVAILABLE (no build, not installed, cannot run here),
 *   HKL_EMBEDDED_IN_USE (another living process has the directory), HKL_EMBEDDED_START_FAILED.
 */
export async function startEmbeddedPostgres(
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres> {
  const log = options.log ?? (() => {})
  return explained(async () => {
    const binaries = locatePackageBinaries()
    const base = makeBase(options.dataDir)
    return await underLocks(base, log, async (alsoLock, release) => {
      const present = findCluster(base)
      await alsoLock(dirname(present))
      await clearOrphans(present, log)
      const account = chooseServerAccount(present)
      const home = settleHome(base, account, log)
      await alsoLock(home)
      await sweepLeftovers(home)
      const runtime = await prepareRuntime(binaries, home, account)
      await sweepRuntimes(home, runtime)
      const password = readOrCreatePassword(base)
      await ensureCluster(home, runtime, account, password)
      const ready = { base, cluster: clusterIn(home), runtime, account, password, options }
      return await launch(ready, release)
    })
  })
}

/**
 * Stops a server that a killed process left running on a data directory. Does nothing when there is none.
 *
 * @throws HookledgerError HKL_EMBEDDED_IN_USE when a living process has the directory.
 */
export async function stopOrphanedPostgres(dataDir: string): Promise<void> {
  const base = makeBase(dataDir)
  const silent = () => {}
  await underLocks(base, silent, async (alsoLock, release) => {
    const cluster = findCluster(base)
    await alsoLock(dirname(cluster))
    await clearOrphans(cluster, silent)
    release()
  })
}

async function launch(ready: Ready, release: () => void): Promise<EmbeddedPostgres> {
  const { base, cluster, password, options } = ready
  for (let attempt = 1; ; attempt += 1) {
    const port = options.port ?? (await choosePort(base))
    const server = await tryLaunch(ready, port)
    if (server) {
      rememberPort(base, port)
      void server.exited.then(release)
      return {
        url: `postgres://${ownerRole}:${password}@127.0.0.1:${port}/${databaseName}`,
        port,
        pid: server.pid,
        clusterDir: cluster,
        exited: server.exited,
        stop: async (mode = 'fast') => {
          await server.stop(mode)
          release()
        },
      }
    }
    if (options.port !== undefined || attempt === portAttempts) {
      throw new HookledgerError(
        'HKL_EMBEDDED_START_FAILED',
        `Port ${port} on 127.0.0.1 is taken by another program: stop it, or choose another port.`,
      )
    }
  }
}

/** Starts the server on a port; null when another program took the port first. */
async function tryLaunch(ready: Ready, port: number): Promise<ServerProcess | null> {
  const { base, cluster, runtime, account, password, options } = ready
  const logFile = join(base, 'postgres.log')
  const serverLog = openServerLog(logFile)
  const args = serverArguments(cluster, port, options.settings ?? {})
  let server: ServerProcess | null = null
  try {
    server = await spawnServer(runtime, account, args, cluster, serverLog)
    void server.exited.then(() => serverLog.close())
    const log = options.log ?? (() => {})
    if ((await waitUntilReady(server, cluster, serverLog, logFile, log)) !== 'ready') return null
    await ensureDatabase(cluster, port, password)
    return server
  } catch (error) {
    if (server) await server.stop('fast')
    else serverLog.close()
    throw error
  }
}

function makeBase(dataDir: string): string {
  const base = join(resolve(dataDir), 'postgres')
  mkdirSync(base, { recursive: true })
  return realpathSync(base)
}

/**
 * Runs a start under the locks of the data directory and of the home, if that is elsewhere (a copied
 * data directory names the same home). They are given up when it fails, or when its result is done.
 */
async function underLocks<T>(
  base: string,
  log: (message: string) => void,
  start: (alsoLock: (home: string) => Promise<void>, release: () => void) => Promise<T>,
): Promise<T> {
  const locks = new Map([[base, await acquireDirectoryLock(base, { log })]])
  const release = () => {
    for (const lock of locks.values()) lock.release()
  }
  try {
    const alsoLock = async (home: string) => {
      if (!locks.has(home)) locks.set(home, await acquireDirectoryLock(home, { log }))
    }
    return await start(alsoLock, release)
  } catch (error) {
    release()
    throw error
  }
}

async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof HookledgerError) throw error
    const denied = ['EACCES', 'EPERM'].includes((error as NodeJS.ErrnoException).code ?? '')
    const hint = denied
      ? '. Start it as the account that made it, or choose another HOOKLEDGER_DATA_DIR'
      : ''
    const reason = (error instanceof Error ? error.message : String(error)) + hint
    throw new HookledgerError(
      'HKL_EMBEDDED_START_FAILED',
      `The embedded PostgreSQL did not start: ${reason}`,
      { cause: error },
    )
  }
}
