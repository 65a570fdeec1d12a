/**
 * Who said what about a subject or a provider's customer, and why: its links, and the merges of what it is one
 * with. By index, and only for what was asked as one of the two.
 */
import type { Database } from '../postgres/executor.ts'
import { presentSubject } from '../postgres/present-subject.ts'
import type { Subject } from './find-subject.ts'
import type { ActView } from './record-views.ts'
import { requiredTime } from './row-values.ts'

/** A link of a customer, or a merge of a subject. */
export interface SubjectActView extends ActView {
  /** Which subject the customer is, or into which one the target was merged: as it was said then. */
  readonly subject: string
  /** `stripe:stripe:live`, which knows the customer; null for a merge. */
  readonly source: string | null
}

/** Most names, and most acts, that are told. */
const most = 100

/** Reads them in the order of their doing; none for what is neither a subject nor a customer. */
export async function actsAboutSubjects(
  db: Database,
  { kind, id }: Pick<Subject, 'kind' | 'id'>,
): Promise<SubjectActView[]> {
  if (kind !== 'subject' && kind !== 'customer') return []
  const s = db.schema
  const asked =
    kind === 'subject'
      ? 'select $1::text as subject'
      : `select l.subject from ${s}sources n join ${s}customer_links l
          on l.source_id = n.source_id and l.customer_id = $1 and l.subject is not null`
  const rows = await db.query<Omit<SubjectActView, 'acted_at'> & { acted_at: Date | string }>({
    text: `with now as materialized (
        select distinct ${presentSubject(s, 'a.subject')} as subject from (${asked}) a),
      names as materialized (
        select subject from now
        union all
        select m.from_subject from now cross join lateral (
          select from_subject from ${s}subject_merges m where m.into_subject = now.subject limit ${most}) m),
      targets as materialized (
        select 'subject:' || subject as target from names
        union
        select 'customer:' || l.customer_id from names cross join lateral (
          select customer_id from ${s}customer_links l where l.subject = names.subject limit ${most}) l
        ${kind === 'customer' ? `union select 'customer:' || $1` : ''})
      select a.act, a.target, a.reason, a.actor, a.acted_at, a.details ->> 'source' as source,
        coalesce(a.details ->> 'into', a.details ->> 'subject') as subject
      from targets t cross join lateral (
        select * from ${s}operator_acts o
        where o.target = t.target and o.act in ('customer link', 'subject merge') offset 0) a
      order by a.act_id limit ${most}`,
    values: [id],
  })
  return rows.map((row) => ({ ...row, acted_at: requiredTime(row.acted_at) }))
}
