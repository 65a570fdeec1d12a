/**
 * The row that says which events a worker has in its hands. It is committed before any code of the user's
 * runs and locked until the batch ends: whoever can lock it knows that the worker died.
 */
import { randomUUID } from 'node:crypto'
import type { Database, Executor } from '../postgres/executor.ts'
import { BatchOutdated } from './batch-failure.ts'
import type { ClaimedRow } from './claim.ts'

/** The row of one batch. */
export class BatchRow {
  readonly id: string = randomUUID()
  readonly #db: Database
  readonly #worker: string
  readonly #alone: boolean
  #registered = false

  constructor(db: Database, worker: string, alone: boolean) {
    this.#db = db
    this.#worker = worker
    this.#alone = alone
  }

  /**
   * Commits the batch row on a second connection; the claiming transaction locks it before any code of
   * the user's runs: whoever can lock it later knows that this worker died with the batch in its hands.
   * It need not be flushed: a server that loses it has ended the claiming transaction too.
   */
  async register(rows: readonly ClaimedRow[]): Promise<void> {
    const db = this.#db
    this.#registered = true
    await db.query({
      text: `insert into ${db.schema}inbox_batches (batch_id, event_keys, alone, worker)
        select $1::uuid, $2::bigint[], $3::boolean, $4
        from (select set_config('synchronous_commit', 'off', true)) as unflushed`,
      repeated: true,
      values: [this.id, rows.map((row) => row.key.toString()), this.#alone, this.#worker],
    })
  }

  async lock(tx: Executor): Promise<void> {
    const db = this.#db
    const locked = await tx.query({
      text: `select 1 from ${db.schema}inbox_batches where batch_id = $1 for update`,
      repeated: true,
      values: [this.id],
    })
    if (locked.length === 0) throw new BatchOutdated()
  }

  async unregister(): Promise<void> {
    if (!this.#registered) return
    const db = this.#db
    try {
      await db.query({
        text: `delete from ${db.schema}inbox_batches where batch_id = $1`,
        values: [this.id],
      })
    } catch {
      // the row stays, and its events will run alone once: slower, and just as safe
    }
  }
}
