/**
 * A subject that was merged into another one is read as that one, wherever somebody reads by subject. Merges
 * are kept flat: one step is all.
 */

/** SQL: what a subject is now. `subject` is an expression without side effects, of type text. */
export function presentSubject(schema: string, subject: string): string {
  return `coalesce((select m.into_subject from ${schema}subject_merges m where m.from_subject = ${subject}), ${subject})`
}

/** SQL: a recorded subject under the name by which it is asked for, where both are one by now. */
export function subjectAsAsked(schema: string, recorded: string, asked: string): string {
  return `case when ${presentSubject(schema, recorded)} = ${presentSubject(schema, asked)} then ${asked} else ${recorded} end`
}
