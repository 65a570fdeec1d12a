/**
 * The net under asking: an event that waits for a request which is not there becomes ready and asks again, and
 * what is left of an event that went another way is dropped. Nothing should ever be caught.
 */
import { keyedPlans } from '../postgres/keyed-plans.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { runParts, type WritePart } from '../postgres/write-parts.ts'
import type { Registry } from '../workflow/registry.ts'
import type { LookedAt } from './answers.ts'
import { lookedAtOf, type LockedRow } from './gather/due.ts'

/** Makes ready what waits in vain; resolves with how many events that were. */
export async function rescueGathers(db: Database): Promise<number> {
  const s = db.schema
  return db.transaction(
    async (tx) => {
      const rows = await tx.query({
        text: `with lost as materialized (
            select g.event_key from ${s}inbox_gathers g
            where g.waiting and g.asked_at < clock_timestamp() - interval '5 seconds' and not exists (
              select from ${s}fetches f where f.order_id = g.order_id and f.source_id = g.source_id and f.kind = g.kind
                and f.object_id = g.object_id and f.wanted >= g.wanted)
            order by g.event_key limit 500 for update skip locked),
          gone as (delete from ${s}inbox_gathers g using lost l where g.event_key = l.event_key
            returning g.event_key, g.received_on, g.attempts, g.deadline_at, g.waits_for, g.overdue)
          insert into ${s}inbox_ready (event_key, received_on, attempts, deadline_at, waits_for, overdue)
          select * from gone order by event_key on conflict (event_key) do nothing returning 1`,
      })
      // its workflow no longer looks at anything, or it was decided by another door
      await tx.query({
        text: `delete from ${s}inbox_gathers where event_key in (
            select g.event_key from ${s}inbox_gathers g
            where not g.waiting and g.asked_at < clock_timestamp() - interval '1 minute'
              and not exists (select from ${s}inbox_ready r where r.event_key = g.event_key)
              and not exists (select from ${s}inbox_delayed d where d.event_key = g.event_key)
              and not exists (select from ${s}inbox_suspects u where u.event_key = g.event_key)
            order by g.event_key limit 500 for update skip locked)`,
      })
      return rows.length
    },
    { setup: keyedPlans },
  )
}

/** What releasing needs: whether this process is the newest of its configuration, and what it looks at. */
export interface ReleaseContext {
  readonly db: Database
  readonly registry: Registry
  readonly mayIgnore: (tx: Executor) => Promise<boolean>
  /** Closes what was found about requests that nobody makes any more. */
  readonly unaskedFindings: (looked: readonly LookedAt[]) => readonly WritePart[]
}

interface DroppedRow extends LockedRow {
  readonly told: boolean
  readonly readied: string
}

/**
 * Drops requests of workflows and types that look at nothing any more, and makes ready what waits for them:
 * it is decided, or ignored, under the present configuration. Only the newest process does. Resolves with how
 * many events that were.
 */
export async function releaseUnasked(context: ReleaseContext): Promise<number> {
  const { db, registry, mayIgnore, unaskedFindings } = context
  const s = db.schema
  return db.transaction(
    async (tx) => {
      const types = await tx.query<{ workflow: string; event_type: string }>({
        text: `select distinct workflow, event_type from ${s}fetches`,
      })
      const unasked = types.filter(({ workflow, event_type: type }) => {
        const handler = registry.workflows.get(workflow)?.handlers.get(type)
        return handler?.mirror === undefined && handler?.gather === undefined
      })
      if (unasked.length === 0 || !(await mayIgnore(tx))) return 0
      const rows = await tx.query<DroppedRow>({
        // what is looked at before the request, as everybody locks them
        text: `with k as (select * from unnest($1::text[], $2::text[]) as n(workflow, event_type)),
            due as materialized (
              select f.order_id, f.source_id, f.kind, f.object_id, f.told
              from k join ${s}fetches f on f.workflow = k.workflow and f.event_type = k.event_type
              join ${s}looked_at l on l.order_id = f.order_id and l.source_id = f.source_id and l.kind = f.kind and l.object_id = f.object_id
              order by f.order_id, f.source_id, f.kind, f.object_id limit 500 for update of l, f skip locked),
            dropped as (
              delete from ${s}fetches f using due d where f.order_id = d.order_id and f.source_id = d.source_id
                and f.kind = d.kind and f.object_id = d.object_id),
            gone as (
              delete from ${s}inbox_gathers g using due d where g.waiting and g.order_id = d.order_id and g.source_id = d.source_id
                and g.kind = d.kind and g.object_id = d.object_id
              returning g.event_key, g.received_on, g.attempts, g.deadline_at, g.waits_for, g.overdue),
            readied as (
              insert into ${s}inbox_ready (event_key, received_on, attempts, deadline_at, waits_for, overdue)
              select * from gone order by event_key on conflict (event_key) do nothing returning 1)
          select order_id, source_id, kind, object_id, told, (select count(*) from readied) as readied from due`,
        values: [unasked.map((each) => each.workflow), unasked.map((each) => each.event_type)],
      })
      const findings = unaskedFindings(rows.filter(({ told }) => told).map(lookedAtOf))
      if (findings.length > 0) await runParts(tx, findings)
      return Number(rows[0]?.readied ?? 0)
    },
    { setup: keyedPlans },
  )
}
