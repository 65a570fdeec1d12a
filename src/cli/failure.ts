/**
 * What went wrong, as one line for a person: what to do next, and never a value that a database
 * quotes, a password of a URL or a stack.
 */
import { describeDatabaseError, sqlstateOf } from '../postgres/sqlstate.ts'
import { exitCodeOf, type ExitCode } from './exit-codes.ts'

/** A failure, told. */
export interface Failure {
  readonly line: string
  readonly exitCode: ExitCode
}

/** Tells a failure of whatever kind. */
export function tellFailure(error: unknown): Failure {
  const code = codeOf(error)
  if (code?.startsWith('HKL_') === true) {
    return { line: `${oneLine(messageOf(error))} (${code})`, exitCode: exitCodeOf(code) }
  }
  const known = databaseProblem(error, code)
  if (known !== undefined) return { line: known, exitCode: 1 }
  if (sqlstateOf(error) !== undefined)
    return { line: `the database refused: ${describeDatabaseError(error)}`, exitCode: 1 }
  return {
    line:
      oneLine(messageOf(error)) ||
      'it failed without saying why; run it again with LOG_LEVEL=debug',
    exitCode: 1,
  }
}

/** The whole failure with its causes and stacks, for LOG_LEVEL=debug. */
export function fullFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const cause = error.cause === undefined ? '' : `\ncaused by ${fullFailure(error.cause)}`
  return `${error.stack ?? error.message}${cause}`
}

function databaseProblem(error: unknown, code: string | undefined): string | undefined {
  if (
    code !== undefined &&
    /^E(?:CONNREFUSED|NOTFOUND|HOSTUNREACH|NETUNREACH|TIMEDOUT|AI_AGAIN|CONNRESET|PIPE)$/.test(code)
  ) {
    return `cannot reach PostgreSQL${placeOf(error)} (${code}): is it running, and is DATABASE_URL right? (HKL_DATABASE_UNREACHABLE)`
  }
  if (messageOf(error).includes('timeout exceeded when trying to connect')) {
    return 'PostgreSQL did not answer in time: is it running, and is DATABASE_URL right? (HKL_DATABASE_UNREACHABLE)'
  }
  switch (sqlstateOf(error)) {
    case '28P01':
    case '28000':
      return 'PostgreSQL refused the user or the password of DATABASE_URL (HKL_DATABASE_UNREACHABLE)'
    case '3D000':
      return 'the database that DATABASE_URL names does not exist: create it, then run "hookledger migrate" (HKL_DATABASE_UNREACHABLE)'
    case '57P03':
      return 'PostgreSQL is starting or stopping: try again in a moment (HKL_DATABASE_UNREACHABLE)'
    case '42P01':
    case '3F000':
      return 'a table of Hookledger is missing: run "hookledger migrate" (HKL_SCHEMA_MISSING)'
    case '42501':
      return `this database role may not do that: ${describeDatabaseError(error)}`
    default:
      return undefined
  }
}

/** Node puts the failures of several addresses of one host together. */
function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined
  if ('code' in error && typeof error.code === 'string') return error.code
  if (error instanceof AggregateError) return codeOf(error.errors[0])
  return undefined
}

function placeOf(error: unknown): string {
  const source: unknown = error instanceof AggregateError ? error.errors[0] : error
  if (typeof source !== 'object' || source === null) return ''
  const host =
    'address' in source ? source.address : 'hostname' in source ? source.hostname : undefined
  const port = 'port' in source ? source.port : undefined
  if (typeof host !== 'string') return ''
  return ` at ${host}${typeof port === 'number' ? `:${port}` : ''}`
}

function messageOf(error: unknown): string {
  if (error instanceof Error) return error.message
  return typeof error === 'string' ? error : ''
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim()
}
