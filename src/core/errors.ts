/**
 * Every error that leaves Hookledger has a code from this catalogue. A code is never reused; each has
 * an anchor in docs/reference/errors.md, and a test holds the two sets equal. Messages say what to do
 * next and carry no payload, header or secret.
 */

/** The catalogue: code → whether trying the same again later can succeed. */
export const errorCodes: Readonly<Record<ErrorCode, boolean>> = {
  HKL_CONFIG_INVALID: false,
  HKL_CONFIG_NOT_FOUND: false,
  HKL_CONFIG_SECRET: false,
  HKL_CONFIG_UNKNOWN_NAME: false,
  HKL_CONFIG_ENVIRONMENT: false,
  HKL_WORKFLOW_INVALID: false,
  HKL_WORKFLOW_STATE_RETIRED: false,
  HKL_EMBEDDED_UNAVAILABLE: false,
  HKL_EMBEDDED_START_FAILED: true,
  HKL_EMBEDDED_IN_USE: false,
  HKL_DATABASE_UNREACHABLE: true,
  HKL_DATABASE_TOO_OLD: false,
  HKL_DATABASE_UNSAFE: false,
  HKL_SCHEMA_MISSING: false,
  HKL_SCHEMA_OLDER: false,
  HKL_SCHEMA_NEWER: false,
  HKL_SCHEMA_BROKEN: false,
  HKL_SCHEMA_NAME: false,
  HKL_TRANSACTION_UNKNOWN: true,
  HKL_TRANSACTION_CONTROL: false,
  HKL_INBOX_SOURCE_UNKNOWN: false,
  HKL_INBOX_SIGNATURE_INVALID: false,
  HKL_INBOX_BODY_CONSUMED: false,
  HKL_INBOX_UNAVAILABLE: true,
  HKL_INBOX_EVENT_UNKNOWN: false,
  HKL_INBOX_PAYLOAD_EXPIRED: false,
  HKL_INBOX_NOT_REPLAYABLE: false,
  HKL_LEDGER_ORDER_INVALID: false,
  HKL_LEDGER_CLAIM_LOST: true,
  HKL_WORKER_STOPPED: true,
  HKL_SERVER_IN_USE: false,
  HKL_CLI_USAGE: false,
  HKL_NOT_FOUND: false,
  HKL_INBOX_BODY_TOO_LARGE: false,
  HKL_HTTP_REQUEST_REFUSED: false,
  HKL_OUTBOX_CHANGED: false,
  HKL_OUTBOX_OPERATION_UNKNOWN: false,
  HKL_OUTBOX_NOT_OPEN: false,
  HKL_OUTBOX_UNDECIDED: false,
  HKL_RECONCILE_NO_RECORDS: false,
  HKL_RECONCILE_UNAVAILABLE: true,
  HKL_RECONCILE_INCOMPLETE: true,
  HKL_FINDING_UNKNOWN: false,
  HKL_FINDING_NOT_OPEN: false,
  HKL_REPAIR_CHANGED: false,
  HKL_REPAIR_CHOICE: false,
  HKL_REPAIR_IMPOSSIBLE: false,
  HKL_GRANT_INVALID: false,
  HKL_ADOPT_INVALID: false,
  HKL_CONFIRM_INVALID: false,
  HKL_GATHER_NO_API: false,
  HKL_SUBJECT_INVALID: false,
  HKL_SUBJECT_LINKED: false,
  HKL_ERASE_INVALID: false,
  HKL_ERASE_UNFINISHED: true,
  HKL_ERASE_FORBIDDEN: false,
  HKL_BULK_INVALID: false,
  HKL_BULK_STATE: false,
  HKL_BULK_APPROVER: false,
  HKL_API_INPUT_INVALID: false,
  HKL_API_NOT_SIGNED_IN: false,
  HKL_API_FORBIDDEN: false,
  HKL_API_CROSS_SITE: false,
  HKL_API_UNKNOWN_ROUTE: false,
  HKL_API_CONFIRM: false,
  HKL_API_TOO_SLOW: true,
  HKL_API_UNAVAILABLE: true,
  HKL_API_FAILED: true,
  HKL_CONSOLE_OPEN: false,
}

/** One of the codes of the catalogue. */
export type ErrorCode =
  | 'HKL_CONFIG_INVALID'
  | 'HKL_CONFIG_NOT_FOUND'
  | 'HKL_CONFIG_SECRET'
  | 'HKL_CONFIG_UNKNOWN_NAME'
  | 'HKL_CONFIG_ENVIRONMENT'
  | 'HKL_WORKFLOW_INVALID'
  | 'HKL_WORKFLOW_STATE_RETIRED'
  | 'HKL_EMBEDDED_UNAVAILABLE'
  | 'HKL_EMBEDDED_START_FAILED'
  | 'HKL_EMBEDDED_IN_USE'
  | 'HKL_DATABASE_UNREACHABLE'
  | 'HKL_DATABASE_TOO_OLD'
  | 'HKL_DATABASE_UNSAFE'
  | 'HKL_SCHEMA_MISSING'
  | 'HKL_SCHEMA_OLDER'
  | 'HKL_SCHEMA_NEWER'
  | 'HKL_SCHEMA_BROKEN'
  | 'HKL_SCHEMA_NAME'
  | 'HKL_TRANSACTION_UNKNOWN'
  | 'HKL_TRANSACTION_CONTROL'
  | 'HKL_INBOX_SOURCE_UNKNOWN'
  | 'HKL_INBOX_SIGNATURE_INVALID'
  | 'HKL_INBOX_BODY_CONSUMED'
  | 'HKL_INBOX_UNAVAILABLE'
  | 'HKL_INBOX_EVENT_UNKNOWN'
  | 'HKL_INBOX_PAYLOAD_EXPIRED'
  | 'HKL_INBOX_NOT_REPLAYABLE'
  | 'HKL_LEDGER_ORDER_INVALID'
  | 'HKL_LEDGER_CLAIM_LOST'
  | 'HKL_WORKER_STOPPED'
  | 'HKL_SERVER_IN_USE'
  | 'HKL_CLI_USAGE'
  | 'HKL_NOT_FOUND'
  | 'HKL_INBOX_BODY_TOO_LARGE'
  | 'HKL_HTTP_REQUEST_REFUSED'
  | 'HKL_OUTBOX_CHANGED'
  | 'HKL_OUTBOX_OPERATION_UNKNOWN'
  | 'HKL_OUTBOX_NOT_OPEN'
  | 'HKL_OUTBOX_UNDECIDED'
  | 'HKL_RECONCILE_NO_RECORDS'
  | 'HKL_RECONCILE_UNAVAILABLE'
  | 'HKL_RECONCILE_INCOMPLETE'
  | 'HKL_FINDING_UNKNOWN'
  | 'HKL_FINDING_NOT_OPEN'
  | 'HKL_REPAIR_CHANGED'
  | 'HKL_REPAIR_CHOICE'
  | 'HKL_REPAIR_IMPOSSIBLE'
  | 'HKL_GRANT_INVALID'
  | 'HKL_ADOPT_INVALID'
  | 'HKL_CONFIRM_INVALID'
  | 'HKL_GATHER_NO_API'
  | 'HKL_SUBJECT_INVALID'
  | 'HKL_SUBJECT_LINKED'
  | 'HKL_ERASE_INVALID'
  | 'HKL_ERASE_UNFINISHED'
  | 'HKL_ERASE_FORBIDDEN'
  | 'HKL_BULK_INVALID'
  | 'HKL_BULK_STATE'
  | 'HKL_BULK_APPROVER'
  | 'HKL_API_INPUT_INVALID'
  | 'HKL_API_NOT_SIGNED_IN'
  | 'HKL_API_FORBIDDEN'
  | 'HKL_API_CROSS_SITE'
  | 'HKL_API_UNKNOWN_ROUTE'
  | 'HKL_API_CONFIRM'
  | 'HKL_API_TOO_SLOW'
  | 'HKL_API_UNAVAILABLE'
  | 'HKL_API_FAILED'
  | 'HKL_CONSOLE_OPEN'

/** An error with a code, and a message that says what to do next. */
export class HookledgerError extends Error {
  readonly code: ErrorCode
  /** Whether the same call can succeed later without a change by a person. */
  readonly retryable: boolean

  constructor(code: ErrorCode, message: string, options: { cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'HookledgerError'
    this.code = code
    this.retryable = errorCodes[code]
  }
}

/**
 * Thrown by a handler, an effect's `apply` or a decide function to say that trying again is useless:
 * the event is dead at once, with this message as its reason.
 */
export class PermanentError extends Error {
  readonly permanent = true as const

  constructor(message: string, options?: { cause?: unknown }) {
    super(message, options)
    this.name = 'PermanentError'
  }
}

/** Thrown by a handler to be tried again after `delayMs` milliseconds instead of the usual backoff. */
export class RetryAfter extends Error {
  readonly delayMs: number

  constructor(delayMs: number, message = 'asked to be tried again later') {
    super(message)
    this.name = 'RetryAfter'
    this.delayMs = delayMs
  }
}

/** Whether an error, from whichever copy of this module, says that trying again is useless. */
export function isPermanent(error: unknown): boolean {
  return (
    typeof error === 'object' && error !== null && 'permanent' in error && error.permanent === true
  )
}
