/**
 * Every promise as queries: zero rows is what holds. Each check is one statement, so that it sees one
 * moment, and none holds a snapshot longer than it runs. Read-only; safe beside workers.
 */
import type { Database } from '../postgres/executor.ts'
import { describeDatabaseError, sqlstateOf } from '../postgres/sqlstate.ts'
import { acceptedChecks } from './audit-accepted.ts'
import type { AuditCheck, AuditLimits, AuditedPromise } from './audit-check.ts'
import { onceChecks, togetherChecks } from './audit-effects.ts'
import { entitledChecks } from './audit-entitled.ts'
import { explainedChecks } from './audit-explained.ts'
import { endedOperationChecks, openOperationChecks } from './audit-outbox-open.ts'
import { askedChecks, operationChecks } from './audit-outbox.ts'
import { stuckChecks } from './audit-stuck.ts'
import { counted, type Count } from './row-values.ts'

/** Every check, in the order of the promises. */
export const auditChecks: readonly AuditCheck[] = [
  ...acceptedChecks,
  ...onceChecks,
  ...togetherChecks,
  ...askedChecks,
  ...entitledChecks,
  ...stuckChecks,
  ...openOperationChecks,
  ...operationChecks,
  ...explainedChecks,
  ...endedOperationChecks,
]

/** What one check saw; the keys are what `--json` prints. */
export interface AuditResult {
  readonly promise: AuditedPromise
  readonly check: string
  readonly holds: boolean
  /** What holds, or should. */
  readonly says: string
  readonly violations: Count
  /** At most ten of them. */
  readonly examples: readonly { readonly key: string; readonly detail: string }[]
  /** Why it could not be checked (a role without the right to read); null when it was. */
  readonly skipped: string | null
  readonly duration_ms: Count
}

/** The answer of `hookledger audit`. */
export interface AuditReport {
  /** Whether no check found anything. */
  readonly holds: boolean
  readonly checks: readonly AuditResult[]
}

/** The limits that hold without a configuration. */
export const defaultAuditLimits: AuditLimits = Object.freeze({
  pendingMs: 86_400_000,
  graceMs: 300_000,
  bodies: 1000,
})

const shownExamples = 10

/** Runs every check, one after the other; `onResult` is told of each as it ends. */
export async function audit(
  db: Database,
  limits: AuditLimits = defaultAuditLimits,
  onResult: (result: AuditResult) => void = () => {},
): Promise<AuditReport> {
  const checks: AuditResult[] = []
  for (const check of auditChecks) {
    const result = await runCheck(db, check, limits)
    checks.push(result)
    onResult(result)
  }
  return { holds: checks.every((each) => each.holds), checks }
}

/** Runs one check. */
export async function runCheck(
  db: Database,
  check: AuditCheck,
  limits: AuditLimits,
): Promise<AuditResult> {
  const started = performance.now()
  const base = { promise: check.promise, check: check.name, says: check.holds }
  try {
    const rows = await db.transaction(
      (tx) =>
        tx.query<{ key: string; detail: string; total: string }>({
          text: `with v as materialized (${check.sql(db.schema, db.schemaName)})
            select key, detail, (select count(*) from v) as total from v order by key collate "C" limit ${shownExamples}`,
          values: check.values?.(limits, db.schemaName) ?? [],
        }),
      { setup: settingsOf(check) },
    )
    const violations = counted(rows[0]?.total)
    const examples = rows.map(({ key, detail }) => ({ key, detail }))
    return {
      ...base,
      holds: violations === 0,
      violations,
      examples,
      skipped: null,
      duration_ms: since(started),
    }
  } catch (error) {
    // insufficient_privilege: this role cannot see it, which is not the same as broken
    if (sqlstateOf(error) !== '42501') throw error
    const skipped = `this role may not read what it needs (${describeDatabaseError(error)})`
    return {
      ...base,
      holds: true,
      violations: 0,
      examples: [],
      skipped,
      duration_ms: since(started),
    }
  }
}

/** Whole tables are read: the statement timeout of a request would be wrong here. */
function settingsOf(check: AuditCheck): string {
  const heap =
    'set local enable_indexscan = off; set local enable_indexonlyscan = off; set local enable_bitmapscan = off'
  return [
    'set transaction read only',
    `set local statement_timeout = '10min'`,
    `set local work_mem = '64MB'`,
    'set local jit = off',
    ...(check.onHeap === true ? [heap] : []),
  ].join('; ')
}

function since(started: number): Count {
  return Math.ceil(performance.now() - started)
}
