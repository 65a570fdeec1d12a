/**
 * The work and dispatch roles in a process of its own: an event that ends, exhausts or blocks it takes nothing else
 * down. A worker that dies is started again, later each time; one that is stopped may finish what it
 * has in hand.
 */
import { fork, type ChildProcess } from 'node:child_process'
import { HookledgerError } from '../core/errors.ts'
import type { LogLevel } from '../observe/log.ts'
import type { WorkOrder, WorkReport, WorkRole } from './work-messages.ts'

/** How the worker is started and who is told. */
export interface WorkProcessOptions {
  /** Arguments of the command line that runs the worker. */
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly onReport: (report: Exclude<WorkReport, { kind: 'ready' | 'awake' }>) => void
  /** Told when a worker ended that nobody stopped, and that another one is started. */
  readonly onDeath: (how: string, restartMs: number) => void
}

const firstDelayMs = 100
/**
 * The longest delay after one that had been at work: an event ended it, which happens three times at
 * most for each such event, and all others wait for the next worker meanwhile.
 */
const workedDelayMs = 500
/** After one that never came to work: the database is away, and starting in vain costs. */
const failedDelayMs = 10_000
/** A worker that lived for so long has proved that it can: the next delay is the first again. */
const provenMs = 10_000
/** How long the first worker may take until it is ready. */
const readyWithinMs = 60_000

/** A worker process that is kept running. */
export class WorkProcess {
  readonly #options: WorkProcessOptions
  #hasSpawned = false
  #child: ChildProcess | undefined
  #restart: NodeJS.Timeout | undefined
  #level: LogLevel | undefined
  #delayMs = firstDelayMs
  #stopping = false
  #isReady = false
  #wakeUnderWay = false
  readonly #wakeWanted = new Set<WorkRole>()

  constructor(options: WorkProcessOptions) {
    this.#options = options
  }

  /** The worker's process id, while there is one. */
  get pid(): number | undefined {
    return this.#child?.pid
  }

  /**
   * Starts the worker and resolves when it is at work.
   *
   * @throws HookledgerError HKL_WORKER_STOPPED when the first one ends before that; it said why itself.
   */
  async start(): Promise<void> {
    const child = this.#spawn()
    let timer: NodeJS.Timeout | undefined
    try {
      await new Promise<void>((resolve, reject) => {
        const failed = (how: string): void =>
          reject(
            new HookledgerError(
              'HKL_WORKER_STOPPED',
              `the worker process ${how} before it was ready: its own line above says why`,
            ),
          )
        timer = setTimeout(
          () => failed(`did not answer for ${readyWithinMs / 1000} s`),
          readyWithinMs,
        )
        child.on('message', (report: WorkReport) => {
          if (report.kind === 'ready') resolve()
        })
        child.once('exit', (code, signal) => failed(endOf(code, signal)))
      })
    } catch (error) {
      this.kill()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }

  /** Tells the worker that there is something to do in a role. Never queues more than one such message. */
  wake(role: WorkRole): void {
    this.#wakeWanted.add(role)
    // one that is not at work yet looks for work by itself, but may have looked a moment too early
    if (!this.#wakeUnderWay && this.#isReady) this.#wakeNow()
  }

  /** Changes how much the worker logs, and workers after it. */
  setLogLevel(level: LogLevel): void {
    this.#level = level
    this.#send({ kind: 'log', level })
  }

  /** Lets the worker finish what is in hand within `timeoutMs`, then ends it. Resolves when it is gone. */
  async stop(timeoutMs: number): Promise<void> {
    this.#stopping = true
    clearTimeout(this.#restart)
    const child = this.#child
    if (child === undefined) return
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()))
    this.#send({ kind: 'stop', timeoutMs })
    // it keeps its own time; this is for one whose event loop does not turn
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs + 2000)
    await gone
    clearTimeout(timer)
  }

  /** Ends the worker at once: its transaction is rolled back, nothing is lost. */
  kill(): void {
    this.#stopping = true
    clearTimeout(this.#restart)
    this.#child?.kill('SIGKILL')
  }

  #spawn(): ChildProcess {
    const { args, env } = this.#options
    // the entry that runs this process runs the worker too, with whatever loads TypeScript for it
    const level = this.#level === undefined ? [] : ['--log-level', this.#level]
    const child = fork(process.argv[1] ?? '', [...args, ...level], {
      // a planned fault strikes the first worker only: the one after it is the recovery
      env: this.#hasSpawned ? { ...env, HOOKLEDGER_FAULT_PLAN: '' } : env,
      // results belong to this process: what the worker prints is narration
      stdio: ['ignore', 2, 2, 'ipc'],
      serialization: 'json',
    })
    const bornAt = performance.now()
    this.#hasSpawned = true
    this.#child = child
    this.#isReady = false
    this.#wakeUnderWay = false
    child.on('message', (report: WorkReport) => this.#receive(report))
    child.on('error', () => {}) // 'exit' follows, or the fork itself failed and 'exit' is all there is
    child.once('exit', (code, signal) =>
      this.#died(child, endOf(code, signal), performance.now() - bornAt),
    )
    return child
  }

  #receive(report: WorkReport): void {
    switch (report.kind) {
      case 'ready':
        this.#isReady = true
        return this.#wakeNow()
      case 'awake':
        this.#wakeUnderWay = false
        return this.#wakeNow()
      default:
        this.#options.onReport(report)
    }
  }

  #wakeNow(): void {
    if (this.#wakeWanted.size === 0) return
    const roles = [...this.#wakeWanted]
    this.#wakeWanted.clear()
    this.#wakeUnderWay = this.#send({ kind: 'wake', roles })
  }

  #died(child: ChildProcess, how: string, livedMs: number): void {
    if (this.#child === child) this.#child = undefined
    if (this.#stopping) return
    if (livedMs >= provenMs) this.#delayMs = firstDelayMs
    const delayMs = Math.min(this.#delayMs, this.#isReady ? workedDelayMs : failedDelayMs)
    this.#delayMs = delayMs * 2
    this.#options.onDeath(how, delayMs)
    this.#restart = setTimeout(() => this.#spawn(), delayMs)
  }

  #send(order: WorkOrder): boolean {
    const child = this.#child
    if (child?.connected !== true) return false
    child.send(order, () => {}) // a channel that closes meanwhile belongs to a worker that ends
    return true
  }
}

function endOf(code: number | null, signal: NodeJS.Signals | null): string {
  return signal === null ? `ended with exit code ${code}` : `was ended by ${signal}`
}
