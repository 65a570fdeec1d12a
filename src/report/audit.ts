/**
 * Every promise as queries: zero rows is what holds. Each check is one statement, so that it sees one
 * moment, and none holds a snapshot longer than it runs. Read-only; safe beside workers.
 */
import type { Database } from '../postgres/executor.ts'
import { describeDatabaseError, sqlstateOf } from '../postgres/sqlstate.ts'
import { acceptedChecks } from './audit-accepted.ts'
import type { AuditCheck, AuditLimits, AuditedPromise } from './audit-check.ts'
import { doorChecks, shadowChecks } from './audit-doors.ts'
import { onceChecks, togetherChecks } from './audit-effects.ts'
import { entitledChecks } from './audit-entitled.ts'
import { explainedChecks } from './audit-explained.ts'
import { evidenceChecks, gatheringChecks } from './audit-gathered.ts'
import { endedOperationChecks, openOperationChecks } from './audit-outbox-open.ts'
import { askedChecks, operationChecks } from './audit-outbox.ts'
import { subjectChecks, toldChecks } from './audit-subjects.ts'
import { reconciledChecks, repairedChecks } from './audit-reconciled.ts'
import { stuckChecks } from './audit-stuck.ts'
import { counted, type Count } from './row-values.ts'

/** Every check, in the order of the promises. */
export const auditChecks: readonly AuditCheck[] = [
  ...acceptedChecks,
  ...onceChecks,
  ...togetherChecks,
  ...askedChecks,
  ...entitledChecks,
  ...shadowChecks,
  ...stuckChecks,
  ...gatheringChecks,
  ...openOperationChecks,
  ...toldChecks,
  ...operationChecks,
  ...reconciledChecks,
  ...explainedChecks,
  ...evidenceChecks,
  ...doorChecks,
  ...endedOperationChecks,
  ...subjectChecks,
  ...repairedChecks,
]

/** What one check saw; the keys are what `--json` prints. */
export interface AuditResult {
  readonly promise: AuditedPromise
  readonly check: string
  readonly holds: boolean
  /** What holds, or should. */
  readonly says: string
  readonly violations: Count
  /** Further ones that a finding names: somebody answers for each and its time is not over, or accepted it until a day. */
  readonly known: Count
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
        tx.query<{ key: string; detail: string; total: string; known: string; is_known: boolean }>({
          text: `with v as materialized (${check.sql(db.schema, db.schemaName)}),
            w as materialized (select v.key, v.detail, ${isKnown(check, db.schema)} as is_known from v)
            select key, detail, is_known, (select count(*) from w where not is_known) as total,
              (select count(*) from w where is_known) as known
            from w order by is_known, key collate "C" limit ${shownExamples}`,
          values: check.values?.(limits, db.schemaName) ?? [],
        }),
      { setup: settingsOf(check) },
    )
    const violations = counted(rows[0]?.total)
    const examples = rows.flatMap((row) =>
      row.is_known ? [] : [{ key: row.key, detail: row.detail }],
    )
    return {
      ...base,
      holds: violations === 0,
      violations,
      known: counted(rows[0]?.known),
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
      known: 0,
      examples: [],
      skipped,
      duration_ms: since(started),
    }
  }
}

/** Whether a row `v` is one that a person answers for: it is being dealt with, or accepted until a day. */
function isKnown(check: AuditCheck, s: string): string {
  if (check.knownByFinding !== true) return 'false'
  return `exists (select 1 from ${s}findings f where f.order_id = v.order_id
    and f.kind in ('tampered', 'entitlement_without_state')
    and ((f.state in ('open', 'repairing') and f.due_at > now())
      or (f.state = 'dismissed' and f.dismissed_until > now())))`
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
