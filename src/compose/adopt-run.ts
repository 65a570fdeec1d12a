/**
 * Writes what is adopted in batches, each a commit of its own that can be repeated; the first that writes
 * something records who adopts what, and why.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { HookledgerError } from '../core/errors.ts'
import { adoptEvents } from '../inbox/adopt-events.ts'
import { wakeParts } from '../inbox/outcome-parts.ts'
import { adoptOrders, OrdersHeld, readSourceIds, type AdoptProblem } from '../ledger/adopt.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { sqlstateOf } from '../postgres/sqlstate.ts'
import type { AdoptLine, EventLine, OrderLine } from '../workflow/adopt-line.ts'

/** What adopting a file came to; the keys are what `--json` prints. */
export interface AdoptReport {
  readonly orders: {
    readonly adopted: number
    readonly same: number
    /** Of which the line says something else than events decided, and which stay as they are. */
    readonly differing: number
  }
  readonly events: { readonly adopted: number; readonly known: number }
  /** Those lines, at most {@link shownDiffering}. */
  readonly differing: readonly AdoptProblem[]
  /** False where it was interrupted; the rest is adopted by the next run. */
  readonly complete: boolean
}

/** Who and why, and how to watch it. */
export interface AdoptControl {
  readonly reason: string
  readonly actor: string
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((lines: number) => void) | undefined
}

/** Lines of one commit, and of one question to the database. */
export const batchLines = 500

/** How many differing lines are kept to be shown. */
export const shownDiffering = 50

/** How long somebody may hold an order before the run gives up, in milliseconds. */
const patienceMs = 30_000

/** What is recorded of a run: in the first commit that adopts something. */
export interface RunDetails {
  readonly file: string
  readonly sha256: string
  readonly orders: number
  readonly events: number
}

/** Writes lines as they come, in batches. */
export class AdoptRun {
  readonly #db: Database
  readonly #ledger: Ledger
  readonly #control: AdoptControl
  readonly #details: RunDetails
  #orders: OrderLine[] = []
  #events: EventLine[] = []
  #isRecorded = false
  #written = 0
  readonly #counts = { adopted: 0, same: 0, differing: 0, events: 0, known: 0 }
  readonly #differing: AdoptProblem[] = []

  constructor(db: Database, ledger: Ledger, control: AdoptControl, details: RunDetails) {
    this.#db = db
    this.#ledger = ledger
    this.#control = control
    this.#details = details
  }

  async add(line: AdoptLine): Promise<void> {
    if (line.kind === 'order') {
      if (this.#orders.push(line) >= batchLines) await this.#flushOrders()
    } else if (this.#events.push(line) >= batchLines) await this.#flushEvents()
  }

  async finish(): Promise<void> {
    await this.#flushOrders()
    await this.#flushEvents()
  }

  report(complete: boolean): AdoptReport {
    const { adopted, same, differing, events, known } = this.#counts
    return {
      orders: { adopted, same, differing },
      events: { adopted: events, known },
      differing: this.#differing,
      complete,
    }
  }

  async #flushOrders(): Promise<void> {
    const lines = this.#orders
    this.#orders = []
    if (lines.length === 0) return
    const { reason, actor } = this.#control
    const db = this.#db
    const context = {
      db,
      ledger: this.#ledger,
      wake: (names: Parameters<typeof wakeParts>[1]) => wakeParts(db.schema, names),
      reason,
      actor,
    }
    const done = await this.#commit(async (tx) => {
      const batch = await adoptOrders(context, tx, lines)
      return { ...batch, wrote: batch.adopted > 0 }
    })
    this.#counts.adopted += done.adopted
    this.#counts.same += done.same
    this.#counts.differing += done.differing.length
    this.#differing.push(...done.differing.slice(0, shownDiffering - this.#differing.length))
    this.#progress(lines.length)
  }

  async #flushEvents(): Promise<void> {
    const lines = this.#events
    this.#events = []
    if (lines.length === 0) return
    const { reason, actor } = this.#control
    const { adopted } = await this.#commit(async (tx) => {
      const sourceIds = await readSourceIds(
        this.#db,
        tx,
        lines.map(({ source }) => source),
        true,
      )
      const events = lines.map((line) => ({ ...line, sourceId: sourceIds(line.source) }))
      const count = await adoptEvents(this.#db.schema, tx, events, { reason, actor })
      return { adopted: count, wrote: count > 0 }
    })
    this.#counts.events += adopted
    this.#counts.known += lines.length - adopted
    this.#progress(lines.length)
  }

  #progress(lines: number): void {
    this.#written += lines
    this.#control.onProgress?.(this.#written)
  }

  /** One batch in one commit, with the record of the run where it is the first that writes. */
  async #commit<T extends { readonly wrote: boolean }>(
    work: (tx: Executor) => Promise<T>,
  ): Promise<T> {
    const until = performance.now() + patienceMs
    for (let attempt = 1; ; attempt++) {
      try {
        const done = await this.#db.transaction(
          async (tx) => {
            const answer = await work(tx)
            if (answer.wrote && !this.#isRecorded) await this.#record(tx)
            return answer
          },
          { setup: `set local lock_timeout = '500ms'` },
        )
        this.#isRecorded ||= done.wrote
        return done
      } catch (error) {
        if (!isPassing(error) || performance.now() > until) throw error
        await sleep(Math.min(1000, 50 * attempt))
      }
    }
  }

  async #record(tx: Executor): Promise<void> {
    const { reason, actor } = this.#control
    await tx.query({
      text: `insert into ${this.#db.schema}operator_acts (act, target, reason, actor, details)
        values ('adopt', 'file:' || $1::text, $2, $3, $4::text::jsonb)`,
      values: [this.#details.file, reason, actor, JSON.stringify(this.#details)],
    })
  }
}

/** Somebody held an order, wrote the same, or the COMMIT's answer was lost: adopting again is safe. */
function isPassing(error: unknown): boolean {
  if (error instanceof OrdersHeld) return true
  if (error instanceof HookledgerError) return error.code === 'HKL_TRANSACTION_UNKNOWN'
  return ['55P03', '40P01', '40001', '23505'].includes(sqlstateOf(error) ?? '')
}
