/**
 * Adopts a file: every line is read and held to configuration and database before anything is written; then
 * it is written in batches, each a commit of its own. What was adopted before is left alone, so that an
 * interruption, or a second run, does no harm.
 */
import { basename } from 'node:path'
import { HookledgerError } from '../core/errors.ts'
import { adoptionProblems, type AdoptProblem } from '../ledger/adopt.ts'
import { createLedger, type Ledger } from '../ledger/ledger.ts'
import { registerStates } from '../ledger/register.ts'
import type { Database } from '../postgres/executor.ts'
import { installation } from '../postgres/migrate.ts'
import {
  LineError,
  readAdoptLine,
  type AdoptKnown,
  type AdoptLine,
  type AdoptNamespace,
  type OrderLine,
} from '../workflow/adopt-line.ts'
import type { Workflow } from '../workflow/workflow.ts'
import { AdoptRun, batchLines, type AdoptControl, type AdoptReport } from './adopt-run.ts'
import type { ResolvedConfig } from './options.ts'
import { eachLine } from './text-lines.ts'

/** What a file says, and what speaks against it. */
export interface AdoptCheck {
  readonly sha256: string
  readonly orders: number
  readonly events: number
  /** Of the lines, at most {@link shownProblems}. */
  readonly problems: readonly AdoptProblem[]
  /** All of them. */
  readonly problemCount: number
  /** Lines that say something else than events decided, at most {@link shownProblems}: it stays as decided. */
  readonly differing: readonly AdoptProblem[]
  /** All of those. */
  readonly differingCount: number
}

/** How many problems are kept to be shown. */
export const shownProblems = 50

/** A file to be adopted. */
export class Adoption {
  readonly #db: Database
  readonly #known: AdoptKnown
  readonly #file: string
  readonly #policy: ResolvedConfig['findings']
  readonly #workflows = new Set<Workflow>()

  constructor(db: Database, config: ResolvedConfig, file: string) {
    this.#db = db
    this.#file = file
    this.#policy = config.findings
    this.#known = {
      workflows: config.registry.workflows,
      sources: new Map(
        [...config.sources].map(([name, { source, account, environment }]) => [
          name,
          {
            provider: source.provider,
            account,
            environment,
            allowsAccount: (other: string) => source.allowsAccount(other),
          },
        ]),
      ),
    }
  }

  /** Reads every line and says what speaks against adopting it. Writes nothing. */
  async check(onProgress: (lines: number) => void = () => {}): Promise<AdoptCheck> {
    const ledger = await this.#ledger()
    const found: AdoptProblem[] = []
    const seen = new Map<string, number>()
    const differing: AdoptProblem[] = []
    let differingCount = 0
    let count = 0
    let orders = 0
    let events = 0
    const add = (problem: AdoptProblem): void => {
      count += 1
      if (found.length < shownProblems) found.push(problem)
    }
    let batch: OrderLine[] = []
    const judge = async (): Promise<void> => {
      if (batch.length === 0) return
      const outlook = await adoptionProblems({ db: this.#db, ledger }, batch)
      for (const each of outlook.problems) add(each)
      differingCount += outlook.differing.length
      differing.push(...outlook.differing.slice(0, shownProblems - differing.length))
      batch = []
    }
    const sha256 = await eachLine(this.#file, async (text, number) => {
      try {
        const line = readAdoptLine(text, number, this.#known)
        requireNew(seen, line)
        if (line.kind === 'event') events += 1
        else {
          orders += 1
          this.#workflows.add(line.workflow)
          if (batch.push(line) >= batchLines) await judge()
        }
      } catch (error) {
        if (!(error instanceof LineError)) throw error
        add({ line: number, message: error.message })
      }
      if (number % batchLines === 0) onProgress(number)
      return true
    })
    await judge()
    const problems = found.sort((a, b) => a.line - b.line)
    return { sha256, orders, events, problems, problemCount: count, differing, differingCount }
  }

  /**
   * Adopts the file that was checked.
   *
   * @throws HookledgerError HKL_ADOPT_INVALID where the file changed since, or a line contradicts what was
   * recorded since; what was adopted before stays
   */
  async write(checked: AdoptCheck, control: AdoptControl): Promise<AdoptReport> {
    const ledger = await this.#ledger()
    await this.#registerStates()
    const run = new AdoptRun(this.#db, ledger, control, {
      file: basename(this.#file),
      sha256: checked.sha256,
      orders: checked.orders,
      events: checked.events,
    })
    const sha256 = await eachLine(this.#file, async (text, number) => {
      const stops = control.signal?.aborted === true
      if (!stops) await run.add(readAdoptLine(text, number, this.#known))
      return !stops
    }).catch((error: unknown) => {
      throw error instanceof LineError ? changedFile(this.#file) : error
    })
    if (control.signal?.aborted === true) return run.report(false)
    await run.finish()
    if (sha256 !== checked.sha256) throw changedFile(this.#file)
    return run.report(true)
  }

  async #ledger(): Promise<Ledger> {
    return createLedger(this.#db, await installation(this.#db), this.#policy)
  }

  /** Decisions name registered states, and adopting comes before the first start. */
  async #registerStates(): Promise<void> {
    await this.#db.transaction(async (tx) => {
      for (const workflow of this.#workflows) await registerStates(this.#db, tx, workflow)
    })
  }
}

function changedFile(file: string): HookledgerError {
  return new HookledgerError(
    'HKL_ADOPT_INVALID',
    `${file} changed while it was adopted: run it again, what is adopted is left alone`,
  )
}

/** One thing stands in one line: two lines about it would contradict one another or mean nothing. */
function requireNew(seen: Map<string, number>, line: AdoptLine): void {
  for (const [what, key] of keysOf(line)) {
    const earlier = seen.get(key)
    if (earlier !== undefined) throw new LineError(`${what} stands in line ${earlier} too`)
    seen.set(key, line.line)
  }
}

function keysOf(line: AdoptLine): [what: string, key: string][] {
  const within = ({ provider, account }: AdoptNamespace): string => `${provider}\n${account}`
  if (line.kind === 'event')
    return [[`event ${line.id}`, `event\n${within(line.source)}\n${line.id}`]]
  return [
    [`order ${line.id}`, `order\n${line.id}`],
    ...line.names.map(({ source, kind, value }): [string, string] => [
      `${kind} ${value}`,
      `name\n${within(source)}\n${kind}\n${value}`,
    ]),
    ...line.payments.map(({ source, id }): [string, string] => [
      `payment ${id}`,
      `payment\n${within(source)}\n${id}`,
    ]),
  ]
}
