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
  if (Array.isArray(value)) return `[${value.map((item) => (item === undefined ? 'null' : write(item))).join(',')}]`
  if (typeof value === 'object' && value !== null && !(value instanceof Date)) {
    const fields = Object.entries(value).filter(([, item]) => item !== undefined)
    return `{${fields.map(([key, item]) => `${JSON.stringify(key)}:${write(item)}`).join(',')}}`
  }
  return JSON.stringify(value)
}
