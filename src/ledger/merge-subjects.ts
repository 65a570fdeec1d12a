/**
 * Makes two subjects one, in the caller's transaction. The ledger keeps the subject that its decisions named;
 * whoever reads by subject reads it as what it became. So nothing that is granted to the old name meanwhile
 * is lost, whichever of the two commits first.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { presentSubject } from '../postgres/present-subject.ts'
import type { MergeAnswer, SubjectMerge } from '../workflow/subject-acts.ts'

/** What each of these subjects is now. */
export async function presentSubjects(
  db: Pick<Database, 'schema'>,
  tx: Pick<Executor, 'query'>,
  subjects: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await tx.query<{ subject: string; present: string }>({
    text: `select k.subject, ${presentSubject(db.schema, 'k.subject')} as present
      from unnest($1::text[]) as k(subject)`,
    values: [[...new Set(subjects)]],
  })
  return new Map(rows.map((row) => [row.subject, row.present]))
}

/**
 * Merges in the transaction that `tx` is in. Merges happen one after the other: another one that is not
 * committed yet is waited for.
 *
 * @throws HookledgerError HKL_SUBJECT_INVALID where `from` became another one, or `into` became `from`
 */
export async function writeMerge(
  db: Database,
  tx: Executor,
  { from, into, reason, actor }: SubjectMerge,
): Promise<MergeAnswer> {
  const s = db.schema
  // readers are not held up by it; without it, two merges that meet could leave a chain
  await tx.query({ text: `lock table ${s}subject_merges in share row exclusive mode` })
  const present = await presentSubjects(db, tx, [from, into])
  const target = present.get(into) ?? into
  const already = present.get(from) ?? from
  if (already !== from) {
    if (already === target) return 'existed'
    throw invalid(`${from} was merged into ${already} already: merge ${already} into ${into}`)
  }
  if (target === from) throw invalid(`${into} was merged into ${from}: the two are one already`)
  await tx.query({
    text: `with act as (
        insert into ${s}operator_acts (act, target, reason, actor, details)
        values ('subject merge', 'subject:' || $1::text, $3, $4, jsonb_build_object('into', $2::text)) returning act_id),
      merged as (
        insert into ${s}subject_merges (from_subject, into_subject, act_id) select $1, $2, act_id from act returning 1),
      flattened as (
        update ${s}subject_merges set into_subject = $2 where into_subject = $1 returning 1)
      insert into ${s}entitlement_changes (subject, because)
      select k.subject, 'merge' from unnest(array[$1::text, $2::text]) with ordinality as k(subject, place) order by place`,
    values: [from, target, reason, actor],
  })
  return 'merged'
}

function invalid(message: string): HookledgerError {
  return new HookledgerError('HKL_SUBJECT_INVALID', message)
}
