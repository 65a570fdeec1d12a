/**
 * A child process of a drill, as its parent sees it: asked one thing at a time, killed at any time. What it said last is
 * no proof of anything: that it is gone is what counts.
 */
import { fork, type ChildProcess } from 'node:child_process'
import type { FaultAction } from '../testing/fault-plan.ts'
import type { AppActs, ChildOrder, ChildReport, DrillRole, PureReport } from './messages.ts'

/** How the program that runs children is started. */
export interface ChildProgram {
  /** The module that is run, and what it is given. */
  readonly module: string
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly cwd?: string | undefined
}

/** How long a child may take until it has loaded the configuration, and for one order, in milliseconds. */
const readyMs = 90_000
const orderMs = 30_000
/** How long it may take to end a role: one that hangs is killed and replaced. */
const closeMs = 8000

/** A child that refused or could not do what it was asked; its own words. */
export class ChildFailure extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
    this.name = 'ChildFailure'
  }
}

/** A child that is gone. */
export class ChildGone extends Error {
  constructor(how: string) {
    super(`a child process ${how}`)
    this.name = 'ChildGone'
  }
}

/** One child process. */
export class DrillProcess {
  readonly #child: ChildProcess
  readonly #wake: (role: DrillRole) => void
  readonly ready: Promise<void>
  /** How it ended. */
  readonly exited: Promise<string>
  #isGone = false
  #waiting:
    { take(report: ChildReport): void; gone(how: string): void; stopped(): void } | undefined
  #fault: FaultAction | null = null
  #role: DrillRole | null = null

  constructor(program: ChildProgram, wake: (role: DrillRole) => void) {
    this.#wake = wake
    this.#child = fork(program.module, [...program.args], {
      env: program.env,
      ...(program.cwd !== undefined && { cwd: program.cwd }),
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      serialization: 'json',
    })
    let last = ''
    this.#child.stderr?.on('data', (bytes: Buffer) => {
      last = `${last}${bytes.toString('utf8')}`.slice(-4000)
    })
    this.#child.on('error', () => {})
    this.exited = new Promise((resolve) =>
      this.#child.once('exit', (code, signal) => {
        this.#isGone = true
        const lines = last.trim().split('\n')
        const said = lines.find((line) => /error/i.test(line)) ?? lines.at(-1) ?? ''
        const how =
          signal === null
            ? `ended with exit code ${code}${said === '' ? '' : `: ${said}`}`
            : `was ended by ${signal}`
        this.#waiting?.gone(how)
        resolve(how)
      }),
    )
    this.ready = this.#expect(null, 'ready', readyMs).then(() => {})
    this.ready.catch(() => {})
    this.#child.on('message', (report: ChildReport) => this.#receive(report))
  }

  get isGone(): boolean {
    return this.#isGone
  }

  /** The fault that it said would happen, since it was last opened. */
  get fault(): FaultAction | null {
    return this.#fault
  }

  get role(): DrillRole | null {
    return this.#role
  }

  /** Becomes one role of the product, with faults planned; answers the port where it receives. */
  async open(role: DrillRole, plan = ''): Promise<number> {
    this.#fault = null
    this.#role = role
    await this.ready
    const report = await this.#expect({ kind: 'open', role, plan }, 'opened')
    return report.kind === 'opened' ? report.port : 0
  }

  async act(acts: AppActs): Promise<void> {
    await this.#expect({ kind: 'act', acts }, 'done')
  }

  async reconcile(): Promise<void> {
    await this.#expect({ kind: 'reconcile' }, 'done')
  }

  async check(seed: number, samples: number): Promise<PureReport> {
    await this.ready
    const report = await this.#expect({ kind: 'check', seed, samples }, 'checked', 300_000)
    if (report.kind !== 'checked') throw new ChildGone('did not answer')
    return report.report
  }

  /** Ends the role; the process goes on. Answers the steps that were reached. */
  async close(): Promise<readonly string[]> {
    this.#role = null
    const report = await this.#expect({ kind: 'close' }, 'closed', closeMs)
    return report.kind === 'closed' ? report.reached : []
  }

  wake(): void {
    this.#tell({ kind: 'wake' })
  }

  signal(signal: 'SIGKILL' | 'SIGCONT' | 'SIGSTOP'): void {
    this.#child.kill(signal)
  }

  async end(): Promise<void> {
    if (!this.#isGone) this.#child.kill('SIGKILL')
    await this.exited
  }

  #receive(report: ChildReport): void {
    if (report.kind === 'fault') {
      this.#fault = report.action
      // one that is stopped while it starts says nothing more until it is continued
      if (report.action === 'stop') this.#waiting?.stopped()
    } else if (report.kind === 'wake') this.#wake(report.role)
    else this.#waiting?.take(report)
  }

  #tell(order: ChildOrder): void {
    if (this.#child.connected) this.#child.send(order, () => {})
  }

  #expect(
    order: ChildOrder | null,
    kind: ChildReport['kind'],
    withinMs: number = orderMs,
  ): Promise<ChildReport> {
    return new Promise((resolve, reject) => {
      if (this.#isGone) return reject(new ChildGone('is gone'))
      const timer = setTimeout(() => {
        this.#waiting = undefined
        reject(new ChildGone(`did not answer within ${withinMs / 1000} s`))
      }, withinMs)
      const finish = (): void => {
        clearTimeout(timer)
        this.#waiting = undefined
      }
      this.#waiting = {
        take(report) {
          // what was stopped says late that it had opened
          if (report.kind === 'opened' && kind !== 'opened') return
          finish()
          if (report.kind === kind) resolve(report)
          else if (report.kind === 'failed') reject(new ChildFailure(report.code, report.message))
          else reject(new ChildGone(`said "${report.kind}" where "${kind}" was expected`))
        },
        stopped() {
          if (kind !== 'opened') return
          finish()
          resolve({ kind: 'opened', port: 0 })
        },
        gone(how) {
          finish()
          reject(new ChildGone(how))
        },
      }
      if (order !== null) this.#tell(order)
    })
  }
}

/** Children for the cases of a drill: what was killed is replaced by one that has loaded the configuration already. */
export class ChildPool {
  readonly #program: ChildProgram
  readonly #spares: number
  readonly #idle: DrillProcess[] = []
  readonly #all = new Set<DrillProcess>()
  readonly #open = new Map<DrillRole, DrillProcess>()

  /** @param spares how many are kept ready */
  constructor(program: ChildProgram, spares: number) {
    this.#program = program
    this.#spares = spares
  }

  /** Starts what is missing, without waiting for it. */
  warm(): void {
    while (this.#idle.length < this.#spares) this.#idle.push(this.#start())
  }

  /** A child that is ready, for a role. */
  async take(role: DrillRole): Promise<DrillProcess> {
    const child = this.#idle.shift() ?? this.#start()
    this.warm()
    await child.ready
    this.#open.set(role, child)
    return child
  }

  /** Takes one back whose role is closed; one that is gone is forgotten. */
  giveBack(child: DrillProcess): void {
    for (const [role, each] of this.#open) if (each === child) this.#open.delete(role)
    if (child.isGone) this.#all.delete(child)
    else this.#idle.unshift(child)
    while (this.#idle.length > this.#spares + 3) void this.#idle.pop()?.end()
  }

  async end(): Promise<void> {
    await Promise.all([...this.#all].map((child) => child.end()))
  }

  #start(): DrillProcess {
    const child = new DrillProcess(this.#program, (role) => this.#open.get(role)?.wake())
    this.#all.add(child)
    return child
  }
}
