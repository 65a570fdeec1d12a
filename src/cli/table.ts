/** Columns of text, and times and ages as people say them. */

/** Aligns rows in columns; the last column is not padded. Columns named in `right` end at the right. */
export function columns(
  rows: readonly (readonly string[])[],
  right: readonly number[] = [],
): string {
  const widths: number[] = []
  for (const row of rows)
    row.forEach((cell, index) => (widths[index] = Math.max(widths[index] ?? 0, cell.length)))
  return rows
    .map((row) =>
      row
        .map((cell, index) => {
          if (right.includes(index)) return cell.padStart(widths[index] ?? 0)
          return index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0)
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** A duration in its two largest units: `850 ms`, `12 s`, `3 h 5 min`, `4 d 2 h`. */
export function duration(milliseconds: number): string {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`
  const seconds = Math.round(milliseconds / 1000)
  const units = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'min'],
    [1, 's'],
  ] as const
  const first = units.findIndex(([size]) => seconds >= size)
  const parts: string[] = []
  let rest = seconds
  for (const [size, name] of units.slice(first, first + 2)) {
    const amount = Math.floor(rest / size)
    rest -= amount * size
    if (amount > 0) parts.push(`${amount} ${name}`)
  }
  return parts.join(' ')
}

/** How long ago, or how far ahead, a time is. */
export function relative(at: string, now: number = Date.now()): string {
  const difference = Date.parse(at) - now
  return difference > 0 ? `in ${duration(difference)}` : `${duration(-difference)} ago`
}

/** A time of day with its date, in UTC, to the millisecond. */
export function moment(at: string): string {
  return at.replace('T', ' ').replace('Z', '')
}

/** A number with its noun: `1 event`, `2 deliveries`, `3 batches`. */
export function plural(count: number, noun: string): string {
  if (count === 1) return `1 ${noun}`
  if (/[^aeiou]y$/.test(noun)) return `${count} ${noun.slice(0, -1)}ies`
  return `${count} ${noun}${/(?:ch|sh|s|x)$/.test(noun) ? 'es' : 's'}`
}
