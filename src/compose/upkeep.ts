/**
 * Retention, which runs by itself: partitions ahead, bodies and identities gone when their time is
 * over. Every step is a function of the schema, bounded and safe to run by many at once; a receiver
 * runs them too, so that an endpoint stays healthy when no worker is there.
 */
import type { Limits } from '../core/limits.ts'
import type { Signals } from '../core/signals.ts'
import type { Database, Value } from '../postgres/executor.ts'
import { describeDatabaseError } from '../postgres/sqlstate.ts'

/** What one round of upkeep did. */
export interface UpkeepReport {
  readonly partitionsMade: number
  /** Bodies of unfinished events that were moved aside before their day was dropped. */
  readonly bodiesHeld: number
  readonly partitionsDropped: number
  readonly identitiesDropped: number
  readonly rejectionsDropped: number
  /** Requests of finished operations, past the time in which their key is known. */
  readonly requestsDropped: number
  /** Answers of providers whose bytes are no longer kept. */
  readonly evidenceDropped: number
}

/** At most this many rows go in one step: a bounded transaction each time. */
const atOnce = 1000
/** At most this many steps of a kind in one round; the next round goes on. */
const steps = 100
/** A step may have to look through a whole day of events. */
const stepMs = 600_000
/** Refusals are counted by the minute; after so many days nobody asks. */
const rejectionDays = 30

/** Makes and drops what is due. */
export async function runUpkeep(
  db: Database,
  limits: Pick<Limits, 'partitionsAheadDays' | 'payloadRetentionDays' | 'identityRetentionDays'>,
): Promise<UpkeepReport> {
  const { payloadRetentionDays: payloadDays, identityRetentionDays: identityDays } = limits
  await storeRetention(db, payloadDays, identityDays)
  return {
    partitionsMade: await call(db, 'make_payload_partitions($1)', [limits.partitionsAheadDays]),
    bodiesHeld: await repeat(() => call(db, 'hold_payloads($1, $2)', [payloadDays, atOnce])),
    partitionsDropped: await call(db, 'drop_payload_partitions($1)', [payloadDays]),
    identitiesDropped: await repeat(() =>
      call(db, 'drop_identities($1, $2)', [identityDays, atOnce]),
    ),
    rejectionsDropped: await call(db, 'drop_rejections($1)', [rejectionDays]),
    requestsDropped: await repeat(() => call(db, 'drop_requests($1)', [atOnce])),
    evidenceDropped: await repeat(() => call(db, 'drop_evidence($1, $2)', [payloadDays, atOnce])),
  }
}

async function call(db: Database, text: string, values: Value[]): Promise<number> {
  return db.transaction(
    async (tx) => {
      const [row] = await tx.query<{ n: number }>({
        text: `select ${db.schema}${text} as n`,
        values,
        withinMs: stepMs + 5000,
      })
      return row?.n ?? 0
    },
    // its locks stand in the way of every delivery: nobody may keep them who is not at work
    {
      setup: `set local statement_timeout = ${stepMs}; set local idle_in_transaction_session_timeout = 2000`,
    },
  )
}

async function repeat(step: () => Promise<number>): Promise<number> {
  let all = 0
  for (let count = 0; count < steps; count++) {
    const done = await step()
    all += done
    if (done < atOnce) break
  }
  return all
}

/** What is stored holds for those who may not change it: a receiver cannot have less kept. */
async function storeRetention(
  db: Database,
  payloadDays: number,
  identityDays: number,
): Promise<void> {
  const [right] = await db.query<{ may: boolean }>({
    text: `select has_column_privilege($1, 'payload_days', 'update') as may`,
    values: [`${db.schema}retention`],
  })
  if (right?.may !== true) return
  await db.query({
    text: `update ${db.schema}retention set payload_days = $1::integer, identity_days = $2::integer, changed_at = now()
      where payload_days <> $1::integer or identity_days <> $2::integer`,
    values: [payloadDays, identityDays],
  })
}

/** How often a receiver runs upkeep, in milliseconds: a worker runs it far more often. */
const arrivalEveryMs = 3_600_000

/**
 * Runs upkeep now and then while deliveries arrive: no timer, and never in the way of an answer. The
 * first round comes at a random moment of the first minutes, so that receivers that start together do
 * not do it together.
 *
 * @returns what stops it, and resolves when a round under way has ended
 */
export function upkeepOnArrival(
  signals: Signals,
  run: () => Promise<unknown>,
  everyMs: number = arrivalEveryMs,
): () => Promise<void> {
  let dueAt = performance.now() + (everyMs / 12) * Math.random()
  let running: Promise<unknown> = Promise.resolve()
  const unhear = signals.on('inbox.events.stored', () => {
    const now = performance.now()
    if (now < dueAt) return
    dueAt = now + everyMs
    running = run().catch((error: unknown) => {
      signals.emit('worker.loop.failed', { loop: 'upkeep', message: describeDatabaseError(error) })
    })
  })
  return async () => {
    unhear()
    await running
  }
}
