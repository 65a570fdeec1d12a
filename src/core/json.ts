/** JSON in which bigint amounts stay exact: they are written as integers of any size. */

/** Serializes plain data; a bigint becomes a JSON integer, `undefined` fields are left out. */
export function toJson(value: unknown): string {
  const plain = withNumbers(value)
  return plain === inexact ? write(value) : JSON.stringify(plain)
}

const inexact: unique symbol = Symbol('a bigint that no number can stand for')

/** The value with numbers in the place of bigints, or `inexact`; the value itself where it has none. */
function withNumbers(value: unknown): unknown {
  if (typeof value === 'bigint') {
    return value <= largest && value >= -largest ? Number(value) : inexact
  }
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  const fields = value as Record<string, unknown>
  let copy: Record<string, unknown> | undefined
  for (const key of Object.keys(fields)) {
    const plain = withNumbers(fields[key])
    if (plain === inexact) return inexact
    if (plain === fields[key]) continue
    copy ??= (Array.isArray(value) ? [...(value as unknown[])] : { ...fields }) as Record<
      string,
      unknown
    >
    copy[key] = plain
  }
  return copy ?? value
}

/** Up to this size a number is written as the integer that it is. */
const largest = BigInt(Number.MAX_SAFE_INTEGER)

function write(value: unknown): string {
  if (typeof value === 'bigint') return value.toString()
  if (typeof value !== 'object' || value === null || value instanceof Date)
    return JSON.stringify(value)
  const fields: string[] = []
  if (Array.isArray(value)) {
    for (const item of value as unknown[]) fields.push(item === undefined ? 'null' : write(item))
    return `[${fields.join(',')}]`
  }
  for (const [key, item] of Object.entries(value)) {
    if (item !== undefined) fields.push(`${JSON.stringify(key)}:${write(item)}`)
  }
  return `{${fields.join(',')}}`
}
