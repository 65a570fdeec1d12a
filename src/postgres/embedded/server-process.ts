/**
 * One running server: started in a session of its own, so that a Ctrl-C on the terminal does not reach
 * it, and stopped in bounded time with nothing left behind. A parent that exits without stopping it
 * tells it to shut down; a parent that is killed leaves it to the next start.
 */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { endProcesses } from './end-processes.ts'
import { processesOf } from './orphan.ts'
import type { Runtime } from './runtime.ts'
import type { ServerAccount } from './server-account.ts'
import type { ServerLog } from './server-log.ts'

/** How a server ended. */
export interface ServerExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

/** `fast` writes a checkpoint and ends sessions; `immediate` is a crash that the next start recovers. */
export type StopMode = 'fast' | 'immediate'

/** A spawned server. */
export interface ServerProcess {
  readonly pid: number
  readonly exited: Promise<ServerExit>
  hasExited(): boolean
  stop(mode: StopMode): Promise<void>
}

const fastMs = 30_000
const immediateMs = 10_000
const killedMs = 10_000

const running = new Set<ChildProcess>()

/** Spawns the server; it is not yet ready. */
export async function spawnServer(
  runtime: Runtime,
  account: ServerAccount | null,
  args: readonly string[],
  cluster: string,
  log: ServerLog,
): Promise<ServerProcess> {
  const child = spawn(runtime.postgres, args, {
    ...account,
    cwd: '/',
    env: { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' },
    stdio: ['ignore', log.fd, log.fd],
    detached: true,
  })
  await new Promise<void>((resolve, reject) => {
    child.once('spawn', resolve)
    child.once('error', reject)
  })
  if (running.size === 0) process.on('exit', shutDownAll)
  running.add(child)
  let exit: ServerExit | null = null
  const exited = new Promise<ServerExit>((resolve) => {
    child.once('exit', (code, signal) => {
      running.delete(child)
      if (running.size === 0) process.off('exit', shutDownAll)
      exit = { code, signal }
      resolve(exit)
    })
  })
  let stopping: Promise<void> | null = null
  const stop = (mode: StopMode) => {
    // A second, harder wish is passed on while the first is still under way.
    if (stopping && mode === 'immediate') child.kill('SIGQUIT')
    return (stopping ??= stopServer(child, exited, mode, cluster))
  }
  return { pid: child.pid ?? 0, exited, hasExited: () => exit !== null, stop }
}

async function stopServer(
  child: ChildProcess,
  exited: Promise<ServerExit>,
  mode: StopMode,
  cluster: string,
): Promise<void> {
  const steps: [NodeJS.Signals, number][] = [
    ['SIGQUIT', immediateMs],
    ['SIGKILL', killedMs],
  ]
  if (mode === 'fast') steps.unshift(['SIGINT', fastMs])
  for (const [signal, timeoutMs] of steps) {
    child.kill(signal)
    if (await endsWithin(exited, timeoutMs)) break
  }
  // After a clean end there is nobody; after a kill, backends that were busy have not noticed yet.
  await endProcesses(processesOf(cluster), 'SIGKILL', killedMs)
}

async function endsWithin(exited: Promise<ServerExit>, timeoutMs: number): Promise<boolean> {
  const timer = new AbortController()
  try {
    const timeout = sleep(timeoutMs, false, { signal: timer.signal }).catch(() => false)
    return await Promise.race([exited.then(() => true), timeout])
  } finally {
    timer.abort()
  }
}

function shutDownAll(): void {
  for (const child of running) child.kill('SIGINT')
}
