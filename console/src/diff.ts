/** What a change does, line by line: for plans, where a person must see what is there now and what will be. */

/** One line of a difference. */
export interface DiffLine {
  readonly mark: 'same' | 'gone' | 'new'
  readonly text: string
}

/**
 * The shortest way from one list of lines to another (longest common subsequence). Meant for plans: past
 * 2,000 lines a side everything is told as gone and new.
 */
export function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  if (before.length > 2000 || after.length > 2000) {
    return [...before.map((text) => line('gone', text)), ...after.map((text) => line('new', text))]
  }
  const lengths = commonLengths(before, after)
  const lines: DiffLine[] = []
  let left = 0
  let right = 0
  while (left < before.length || right < after.length) {
    const old = before[left]
    const next = after[right]
    if (old !== undefined && old === next) {
      lines.push(line('same', old))
      left += 1
      right += 1
    } else if (
      old !== undefined &&
      (next === undefined || at(lengths, left + 1, right) >= at(lengths, left, right + 1))
    ) {
      lines.push(line('gone', old))
      left += 1
    } else if (next !== undefined) {
      lines.push(line('new', next))
      right += 1
    }
  }
  return lines
}

function line(mark: DiffLine['mark'], text: string): DiffLine {
  return { mark, text }
}

function commonLengths(before: readonly string[], after: readonly string[]): Uint16Array[] {
  const rows = Array.from({ length: before.length + 1 }, () => new Uint16Array(after.length + 1))
  for (let left = before.length - 1; left >= 0; left -= 1) {
    const row = rows[left]
    if (row === undefined) continue
    for (let right = after.length - 1; right >= 0; right -= 1) {
      row[right] =
        before[left] === after[right]
          ? at(rows, left + 1, right + 1) + 1
          : Math.max(at(rows, left + 1, right), at(rows, left, right + 1))
    }
  }
  return rows
}

function at(rows: readonly Uint16Array[], left: number, right: number): number {
  return rows[left]?.[right] ?? 0
}
