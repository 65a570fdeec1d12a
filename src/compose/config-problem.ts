/** What is wrong with a configuration, in one line that names the culprit and the nearest known name. */
import { HookledgerError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'

/** @throws HookledgerError HKL_CONFIG_UNKNOWN_NAME unless it is one of these */
export function requireKnown(what: string, value: string, names: Iterable<string>): void {
  const all = [...names]
  if (all.includes(value)) return
  const near = nearest(value, all)
  throw new HookledgerError(
    'HKL_CONFIG_UNKNOWN_NAME',
    `unknown ${what} "${String(value).slice(0, 80)}"${near === null ? '' : `, did you mean "${near}"?`}`,
  )
}

/** A bad value. */
export function invalid(message: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', message)
}
