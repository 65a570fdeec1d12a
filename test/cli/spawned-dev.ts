/** The command line as processes of its own: a `dev` or `start`, and commands beside it. */
import { spawn, type ChildProcess } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { signStripe } from '../../src/testing/sign.ts'

const root = join(import.meta.dirname, '../..')
const script = join(root, 'scripts/hookledger.mjs')

/** How a process ended and what it printed. */
export interface Ended {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  readonly stdout: string
  readonly stderr: string
}

/** The signing secret of the demo shop where none is configured. */
export const secret = 'whsec_development_only_0123456789'

/** A process of the command line. */
export class Spawned {
  readonly child: ChildProcess
  readonly ended: Promise<Ended>
  stdout = ''
  stderr = ''

  constructor(line: readonly string[], env: Readonly<Record<string, string>>) {
    this.child = spawn(process.execPath, [script, ...line], {
      cwd: root,
      env: { PATH: process.env['PATH'], HOME: process.env['HOME'], PORT: '0', ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.child.stdout?.on('data', (chunk) => (this.stdout += String(chunk)))
    this.child.stderr?.on('data', (chunk) => (this.stderr += String(chunk)))
    this.ended = new Promise((resolve) =>
      this.child.once('close', (code, signal) =>
        resolve({ code, signal, stdout: this.stdout, stderr: this.stderr }),
      ),
    )
  }

  get pid(): number {
    return this.child.pid ?? 0
  }

  /** Waits until `find` finds something, or this process ends. */
  async until<T>(
    find: () => T | undefined | null | false | Promise<T | undefined | null | false>,
  ): Promise<T> {
    for (let tries = 0; tries < 1200; tries++) {
      const found = await find()
      if (found) return found
      if (this.child.exitCode !== null || this.child.signalCode !== null) break
      await sleep(50)
    }
    throw new Error(`it did not come to that\n${this.stdout}\n${this.stderr}`)
  }
}

/** Runs one command to its end. */
export function runProcess(
  line: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Ended> {
  return new Spawned(line, env).ended
}

/** What `dev.json` says. */
export interface DevJson {
  readonly url: string
  readonly databaseUrl: string
  readonly pid: number
  readonly providerUrl: string
  readonly emailUrl: string
}

/** Waits until a `dev` has written its file and says that it is ready. */
export async function untilReady(dev: Spawned, dataDir: string): Promise<DevJson> {
  return dev.until(async () => {
    const file = join(dataDir, 'dev.json')
    if (!existsSync(file)) return null
    const found = JSON.parse(readFileSync(file, 'utf8')) as DevJson
    return found.pid === dev.pid && (await isReady(found.url)) ? found : null
  })
}

/** Whether `/readyz` answers 200. */
export async function isReady(url: string): Promise<boolean> {
  try {
    return (await fetch(`${url}/readyz`)).status === 200
  } catch {
    return false
  }
}

/** Posts a signed event; the status that was answered. */
export async function post(url: string, event: object): Promise<number> {
  const body = JSON.stringify(event)
  const response = await fetch(`${url}/webhooks/stripe`, {
    method: 'POST',
    body,
    headers: signStripe(body, secret),
  })
  return response.status
}

/** The process ids of a process's children. */
export function childrenOf(pid: number): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()
  return text === '' ? [] : text.split(' ').map(Number)
}

/** Whether a process is there. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
