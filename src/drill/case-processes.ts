/**
 * The processes of one case: one for each role. Whatever ends is started again without faults, as whoever runs a shop has
 * set it up; what is stopped is outlived by another process before it goes on.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ChildPool, DrillProcess } from './child-process.ts'
import type { DrillRole } from './messages.ts'
import type { Asked } from './oracle/verdict.ts'

/** How long a stopped process is stopped, in milliseconds. */
const stoppedMs = 600
/** How long a process may fail to start while the database is away, in milliseconds. */
const startMs = 15_000

/** What the processes of a case need. */
export interface ProcessesOptions {
  readonly pool: ChildPool
  readonly ask: <T>(work: (db: Asked) => Promise<T>) => Promise<T>
}

/** The processes of one case. */
export class CaseProcesses {
  readonly #pool: ChildPool
  readonly #ask: ProcessesOptions['ask']
  readonly #children = new Map<DrillRole, DrillProcess>()
  /** Stopped once, and continued: no longer looked after. */
  readonly #beside: DrillProcess[] = []
  readonly #reached = new Set<string>()
  #keeping = false
  #kept: Promise<void> = Promise.resolve()
  #port = 0
  /** Ends that no fault explains. */
  readonly died: string[] = []
  /** What it said when it could not start. */
  refused: string | null = null
  /** Faults that happened, as they were told or seen. */
  readonly faults: string[] = []
  /** When the last process was started again, in milliseconds of `performance.now()`. */
  healedAt: number | null = null
  #plannedKills = new Set<DrillProcess>()

  constructor({ pool, ask }: ProcessesOptions) {
    this.#pool = pool
    this.#ask = ask
  }

  get port(): number {
    return this.#port
  }

  /** The steps that a process reached, where it lived to tell. */
  get reached(): ReadonlySet<string> {
    return this.#reached
  }

  /** Starts a role. @throws ChildFailure where the product refuses to start */
  async start(role: DrillRole, plan = ''): Promise<void> {
    const child = await this.#pool.take(role)
    this.#children.set(role, child)
    if (plan.includes(':kill')) this.#plannedKills.add(child)
    try {
      const port = await child.open(role, plan)
      if (role === 'receive') this.#port = port
      if (role === 'reconcile') await child.reconcile()
    } catch (error) {
      // it suffered its fault while it started: whoever runs it starts it again, and so does the keeper
      if (plan === '' || !(child.isGone || child.fault !== null)) throw error
      this.#plannedKills.add(child)
      await child.end()
    }
  }

  child(role: DrillRole): DrillProcess | undefined {
    return this.#children.get(role)
  }

  /** Begins to start again what ends. */
  keep(): void {
    this.#keeping = true
    this.#kept = this.#keepOn()
  }

  async #keepOn(): Promise<void> {
    while (this.#keeping) {
      for (const [role, child] of this.#children) await this.#look(role, child)
      await sleep(10)
    }
  }

  async #look(role: DrillRole, child: DrillProcess): Promise<void> {
    if (child.fault !== null && !this.faults.includes(`${role} ${child.fault}`))
      this.faults.push(`${role} ${child.fault}`)
    if (child.isGone) {
      const how = await child.exited
      if (this.#plannedKills.has(child) && how.includes('SIGKILL'))
        this.faults.push(`${role} killed`)
      else this.died.push(`${role}: ${how}`)
      this.#pool.giveBack(child)
      return this.#again(role)
    }
    if (child.fault === 'stop' && !this.#beside.includes(child)) return this.#outlive(role, child)
  }

  async #again(role: DrillRole): Promise<void> {
    const until = performance.now() + startMs
    for (;;) {
      try {
        await this.start(role)
        this.healedAt = performance.now()
        return
      } catch (error) {
        const child = this.#children.get(role)
        if (child !== undefined) this.#pool.giveBack(child)
        if (performance.now() > until || !this.#keeping) {
          this.refused = error instanceof Error ? error.message : String(error)
          this.#children.delete(role)
          return
        }
        await sleep(100)
      }
    }
  }

  /** Another process goes on beside the stopped one; its session ends, as the server itself ends it; then it wakes. */
  async #outlive(role: DrillRole, child: DrillProcess): Promise<void> {
    this.#beside.push(child)
    await sleep(stoppedMs / 2)
    await this.#ask((db) =>
      db.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and state like 'idle in transaction%' and pid <> pg_backend_pid()`,
      ),
    )
    await this.#again(role)
    await sleep(stoppedMs / 2)
    child.signal('SIGCONT')
  }

  /** Ends every role; the processes are there for the next case. */
  async stop(): Promise<void> {
    this.#keeping = false
    await this.#kept
    const all = [...this.#children.values(), ...this.#beside]
    this.#children.clear()
    this.#beside.length = 0
    await Promise.all(
      all.map(async (child) => {
        try {
          // connections that are no longer read stay so: of such a process nothing more can be expected
          if (child.fault === 'dbhole') await child.end()
          if (!child.isGone) for (const step of await child.close()) this.#reached.add(step)
        } catch {
          await child.end() // one that does not answer any more is of no use to the next case
        }
        this.#pool.giveBack(child)
      }),
    )
  }
}
