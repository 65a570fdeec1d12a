/**
 * An event that is decided already asks its provider anew, as one that is not does: it waits for a request that
 * is numbered from now on, which the gatherer's own code makes at once. What it waited by goes when it was decided
 * or given up, so that nothing of it is left on any list.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Executor } from '../postgres/executor.ts'
import { gatheredEvent } from '../workflow/gathering.ts'
import type { InboxEvent } from '../workflow/event.ts'
import type { Claim } from '../workflow/resolve-event.ts'
import { lookedAtBy, readAnswers, withCustomers, type Look, type LookedAt } from './answers.ts'
import { EventFailure } from './batch-failure.ts'
import type { WorkContext } from './work-batch.ts'

/** Asks at once for what these events wait for; resolves whether none of them waits any more. */
export type GatherNow = (keys: readonly bigint[], budgetMs: number) => Promise<boolean>

/** How long an answer is waited for, in milliseconds. */
const answerWithinMs = 15_000

/**
 * Asks, in the transaction that holds the order's lock. A gathering that is done anew goes on with the numbers
 * of the one before it.
 */
export async function askAnew(ctx: WorkContext, tx: Executor, claim: Claim): Promise<void> {
  const s = ctx.db.schema
  const { event, candidate } = claim
  const { orderId, sourceId, kind, objectId } = lookedAtBy(claim)
  const key = [orderId, sourceId, kind, objectId]
  await tx.query({
    text: `insert into ${s}looked_at (order_id, source_id, kind, object_id, workflow, sent, answered)
      select $1, $2, $3, $4, $5, n.number, n.number from (
        select coalesce(max(e.number), 0) as number from ${s}evidence e
        where e.order_id = $1 and e.source_id = $2 and e.kind = $3 and e.object_id = $4) n
      on conflict (order_id, source_id, kind, object_id) do nothing`,
    values: [...key, candidate.workflow.name],
  })
  const [row] = await tx.query<{ wanted: string }>({
    text: `select (sent + 1)::text as wanted from ${s}looked_at
      where order_id = $1 and source_id = $2 and kind = $3 and object_id = $4 for update`,
    values: key,
  })
  const wanted = row?.wanted ?? '1'
  const eventKey = event.key.toString()
  await tx.query({
    text: `insert into ${s}inbox_gathers (event_key, received_on, order_id, source_id, kind, object_id, wanted, attempts)
      values ($5::bigint, $6::date, $1, $2, $3, $4, $7::bigint, 0)
      on conflict (event_key) do update set wanted = excluded.wanted, waiting = true, tries = 0`,
    values: [...key, eventKey, event.receivedAt.toISOString().slice(0, 10), wanted],
  })
  await tx.query({
    text: `insert into ${s}fetches as f (order_id, source_id, kind, object_id, workflow, event_type, event_key, wanted)
      values ($1, $2, $3, $4, $5, $6, $7::bigint, $8::bigint)
      on conflict (order_id, source_id, kind, object_id) do update set wanted = greatest(f.wanted, excluded.wanted),
        workflow = excluded.workflow, event_type = excluded.event_type, event_key = excluded.event_key`,
    values: [...key, candidate.workflow.name, event.eventType, eventKey, wanted],
  })
}

/** @throws HookledgerError HKL_RECONCILE_UNAVAILABLE where the provider does not answer in time */
export async function answered(gatherNow: GatherNow | undefined, event: InboxEvent): Promise<void> {
  if (gatherNow !== undefined && (await gatherNow([event.key], answerWithinMs))) return
  throw new HookledgerError(
    'HKL_RECONCILE_UNAVAILABLE',
    `${event.eventType} ${event.eventId} is decided from what its provider answers, and it did not answer: nothing was decided, try again`,
  )
}

/** The claim with what was answered for it, and the customer that it names; or what the workflow's code threw. */
export async function withInputs(
  ctx: WorkContext,
  tx: Executor,
  claim: Claim,
): Promise<
  { readonly ready: Claim; readonly looks: ReadonlyMap<bigint, Look> } | { readonly error: unknown }
> {
  const { db, reading, limits } = ctx
  const answers = await readAnswers(db, tx, [claim], reading, limits.evidenceMs)
  const [failure] = answers.failures
  if (failure !== undefined) return { error: failure.error }
  try {
    const [ready = claim] = await withCustomers(db, tx, answers.claims)
    return { ready, looks: answers.looks }
  } catch (error) {
    if (error instanceof EventFailure) return { error: error.cause }
    throw error
  }
}

/** Takes away what an event of this kind waited by: it has a final decision, and is on no list. */
export async function forgetAsking(ctx: WorkContext, claim: Claim): Promise<void> {
  const { db } = ctx
  const at = lookedAtBy(claim)
  await db.transaction(
    async (tx) => {
      const s = db.schema
      const key = [at.orderId, at.sourceId, at.kind, at.objectId]
      // what is looked at comes before requests, as everywhere
      await tx.query({
        text: `select 1 from ${s}looked_at where order_id = $1 and source_id = $2 and kind = $3 and object_id = $4 for update`,
        values: key,
      })
      const own = [claim.event.key.toString()]
      await tx.query({
        text: `delete from ${s}inbox_gathers where event_key = $1::bigint`,
        values: own,
      })
      await tx.query({
        text: `delete from ${s}inbox_ready r where r.event_key = $1::bigint
          and exists (select 1 from ${s}ledger_decisions d where d.event_key = r.event_key and d.final)`,
        values: own,
      })
      await tx.query({
        text: `delete from ${s}fetches f where f.order_id = $1 and f.source_id = $2 and f.kind = $3 and f.object_id = $4
          and not exists (select 1 from ${s}inbox_gathers g where g.order_id = f.order_id and g.source_id = f.source_id
            and g.kind = f.kind and g.object_id = f.object_id and g.waiting)`,
        values: key,
      })
      if (at.kind === gatheredEvent) await forgetGathering(tx, s, at)
    },
    { setup: `set local lock_timeout = ${ctx.limits.lockTimeoutMs}` },
  )
}

/** A gathering is looked at until it is decided, and not longer. */
async function forgetGathering(tx: Executor, s: string, at: LookedAt): Promise<void> {
  await tx.query({
    text: `delete from ${s}looked_at where order_id = $1 and source_id = $2 and kind = $3 and object_id = $4`,
    values: [at.orderId, at.sourceId, at.kind, at.objectId],
  })
}
