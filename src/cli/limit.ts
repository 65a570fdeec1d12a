/** How many rows a list shows. */
import { usageError } from './command.ts'

const defaultRows = 100

/** @throws HookledgerError HKL_CLI_USAGE unless it is a positive whole number. */
export function rowLimit(given: string | undefined): number {
  if (given === undefined) return defaultRows
  const value = Number(given)
  if (/^\d{1,7}$/.test(given) && value > 0) return value
  throw usageError(`--limit must be a positive whole number, not "${given}"`)
}
