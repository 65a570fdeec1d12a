/** The known name that a mistyped one is nearest to, for messages that say what was meant. */

/** The nearest of `known` to `value` within half its length of edits; null when none is near. */
export function nearest(value: string, known: Iterable<string>): string | null {
  let best: string | null = null
  let bestDistance = Math.max(1, Math.ceil(value.length / 2)) + 1
  for (const candidate of known) {
    const distance = editDistance(value.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) {
      best = candidate
      bestDistance = distance
    }
  }
  return best
}

function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (previous[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      row.push(Math.min(replaced, (previous[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    previous = row
  }
  return previous[b.length] ?? 0
}
