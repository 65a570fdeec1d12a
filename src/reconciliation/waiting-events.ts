/**
 * What waits in the inbox to be decided, and keeps a record from being judged: a backlog of its type, since the
 * record's own event may be in it under another id, or an event of its order that was woken just now.
 */
import type { Database, Executor } from '../postgres/executor.ts'

/** What has waited on the ready list for longer than this, in milliseconds, is a backlog. */
const backlogMs = 10_000

/**
 * Whether there is a backlog of type `k.event_type` of source $1. Events that came back to the ready list are
 * none, however long ago they were received: one that a decision woke would keep a whole page from being judged.
 */
export function backlogSql(s: string): string {
  return `
  select 1 from ${s}inbox_ready r join ${s}inbox_events e on e.event_key = r.event_key
  where e.source_id = $1 and e.event_type = k.event_type and r.attempts = 0
    and e.received_at < now() - interval '${backlogMs} milliseconds'
    and not exists (select 1 from ${s}ledger_decisions d where d.event_key = r.event_key and not d.final offset 0)
    and not exists (select 1 from ${s}inbox_gathers g where g.event_key = r.event_key offset 0)`
}

/** An order, and the type of an event that a record would put in for it. */
export interface OrderAndType {
  readonly orderId: string | null
  readonly eventType: string
}

/** Those of whose order an event of the type was put off before, and is ready to be decided again. */
export async function wokenFor<T extends OrderAndType>(
  { db, tx }: { readonly db: Database; readonly tx: Executor },
  asked: readonly T[],
): Promise<ReadonlySet<T>> {
  const s = db.schema
  const claimed = asked.filter(({ orderId }) => orderId !== null)
  if (claimed.length === 0) return new Set()
  const rows = await tx.query<{ position: number }>({
    text: `select k.position::integer as position
      from unnest($1::text[], $2::text[]) with ordinality as k(order_id, event_type, position)
      where exists (
        select 1 from ${s}ledger_decisions d
        cross join lateral (select 1 from ${s}inbox_ready r where r.event_key = d.event_key offset 0) r
        cross join lateral (select i.event_type from ${s}inbox_events i where i.event_key = d.event_key offset 0) e
        where d.order_id = k.order_id collate "C" and not d.final and e.event_type = k.event_type offset 0)`,
    repeated: true,
    values: [claimed.map(({ orderId }) => orderId), claimed.map(({ eventType }) => eventType)],
  })
  return new Set(rows.flatMap(({ position }) => claimed[position - 1] ?? []))
}
