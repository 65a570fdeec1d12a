/**
 * The limits of the design, in one place. All of them can be configured; docs/reference/configuration.md
 * lists them, and a test holds the two equal.
 */

/** Every limit, with its unit in its name. */
export interface Limits {
  readonly bodyBytes: number
  readonly headerBytes: number
  readonly requestTimeoutMs: number
  readonly jsonDepth: number
  readonly jsonKeys: number
  readonly intakeBatch: number
  readonly intakeQueue: number
  readonly workBatch: number
  /** Operations leased or settled in one transaction. */
  readonly dispatchBatch: number
  readonly statementTimeoutMs: number
  /** Shorter than the server's deadlock_timeout, so that a worker always yields to the app. */
  readonly lockTimeoutMs: number
  readonly maxAttempts: number
  readonly firstRetryMs: number
  readonly maxRetryMs: number
  readonly deferralMs: number
  readonly watchdogMs: number
  /** How old an answer of the provider may be when an event is decided from it. */
  readonly evidenceMs: number
  readonly loneStarts: number
  readonly payloadRetentionDays: number
  readonly identityRetentionDays: number
  readonly partitionsAheadDays: number
}

/** The defaults of design.md, section 7. */
export const defaultLimits: Limits = Object.freeze({
  bodyBytes: 1024 * 1024,
  headerBytes: 16 * 1024,
  requestTimeoutMs: 10_000,
  jsonDepth: 64,
  jsonKeys: 10_000,
  intakeBatch: 200,
  intakeQueue: 5000,
  workBatch: 500,
  dispatchBatch: 200,
  statementTimeoutMs: 5000,
  lockTimeoutMs: 500,
  maxAttempts: 10,
  firstRetryMs: 1000,
  maxRetryMs: 3_600_000,
  deferralMs: 86_400_000,
  watchdogMs: 10_000,
  evidenceMs: 60_000,
  loneStarts: 3,
  payloadRetentionDays: 30,
  identityRetentionDays: 400,
  partitionsAheadDays: 35,
})
