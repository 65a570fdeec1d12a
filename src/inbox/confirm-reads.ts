/** What confirming reads: the order, for one subject only, and what is not decided yet. */
import type { Database } from '../postgres/executor.ts'
import { subjectAsAsked } from '../postgres/present-subject.ts'

/** An entitlement of the order that is active now. */
export interface ConfirmedEntitlement {
  readonly entitlement: string
  readonly quantity: number
  readonly validUntil: Date | null
}

/** The order as the subject may see it. */
export interface ConfirmedOrder {
  readonly state: string
  readonly subject: string | null
  /** Whether the order has an entitlement of this subject, active or not. */
  readonly hasSubject: boolean
  /** Whether it has one of somebody else. */
  readonly hasOthers: boolean
  /** The subject's own that are active now. */
  readonly entitlements: readonly ConfirmedEntitlement[]
}

/** Reads it; null where there is no such order. */
export async function readOrderFor(
  db: Database,
  { order, subject }: { readonly order: string; readonly subject: string },
): Promise<ConfirmedOrder | null> {
  const s = db.schema
  const rows = await db.query<{
    state: string
    subject: string | null
    entitlement: string | null
    quantity: string | null
    valid_until: Date | string | null
    is_active: boolean | null
    has_others: boolean
  }>({
    text: `select o.state, ${subjectAsAsked(s, 'o.subject', '$2::text')} as subject, t.entitlement, t.quantity, t.valid_until,
        t.active and (t.valid_until is null or t.valid_until > now()) as is_active,
        exists (select 1 from ${s}entitlements x where x.order_id = o.order_id
          and ${subjectAsAsked(s, 'x.subject', '$2::text')} <> $2) as has_others
      from ${s}orders o
      left join ${s}entitlements t on t.order_id = o.order_id and ${subjectAsAsked(s, 't.subject', '$2::text')} = $2
      where o.order_id = $1 order by t.entitlement`,
    values: [order, subject],
  })
  const [first] = rows
  if (first === undefined) return null
  return {
    state: first.state,
    subject: first.subject,
    hasSubject: rows.some(({ entitlement }) => entitlement !== null),
    hasOthers: first.has_others,
    entitlements: rows.flatMap(
      ({ entitlement, quantity, valid_until: until, is_active: active }) =>
        entitlement === null || active !== true
          ? []
          : [
              {
                entitlement,
                quantity: Number(quantity),
                validUntil: until === null ? null : new Date(until),
              },
            ],
    ),
  }
}

/** Those of the events that have no final decision and are not ignored. */
export async function unfinishedAmong(
  db: Database,
  keys: readonly bigint[],
): Promise<readonly bigint[]> {
  const s = db.schema
  const rows = await db.query<{ event_key: string }>({
    text: `select k.event_key::text as event_key from unnest($1::bigint[]) as k(event_key)
      where not exists (select 1 from ${s}ledger_decisions d where d.event_key = k.event_key and d.final)
        and not exists (select 1 from ${s}inbox_ignored i where i.event_key = k.event_key)`,
    values: [keys.map(String)],
  })
  return rows.map((row) => BigInt(row.event_key))
}
