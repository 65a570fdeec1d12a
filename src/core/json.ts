/** JSON in which bigint amounts stay exact: they are written as integers of any size. */

/** Serializes plain data; a bigint becomes a JSON integer, `undefined` fields are left out. */
export function toJson(value: unknown): string {
  let exact = true
  const text = JSON.stringify(value, (_, item: unknown) => {
    if (typeof item !== 'bigint') return item
    if (item <= largest && item >= -largest) return Number(item)
    exact = false
    return 0
  })
  return exact ? text : write(value)
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
