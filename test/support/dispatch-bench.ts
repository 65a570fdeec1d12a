/** A migrated database with destinations under a test's hand, and what tests of the outbox do with it. */
import { createHookledger, type Hookledger, type HookledgerOptions } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import type { HookledgerParts } from '../../src/compose/parts.ts'
import type { Destination } from '../../src/outbox/destination.ts'
import { createBench, type Bench } from './hookledger-database.ts'

/** An operation as its table has it. */
export interface OperationRow {
  readonly operation_id: string
  readonly state: string
  readonly key_generation: number
  readonly attempts: number
  readonly calls: number
  readonly lookups: number
  readonly flagged: boolean
  readonly next_attempt_at: Date | null
  readonly first_attempt_at: Date | null
  readonly uncertain_since: Date | null
  readonly lease: string | null
  readonly receipt: Record<string, unknown> | null
  readonly last_error: string | null
  readonly finished_at: Date | null
}

/** An attempt with its answer. */
export interface AttemptRow {
  readonly number: number
  readonly kind: string
  readonly key_generation: number
  readonly outcome: string | null
  readonly late: boolean | null
  readonly status: number | null
  readonly error: string | null
}

/** What tests of the outbox work with. */
export interface OutboxBench extends Bench {
  readonly parts: HookledgerParts
  /** Another process's Hookledger over the same database. */
  another(destinations: Readonly<Record<string, Destination>>): Hookledger
  add(to: string, key: string, body?: unknown, order?: string): Promise<string>
  run(): Promise<void>
  operation(id: string): Promise<OperationRow>
  attempts(id: string): Promise<AttemptRow[]>
  findings(id: string): Promise<{ readonly kind: string; readonly state: string }[]>
  /** As if so much time had gone by for an operation: its times are moved into the past. */
  age(id: string, ms: number): Promise<void>
  /** Makes whatever waits for a time due now. */
  due(): Promise<void>
  clear(): Promise<void>
}

/** A bench over these destinations. */
export async function createOutboxBench(
  destinations: Readonly<Record<string, Destination>>,
  options: Omit<HookledgerOptions, 'database' | 'destinations' | 'sources'> &
    Partial<Pick<HookledgerOptions, 'sources'>> = {},
): Promise<OutboxBench> {
  const bench = await createBench({ sources: {}, ...options, destinations })
  const others: Hookledger[] = []
  const parts = partsOf(bench.hookledger)
  await parts.register()
  return {
    ...bench,
    parts,
    another(given) {
      const other = createHookledger({
        sources: {},
        ...options,
        destinations: given,
        database: bench.database.pool({ max: 10, options: '-c search_path=hookledger,public' }),
      })
      others.push(other)
      return other
    },
    async add(to, key, body = { key }, order) {
      const client = await bench.pool.connect()
      try {
        await client.query('begin')
        await bench.hookledger.outbox.add(client, { to, key, body, order })
        await client.query('commit')
      } finally {
        client.release()
      }
      const [row] = await bench.rows<{ id: string }>(
        'select operation_id::text as id from outbox_operations where destination = $1 and name = $2',
        [to, key],
      )
      return row?.id ?? ''
    },
    async run() {
      await bench.hookledger.runOnce({ budgetMs: 15_000 })
    },
    async operation(id) {
      const [row] = await bench.rows<OperationRow>(
        'select * from outbox_operations where operation_id = $1',
        [id],
      )
      if (row === undefined) throw new Error(`there is no operation ${id}`)
      return row
    },
    attempts: (id) =>
      bench.rows<AttemptRow>(
        `select a.number, a.kind, a.key_generation, w.outcome, w.late, w.status, w.error
         from outbox_attempts a left join outbox_answers w on w.attempt_id = a.attempt_id
         where a.operation_id = $1 order by a.number`,
        [id],
      ),
    findings: (id) =>
      bench.rows(
        `select kind, state from findings where evidence ->> 'operation' = $1 order by kind`,
        [id],
      ),
    async age(id, ms) {
      await bench.rows(
        `update outbox_operations set
           first_attempt_at = first_attempt_at - $2 * interval '1 millisecond',
           uncertain_since = uncertain_since - $2 * interval '1 millisecond',
           leased_until = leased_until - $2 * interval '1 millisecond',
           next_attempt_at = next_attempt_at - $2 * interval '1 millisecond'
         where operation_id = $1`,
        [id, ms],
      )
    },
    async due() {
      await bench.rows(
        `update outbox_operations set next_attempt_at = now() - interval '1 second' where next_attempt_at > now()`,
      )
    },
    async clear() {
      await bench.rows(
        `update outbox_operations set state = 'discarded', next_attempt_at = null, lease = null, leased_until = null,
           finished_at = now() where state not in ('sent', 'canceled', 'discarded')`,
      )
      await bench.rows(
        'update outbox_destinations set under_way = 0, failures = 0, closed_until = null, tokens = 0',
      )
      await bench.rows('delete from findings')
      await bench.rows('delete from outbox_wakes')
    },
    async close() {
      for (const other of others) await other.stop()
      await bench.close()
    },
  }
}
