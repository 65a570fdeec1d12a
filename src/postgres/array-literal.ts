/**
 * Arrays as PostgreSQL's own text form. The driver's is correct as well, but goes through every element
 * several times: with a batch of hundreds of rows in tens of columns that is most of what a write costs
 * in JavaScript.
 */

/** What stands in an array without quotes: no delimiter, quote, backslash, brace or space, not empty. */
const bare = /^[^\s"\\{},]+$/

/** The array as a literal such as `{1,a,"b c",NULL}`. */
export function arrayLiteral(values: readonly (string | number | boolean | null)[]): string {
  const elements = new Array<string>(values.length)
  for (let at = 0; at < values.length; at++) elements[at] = element(values[at] ?? null)
  return `{${elements.join(',')}}`
}

function element(value: string | number | boolean | null): string {
  if (value === null) return 'NULL'
  if (typeof value !== 'string') return String(value)
  // four letters could spell NULL; times and ids of other lengths are told apart by one look
  if (value.length !== 4 && bare.test(value)) return value
  return quoted(value)
}

function quoted(text: string): string {
  if (!text.includes('"') && !text.includes('\\')) return `"${text}"`
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}
