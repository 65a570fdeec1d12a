/** Where workflows in shadow differ from the app: as the last comparison left it. */
import { toJson } from '../core/json.ts'
import type { Database } from '../postgres/executor.ts'
import { storable } from '../postgres/storable-text.ts'
import type { ShadowDifference } from '../workflow/shadow-difference.ts'

/** A stretch of subjects that was gone through: what it does not name any more is not in shadow. */
export interface JudgedSubjects {
  /** The stretch begins behind this one. */
  readonly after: string
  readonly until: string
  /** Those of it that were judged; the others keep what is stored. */
  readonly judged: readonly string[]
}

/** Replaces what is stored about a stretch of subjects. What differs as before keeps its first time. */
export async function replaceDifferences(
  db: Database,
  { after, until, judged }: JudgedSubjects,
  found: readonly ShadowDifference[],
): Promise<void> {
  const s = db.schema
  const sorted = found.map((each) => ({ ...each, orders: toJson(each.orderIds) }))
  await db.transaction(async (tx) => {
    await tx.query({
      text: `delete from ${s}shadow_differences d
        where d.subject > $1 and d.subject <= $2
          and (d.subject = any ($3::text[]) or not exists (
            select from ${s}entitlements e join ${s}orders o on o.order_id = e.order_id
            join ${s}shadow_workflows h on h.workflow = o.workflow and h.ended_at is null
            where e.subject = d.subject))
          and not exists (select from unnest($4::text[], $5::text[]) as n(subject, entitlement)
            where n.subject = d.subject and n.entitlement = d.entitlement)`,
      values: [
        after,
        until,
        judged,
        sorted.map((each) => each.subject),
        sorted.map((each) => each.entitlement),
      ],
    })
    await tx.query({
      text: `insert into ${s}shadow_differences as d (subject, entitlement, kind, here, there, order_ids)
        select subject, entitlement, kind, here::jsonb, there::jsonb,
          array(select jsonb_array_elements_text(orders::jsonb))
        from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
          as n(subject, entitlement, kind, here, there, orders)
        order by subject collate "C", entitlement collate "C"
        on conflict (subject, entitlement) do update set kind = excluded.kind, here = excluded.here,
          there = excluded.there, order_ids = excluded.order_ids, last_seen_at = now()`,
      values: [
        sorted.map((each) => storable(each.subject)),
        sorted.map((each) => storable(each.entitlement)),
        sorted.map((each) => each.kind),
        sorted.map((each) => (each.here === null ? null : toJson(each.here))),
        sorted.map((each) => (each.there === null ? null : toJson(each.there))),
        sorted.map((each) => each.orders),
      ],
    })
  })
}

/** Stores what a comparison over all subjects came to. */
export async function storeComparison(
  db: Database,
  counts: {
    readonly subjects: number
    readonly differences: number
    readonly tooYoung: number
  },
): Promise<void> {
  await db.query({
    text: `insert into ${db.schema}shadow_comparisons (compared_at, subjects, differences, too_young)
      values (now(), $1::bigint, (select count(*) from ${db.schema}shadow_differences), $2::bigint)
      on conflict (one_row) do update set compared_at = excluded.compared_at, subjects = excluded.subjects,
        differences = excluded.differences, too_young = excluded.too_young`,
    values: [counts.subjects, counts.tooYoung],
  })
}
