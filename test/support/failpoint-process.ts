/** Starts failpoint-driver.ts in a process of its own and follows what it says. */
import { spawn, type ChildProcess } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Limits } from '../../src/core/limits.ts'

/** What the driver is told; sent as JSON. */
export interface DriverSettings {
  readonly url: string
  readonly app: 'shop' | 'probe'
  readonly receives?: boolean
  readonly works?: boolean
  readonly loops?: number
  readonly limits?: Partial<Limits>
  readonly watchdogMs?: number
  readonly queryTimeoutMs?: number
}

/** A running driver. */
export interface Driver {
  readonly pid: number
  /** Where it receives; 0 where it does not. */
  readonly port: number
  /** The faults that it said would happen, as `step action`. */
  readonly faults: readonly string[]
  /** Everything that it said. */
  readonly lines: readonly string[]
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>
  isRunning(): boolean
  signal(signal: NodeJS.Signals): void
  /** Resolves when it has said that so many faults would happen, or is gone. */
  faulted(count?: number): Promise<void>
  /** Ends it for good, stopped or not. */
  end(): Promise<void>
}

const script = fileURLToPath(new URL('./failpoint-driver.ts', import.meta.url))

/** Starts a driver and resolves when it is ready, or was ended or stopped by its own faults before. */
export async function startDriver(
  settings: DriverSettings,
  plan = '',
  nodeOptions: readonly string[] = [],
): Promise<Driver> {
  return startScript(script, settings, plan, nodeOptions)
}

/** The same with another script that says `ready PORT`, `fault STEP NTH ACTION` and `broken WHY`. */
export async function startScript(
  file: string,
  settings: object,
  plan = '',
  nodeOptions: readonly string[] = [],
): Promise<Driver> {
  const child = spawn(
    process.execPath,
    [...nodeOptions, '--import', 'tsx', file, JSON.stringify(settings)],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, HOOKLEDGER_FAULT_PLAN: plan },
    },
  )
  const follower = follow(child)
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) =>
    child.once('exit', (code, signal) => resolve({ code, signal })),
  )
  const isRunning = (): boolean => child.exitCode === null && child.signalCode === null
  const port = await Promise.race([
    follower.ready,
    exited.then(() => 0),
    follower.said((lines) => lines.some((line) => line.endsWith(' stop'))).then(() => 0),
  ])
  const broken = follower.lines.find((line) => line.startsWith('broken'))
  if (broken !== undefined)
    throw new Error(`the driver could not start: ${broken}\n${follower.lines.join('\n')}`)
  const faults = (): string[] =>
    follower.lines
      .filter((line) => line.startsWith('fault '))
      .map((line) =>
        line
          .split(' ')
          .filter((_, at) => at === 1 || at === 3)
          .join(' '),
      )
  return {
    pid: child.pid ?? 0,
    port,
    exited,
    isRunning,
    lines: follower.lines,
    get faults() {
      return faults()
    },
    signal: (signal) => void child.kill(signal),
    faulted: (count = 1) =>
      Promise.race([follower.said(() => faults().length >= count), exited.then(() => {})]),
    async end() {
      if (isRunning()) child.kill('SIGKILL')
      await exited
    },
  }
}

interface Follower {
  readonly lines: string[]
  readonly ready: Promise<number>
  said(holds: (lines: readonly string[]) => boolean): Promise<void>
}

function follow(child: ChildProcess): Follower {
  const lines: string[] = []
  const watchers = new Set<() => void>()
  const said: Follower['said'] = (holds) =>
    new Promise((resolve) => {
      const look = (): void => {
        if (!holds(lines)) return
        watchers.delete(look)
        resolve()
      }
      watchers.add(look)
      look()
    })
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line)
      for (const watcher of [...watchers]) watcher()
    })
  }
  const ready = said((seen) => seen.some((line) => line.startsWith('ready '))).then(() =>
    Number(lines.find((line) => line.startsWith('ready '))?.slice(6)),
  )
  return { lines, ready, said }
}
