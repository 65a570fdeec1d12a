/** Log lines of reconciliation: one for each pass over a source that did something, or could not. */
import type { OverdueFinding, ReconcileRunEnd, Signals } from '../core/signals.ts'
import type { LogTarget } from './log-target.ts'

/** Writes them from now on; returns what ends it. */
export function logReconciliation(signals: Signals, log: LogTarget): (() => void)[] {
  return [
    signals.on('reconcile.run.ended', (run) => log[levelOf(run)](fieldsOf(run), textOf(run))),
    signals.on('findings.overdue', (finding) =>
      log.warn(overdueFields(finding), overdueText(finding)),
    ),
  ]
}

/** A pass that found both sides to agree is no news. */
function levelOf(run: ReconcileRunEnd): 'debug' | 'info' | 'warn' {
  if (run.state !== 'complete') return 'warn'
  return run.injected + run.opened + run.closed + run.repaired === 0 ? 'debug' : 'info'
}

function fieldsOf(run: ReconcileRunEnd): Record<string, unknown> {
  return {
    run_id: run.runId,
    source: run.source,
    how: run.how,
    state: run.state,
    calls: run.calls,
    records: run.records,
    injected: run.injected,
    opened: run.opened,
    closed: run.closed,
    repaired: run.repaired,
    duration_ms: Math.round(run.durationMs),
  }
}

function textOf(run: ReconcileRunEnd): string {
  return [
    `${run.how} pass over ${run.source} ${run.state}`,
    `${run.records} records in ${run.calls} calls`,
    ...(run.injected === 0 ? [] : [`${run.injected} events injected`]),
    ...(run.opened === 0 ? [] : [`${run.opened} findings opened; try: hookledger findings list`]),
    ...(run.closed === 0 ? [] : [`${run.closed} findings closed`]),
    ...(run.repaired === 0 ? [] : [`${run.repaired} repaired by rule`]),
    ...(run.error === null ? [] : [run.error]),
    `${Math.round(run.durationMs)} ms`,
  ].join(' · ')
}

function overdueFields(finding: OverdueFinding): Record<string, unknown> {
  return {
    finding_id: finding.findingId,
    kind: finding.kind,
    severity: finding.severity,
    owner: finding.owner,
    order_id: finding.orderId ?? undefined,
    due_at: finding.dueAt.toISOString(),
    step: finding.step,
  }
}

function overdueText({ findingId, kind, owner, orderId, dueAt }: OverdueFinding): string {
  const about = orderId === null ? '' : ` about order ${orderId}`
  return `finding ${kind}${about} of ${owner} was due ${dueAt.toISOString()}; try: hookledger findings show ${findingId}`
}
