/** A server of a test's own, to be killed in every way and started again on the same data and port. */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { inject } from 'vitest'
import { endProcesses } from '../../src/postgres/embedded/end-processes.ts'
import { processesOf } from '../../src/postgres/embedded/orphan.ts'
import { startEmbeddedPostgres } from '../../src/postgres/embedded/start.ts'
import { copyDataDir, makeTestDir, removeDataDir } from './data-dirs.ts'

/** A server that may be killed. */
export interface CrashPostgres {
  /** URL as superuser; the same for the server's whole life, restarts included. */
  readonly url: string
  readonly dataDir: string
  /** Process id of the present server. */
  pid(): number
  /** Kills the server and all its processes at once, as a power failure would end them. */
  kill(): Promise<void>
  /** Kills one backend, which makes the server end every session and recover; waits until it is back. */
  killBackend(pid: number): Promise<void>
  /** `fast` or `immediate`, as PostgreSQL means them. */
  stop(mode?: 'fast' | 'immediate'): Promise<void>
  /** Starts the server again after `kill` or `stop`. */
  restart(): Promise<void>
  /** Stops the server and removes its data. */
  remove(): Promise<void>
}

/** Starts a server of its own for a test, from the run's template. The test calls `remove` at its end. */
export async function startPostgresForCrashTest(
  options: { settings?: Readonly<Record<string, string>> } = {},
): Promise<CrashPostgres> {
  const directory = makeTestDir()
  const dataDir = join(directory, 'server')
  copyDataDir(inject('postgresTemplateDir'), dataDir)
  const settings = options.settings ?? {}
  let server = await startEmbeddedPostgres({ dataDir, settings })
  const { url, port } = server
  return {
    url,
    dataDir,
    pid: () => server.pid,
    async kill() {
      // The server first, or it would see a backend die and begin to recover.
      process.kill(server.pid, 'SIGKILL')
      await endProcesses(processesOf(server.clusterDir), 'SIGKILL', 10_000)
      await server.exited
    },
    async killBackend(pid) {
      process.kill(pid, 'SIGKILL')
      await waitUntilBack(url, pid)
    },
    stop: (mode) => server.stop(mode),
    async restart() {
      server = await startEmbeddedPostgres({ dataDir, settings, port })
    },
    async remove() {
      await server.stop('immediate')
      removeDataDir(dataDir)
      rmSync(directory, { recursive: true, force: true })
    },
  }
}

async function waitUntilBack(url: string, killed: number): Promise<void> {
  const deadline = performance.now() + 30_000
  for (;;) {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => {})
    try {
      await client.connect()
      const { rowCount } = await client.query('select from pg_stat_activity where pid = $1', [
        killed,
      ])
      if (rowCount === 0) return
    } catch (error) {
      if (performance.now() > deadline) throw error
    } finally {
      await client.end().catch(() => {})
    }
    await sleep(20)
  }
}
