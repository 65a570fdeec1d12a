/**
 * Events that an app handled before Hookledger was there: their identities are recorded as ignored, with no body,
 * so that a late delivery or a pass over the provider's records does not handle them again.
 */
import type { Executor } from '../postgres/executor.ts'

/** Why an adopted event is ignored. */
export const adoptedReason = 'adopted'

/** An event that was handled, under the number of its namespace. */
export interface HandledEvent {
  readonly sourceId: number
  readonly id: string
  readonly type: string
  readonly occurredAt: Date | null
}

/** How many are new. Those that are in the inbox already stay what they are. */
export async function adoptEvents(
  schema: string,
  tx: Executor,
  events: readonly HandledEvent[],
  by: { readonly reason: string; readonly actor: string },
): Promise<number> {
  const s = schema
  const rows = await tx.query({
    text: `with stored as (
        insert into ${s}inbox_events (source_id, event_id, event_type, via, occurred_at, body_sha256, body_bytes)
        select source_id, event_id, event_type, 'app', occurred_at, sha256(''::bytea), 0
        from unnest($1::integer[], $2::text[], $3::text[], $4::timestamptz[])
          as n(source_id, event_id, event_type, occurred_at)
        order by source_id, event_id collate "C"
        on conflict (source_id, event_id) do nothing
        returning event_key, event_type, received_at),
      decided as (
        insert into ${s}ledger_decisions (event_key, kind, final, reason, evidence, actor)
        select event_key, 'ignored', false, '${adoptedReason}', jsonb_build_object('because', $5::text), $6::text
        from stored returning 1)
      insert into ${s}inbox_ignored (event_key, received_on, reason, event_type)
      select event_key, (received_at at time zone 'UTC')::date, '${adoptedReason}', event_type from stored
      returning 1`,
    values: [
      events.map((each) => each.sourceId),
      events.map((each) => each.id),
      events.map((each) => each.type),
      events.map((each) => each.occurredAt?.toISOString() ?? null),
      by.reason,
      by.actor,
    ],
  })
  return rows.length
}
