/**
 * Clears the way after a crash: a server of the cluster that outlived its parent is stopped (cleanly if
 * it lets itself be), processes that outlived their server are ended, and the lock file of a dead server
 * goes. Stopping was chosen over adopting, because only the parent of a server learns how it ended.
 * The caller holds the directory's lock, so nobody else's living server can be meant.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { HookledgerError } from '../../core/errors.ts'
import { endProcesses } from './end-processes.ts'
import { listProcesses, worksIn } from './process-table.ts'
import type { ProcessEntry } from './process-table.ts'
import { clusterName } from './server-settings.ts'

// Fast shutdown writes a checkpoint; with a full buffer pool on a slow disk that takes its time.
const fastMs = 60_000
const immediateMs = 10_000
const killedMs = 10_000

/** Stops whatever still runs on the cluster and removes a dead server's lock file. */
export async function clearOrphans(cluster: string, log: (message: string) => void): Promise<void> {
  if (!existsSync(cluster)) return
  const servers = serversOf(cluster)
  if (servers.length > 0) {
    log(`Stopping a PostgreSQL that an earlier run left behind (process ${servers[0]?.pid}).`)
    // A server that still starts up or recovers takes these too and ends as soon as it can.
    const ended =
      (await endProcesses(servers, 'SIGINT', fastMs)) ||
      (await endProcesses(servers, 'SIGQUIT', immediateMs)) ||
      (await endProcesses(servers, 'SIGKILL', killedMs))
    if (!ended) throw stuck(cluster, servers)
  }
  // Backends of a server that was killed: they hold its shared memory, and a new server refuses to
  // start beside them.
  const backends = processesOf(cluster)
  const ended =
    backends.length === 0 ||
    (await endProcesses(backends, 'SIGQUIT', 1_000)) ||
    (await endProcesses(backends, 'SIGKILL', killedMs))
  if (!ended) throw stuck(cluster, backends)
  // PostgreSQL would believe this file if its process id were in use again, be it by a zombie.
  rmSync(join(cluster, 'postmaster.pid'), { force: true })
}

/** Processes that belong to the cluster's server, the server included. */
export function processesOf(cluster: string): ProcessEntry[] {
  const paths = pathsOf(cluster)
  const titles = paths.map((path) => `postgres: ${clusterName(path)}: `)
  return listProcesses().filter((entry) => {
    if (entry.zombie || !looksLikePostgres(entry)) return false
    // A server that has just been spawned is not in its directory yet.
    if (isServerFor(entry, paths)) return true
    const isTitled = () => titles.some((title) => entry.command.startsWith(title))
    // The working directory also knows a cluster that was moved or is reached by another path.
    return worksIn(entry.pid, cluster) ?? isTitled()
  })
}

function serversOf(cluster: string): ProcessEntry[] {
  const paths = pathsOf(cluster)
  const recorded = recordedServer(cluster)?.pid
  return processesOf(cluster).filter((entry) => entry.pid === recorded || isServerFor(entry, paths))
}

/** The cluster's path, and the one that it was moved from while its server ran. */
function pathsOf(cluster: string): string[] {
  const recorded = recordedServer(cluster)
  if (!recorded || recorded.path === cluster) return [cluster]
  // A copy made of a running cluster names a server that is not its own; the original still does too.
  const isCopy = recordedServer(recorded.path)?.pid === recorded.pid
  return isCopy ? [cluster] : [cluster, recorded.path]
}

/** What the lock file of PostgreSQL says: its process id and the path that it was started with. */
function recordedServer(cluster: string): { pid: number; path: string } | null {
  const file = join(cluster, 'postmaster.pid')
  if (!existsSync(file)) return null
  const [pid, path] = readFileSync(file, 'utf8').split('\n')
  return path && Number(pid) > 1 ? { pid: Number(pid), path } : null
}

function isServerFor(entry: ProcessEntry, paths: readonly string[]): boolean {
  return paths.some((path) => entry.command.includes(` -D ${path} `))
}

function looksLikePostgres(entry: ProcessEntry): boolean {
  return entry.command.startsWith('postgres: ') || /(^|\/)postgres -D /.test(entry.command)
}

function stuck(cluster: string, entries: readonly ProcessEntry[]): HookledgerError {
  const pids = entries.map((entry) => entry.pid).join(', ')
  return new HookledgerError(
    'HKL_EMBEDDED_START_FAILED',
    `PostgreSQL processes of an earlier run on ${cluster} do not end (${pids}): end them, then start again.`,
  )
}
