/** The order in which rows are inserted and locked: the database's own, so that no two writers cross. */

/** Sorted as PostgreSQL sorts under COLLATE "C": by UTF-8 bytes, which is by code points. */
export function byteOrder(a: string, b: string): number {
  if (a === b) return 0
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at)
    const right = b.charCodeAt(at)
    if (left !== right) return codePointRank(left) - codePointRank(right)
  }
  return a.length - b.length
}

/** Halves of pairs stand for code points above all that one unit can hold. */
function codePointRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit
}
