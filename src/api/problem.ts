/**
 * What a failure is answered with: a status, a code and what to do next. What the database said, and every
 * message that is not written for a person, stays in the process.
 */
import { HookledgerError, type ErrorCode } from '../core/errors.ts'
import { classify, sqlstateOf } from '../postgres/sqlstate.ts'

/** A failure as it is answered. */
export interface Problem {
  readonly status: number
  readonly code: ErrorCode
  readonly message: string
  /** Whether a person should look: it is told to the log. */
  readonly isUnexpected: boolean
}

const statuses: Readonly<Partial<Record<ErrorCode, number>>> = {
  HKL_API_NOT_SIGNED_IN: 401,
  HKL_API_FORBIDDEN: 403,
  HKL_API_CROSS_SITE: 403,
  HKL_API_UNKNOWN_ROUTE: 404,
  HKL_API_CONFIRM: 409,
  HKL_API_TOO_SLOW: 503,
  HKL_API_UNAVAILABLE: 503,
  HKL_BULK_APPROVER: 403,
  HKL_BULK_STATE: 409,
  HKL_DATABASE_UNREACHABLE: 503,
  HKL_ERASE_FORBIDDEN: 403,
  HKL_ERASE_UNFINISHED: 409,
  HKL_FINDING_NOT_OPEN: 409,
  HKL_FINDING_UNKNOWN: 404,
  HKL_INBOX_EVENT_UNKNOWN: 404,
  HKL_INBOX_NOT_REPLAYABLE: 409,
  HKL_INBOX_PAYLOAD_EXPIRED: 409,
  HKL_NOT_FOUND: 404,
  HKL_OUTBOX_NOT_OPEN: 409,
  HKL_OUTBOX_OPERATION_UNKNOWN: 404,
  HKL_OUTBOX_UNDECIDED: 409,
  HKL_RECONCILE_INCOMPLETE: 409,
  HKL_RECONCILE_UNAVAILABLE: 503,
  HKL_REPAIR_CHANGED: 409,
  HKL_REPAIR_IMPOSSIBLE: 409,
  HKL_SUBJECT_LINKED: 409,
  HKL_WORKER_STOPPED: 503,
}

/** Codes whose message is about this very input. */
const ofInput = /_(INVALID|CHOICE|USAGE|UNKNOWN_NAME|NO_RECORDS)$/

/** What an error is answered with. */
export function problemOf(error: unknown): Problem {
  if (error instanceof HookledgerError) {
    const { code, message } = error
    const status = statuses[code] ?? (ofInput.test(code) ? 400 : undefined)
    if (status !== undefined) return { status, code, message, isUnexpected: false }
    return failed
  }
  // the role that the console connects as, not the person
  if (sqlstateOf(error) === '42501') return roleMayNot
  // by the statement timeout, or by somebody at the database
  if (sqlstateOf(error) === '57014') return tooSlow
  if (isOfDatabase(error)) return unavailable
  return failed
}

/** An answer in the place of the data. */
export function problemResponse(
  { status, code, message }: Omit<Problem, 'isUnexpected'>,
  headers: Readonly<Record<string, string>> = {},
): Response {
  const all = new Headers({ ...headers })
  all.set('content-type', 'application/json; charset=utf-8')
  if (status === 503) all.set('retry-after', '5')
  return new Response(JSON.stringify({ error: { code, message } }), { status, headers: all })
}

const roleMayNot: Problem = {
  status: 403,
  code: 'HKL_API_FORBIDDEN',
  message:
    'the database role that the console connects as may not do this: let it be a member of the roles console (to read), worker (to act) and privacy (to reveal) of "hookledger migrate --roles"',
  isUnexpected: false,
}

const tooSlow: Problem = {
  status: 503,
  code: 'HKL_API_TOO_SLOW',
  message: 'the database did not answer in time: narrow the filter or the time, or try again later',
  isUnexpected: false,
}

const unavailable: Problem = {
  status: 503,
  code: 'HKL_API_UNAVAILABLE',
  message: 'the database cannot be asked now: try again, and see "hookledger doctor"',
  isUnexpected: true,
}

const failed: Problem = {
  status: 500,
  code: 'HKL_API_FAILED',
  message: 'this failed here, and is told in the log of the process that serves the console',
  isUnexpected: true,
}

function isOfDatabase(error: unknown): boolean {
  if (sqlstateOf(error) !== undefined)
    return ['unavailable', 'unknown', 'retry'].includes(classify(error))
  const code = (error as { readonly code?: unknown } | null)?.code
  return typeof code === 'string' && /^E(CONN|PIPE|TIMEDOUT|HOST|NOTFOUND|AI_AGAIN)/.test(code)
}
