/**
 * Text from outside as a terminal may show it: what would move the cursor, change colors, break the
 * line or turn the reading direction is written as an escape.
 */

const unprintable =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g

/** The text with every control and direction character escaped: one line, whatever was in it. */
export function printable(text: string): string {
  return text.toWellFormed().replace(unprintable, (character) => {
    const code = character.charCodeAt(0)
    return code < 0x100
      ? `\\x${code.toString(16).padStart(2, '0')}`
      : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

/** The same of every text in plain data. */
export function printableData<T>(value: T): T {
  if (typeof value === 'string') return printable(value) as T
  if (Array.isArray(value)) return value.map((each: unknown) => printableData(each)) as T
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [printable(key), printableData(each as unknown)]),
  ) as T
}
