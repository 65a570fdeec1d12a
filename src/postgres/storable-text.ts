/**
 * Texts as PostgreSQL can keep them: what is in a provider's body may not fail the decision about it.
 */

/** What may have to be replaced: NUL, an escape that may stand for it, half of a pair. */
const unstorable = /[\u0000\\\ud800-\udfff]/

/** Every escape of a JSON text, so that an escaped backslash is not taken for the beginning of another. */
const escapes = /\\(u0000|ud[89a-f][0-9a-f]{2}|[^])/gi

/** A text, or a JSON text, with U+FFFD in the place of NUL and of halves of pairs. */
export function storable(text: string): string {
  if (!unstorable.test(text)) return text
  return text
    .toWellFormed()
    .replaceAll('\u0000', '\ufffd')
    .replace(escapes, (all, escaped: string) => (escaped.length > 1 ? '\\ufffd' : all))
}
