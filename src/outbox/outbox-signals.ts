/** Tells what became of operations, after the commit that made it so. Never a body, a header or a secret. */
import type { DispatchContext } from './dispatch-context.ts'
import type { RoundReport } from './round-report.ts'
import { errorOf, statusOf, type SettledAttempt } from './settle.ts'

/** How many operations ended, and how many of them belong to an order. */
export interface Told {
  readonly ended: number
  readonly withOrder: number
}

/** Emits the signals of one round. */
export function tellRound(ctx: DispatchContext, report: RoundReport): Told {
  const { signals, name } = ctx
  let ended = 0
  let withOrder = 0
  const expired = report.settled.filter(({ outcome, held }) => held && outcome.kind === 'died')
  if (expired.length > 0)
    signals.emit('worker.leases.expired', { role: 'dispatch', leases: expired.length })
  for (const attempt of report.settled) {
    const hasEnded =
      attempt.lateProof ||
      (attempt.held && (attempt.step.state === 'sent' || attempt.step.state === 'dead'))
    if (hasEnded) {
      ended++
      if (attempt.operation.orderId !== null) withOrder++
    }
    tellAttempt(ctx, attempt, hasEnded)
  }
  for (const { candidate } of report.sorted?.outlived ?? []) {
    ended++
    withOrder++
    signals.emit('outbox.operation.ended', {
      operationId: candidate.operationId,
      destination: name,
      outcome: 'canceled',
      orderId: candidate.orderId,
      attempts: candidate.attempts,
      status: null,
      ageMs: candidate.ageMs,
      reason: 'the order left the states in which it makes sense',
    })
  }
  for (const { candidate, reason } of report.sorted?.postponed ?? []) {
    if (reason === null) continue
    const { operationId, orderId, attempts } = candidate
    signals.emit('outbox.operation.stuck', {
      operationId,
      destination: name,
      orderId,
      attempts,
      reason,
    })
  }
  if (report.breaker === 'opened') {
    const forMs = ctx.destination.contract.breakerMs
    signals.emit('outbox.destination.paused', {
      destination: name,
      failures: report.failures,
      forMs,
    })
  }
  if (report.breaker === 'shut') signals.emit('outbox.destination.resumed', { destination: name })
  return { ended, withOrder }
}

function tellAttempt(
  { signals, name }: DispatchContext,
  { operation, outcome, step, held, lateProof, finishedAt }: SettledAttempt,
  hasEnded: boolean,
): void {
  const { operationId, orderId, number: attempts } = operation
  const common = { operationId, destination: name, orderId, attempts, status: statusOf(outcome) }
  if (hasEnded) {
    if (!signals.has('outbox.operation.ended')) return
    signals.emit('outbox.operation.ended', {
      ...common,
      outcome: lateProof || step.state === 'sent' ? 'sent' : 'dead',
      ageMs: operation.ageMs + (finishedAt - operation.leasedAt),
      reason: step.state === 'dead' && !lateProof ? step.error : null,
    })
    return
  }
  if (!held) return // late, and it changed nothing
  const kind = outcome.kind === 'died' ? 'uncertain' : outcome.kind
  if (kind === 'sent' || kind === 'present') return
  signals.emit('outbox.attempt.failed', {
    ...common,
    kind: operation.kind,
    outcome: kind,
    error: errorOf(outcome),
    nextInMs: step.nextInMs,
  })
  if (step.nextInMs === null && step.finding !== null) {
    signals.emit('outbox.operation.stuck', {
      operationId,
      destination: name,
      orderId,
      attempts,
      reason: step.error ?? 'nobody knows whether it was done',
    })
  }
}
