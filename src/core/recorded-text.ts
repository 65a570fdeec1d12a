/**
 * Reasons and names that are recorded with what a person does: bounded, so that a record stays readable, and
 * names of one line, so that nobody can dress one up as another. Pure.
 */

/** The longest reason, in UTF-16 units. */
export const maxReason = 2000

/** The longest name of an owner or actor, in UTF-16 units. */
export const maxName = 200

/** What is wrong with a reason, to be said after its name; null where nothing is. */
export function reasonFlaw(text: string): string | null {
  return text.length > maxReason ? `is longer than ${maxReason} characters` : null
}

/** What is wrong with the name of an owner or actor, to be said after its name; null where nothing is. */
export function nameFlaw(text: string): string | null {
  if (text.length > maxName) return `is longer than ${maxName} characters`
  return /[\p{Cc}\u2028\u2029]/u.test(text) ? 'contains a control character' : null
}
