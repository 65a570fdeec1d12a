/** Exit codes, fixed by the contract, and which failure ends with which. */
import type { ErrorCode } from '../core/errors.ts'

/** 0 fine, 1 it failed, 2 wrong use, 3 a check found something, 130 interrupted, 143 terminated. */
export type ExitCode = 0 | 1 | 2 | 3 | 130 | 143

/** What must change is how it was called or configured, not what it works on. */
const wrongUse: ReadonlySet<string> = new Set<ErrorCode>([
  'HKL_CLI_USAGE',
  'HKL_CONFIG_INVALID',
  'HKL_CONFIG_NOT_FOUND',
  'HKL_CONFIG_SECRET',
  'HKL_CONFIG_UNKNOWN_NAME',
  'HKL_CONSOLE_OPEN',
  'HKL_SCHEMA_NAME',
  'HKL_INBOX_NOT_REPLAYABLE',
  'HKL_REPAIR_CHOICE',
  'HKL_GRANT_INVALID',
  'HKL_SUBJECT_INVALID',
  'HKL_ERASE_INVALID',
])

/** The exit code of an error with this code. */
export function exitCodeOf(code: string | undefined): ExitCode {
  return code !== undefined && wrongUse.has(code) ? 2 : 1
}
