/**
 * Counts what was refused, in memory, and writes the counts at most once a second. A request that
 * proved nothing causes no database work of its own, and counting never delays or fails an answer.
 */
import type { Signals } from '../core/signals.ts'
import type { Database } from '../postgres/executor.ts'

/** What the counter needs. */
export interface RejectionsOptions {
  readonly database: Database
  readonly signals: Signals
  /** Milliseconds between writes. Default 1000. */
  readonly writeEveryMs?: number
}

/** Different counters kept between two writes; sources and reasons are few, so this is a guard. */
const mostCounters = 1000

/** The source that stands for all that are not configured: their names are the sender's to invent. */
export const unknownSource = '(unknown)'

interface Counter {
  readonly source: string
  readonly reason: string
  times: number
}

/** Counters of refused requests, by source and reason. */
export class Rejections {
  readonly #database: Database
  readonly #signals: Signals
  readonly #writeEveryMs: number
  #counters = new Map<string, Counter>()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> | undefined
  #stopped = false

  constructor(options: RejectionsOptions) {
    this.#database = options.database
    this.#signals = options.signals
    this.#writeEveryMs = options.writeEveryMs ?? 1000
  }

  /** Counts one refusal and signals it. `source` is a configured name or `unknownSource`. */
  count(source: string, reason: string, status: number): void {
    this.#signals.emit('inbox.request.rejected', { source, reason, status })
    this.#add(source, reason, 1)
    this.#scheduleWrite()
  }

  /** Writes what is counted and stops. A failure of the database only loses these last counts. */
  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#writing
    await this.#write()
  }

  #add(source: string, reason: string, times: number): void {
    const key = `${source} ${reason}`
    const counter = this.#counters.get(key)
    if (counter !== undefined) counter.times += times
    else if (this.#counters.size < mostCounters) this.#counters.set(key, { source, reason, times })
  }

  #scheduleWrite(): void {
    if (this.#stopped || this.#timer !== undefined || this.#writing !== undefined) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#writing = this.#write().finally(() => {
        this.#writing = undefined
        if (this.#counters.size > 0) this.#scheduleWrite()
      })
    }, this.#writeEveryMs)
    this.#timer.unref()
  }

  async #write(): Promise<void> {
    const counters = [...this.#counters.values()]
    if (counters.length === 0) return
    this.#counters = new Map()
    try {
      await this.#database.query({
        text: `insert into ${this.#database.schema}rejections as r (source, reason, times)
select i.source, i.reason, i.times
from unnest($1::text[], $2::text[], $3::bigint[]) i(source, reason, times)
order by i.source, i.reason
on conflict (source, reason, minute) do update
set times = r.times + excluded.times, last_at = excluded.last_at`,
        values: [
          counters.map(({ source }) => source),
          counters.map(({ reason }) => reason),
          counters.map(({ times }) => times),
        ],
      })
    } catch {
      for (const { source, reason, times } of counters) this.#add(source, reason, times)
    }
  }
}
