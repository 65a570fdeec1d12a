/** JSON in which bigint amounts stay exact: they are written as integers of any size. */

/** Serializes plain data; a bigint becomes a JSON integer, `undefined` fields are left out. */
export function toJson(value: unknown): string {
  if (!hasBigint(value)) return JSON.stringify(value)
  return write(value)
}

function hasBigint(value: unknown): boolean {
  if (typeof value === 'bigint') return true
  if (typeof value !== 'object' || value === null) return false
  for (const item of Object.values(value)) if (hasBigint(item)) return true
  return false
}

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
