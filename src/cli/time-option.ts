/** The one way in which every command reads a time. */
import { exampleTime, strictTime } from '../core/strict-time.ts'
import { usageError } from './command.ts'

/** @throws HookledgerError HKL_CLI_USAGE unless it is a date or a date-time of ISO 8601, of the years 2000 to 9999 */
export function timeOption(option: string, text: string): Date {
  const at = strictTime(text)
  if (at !== null) return at
  throw usageError(
    `--${option} must be a time such as ${exampleTime}, of the years 2000 to 9999, not "${text.slice(0, 80)}"`,
  )
}

/** The same for an option that may be left out. */
export function optionalTime(option: string, text: string | undefined): Date | undefined {
  return text === undefined ? undefined : timeOption(option, text)
}
