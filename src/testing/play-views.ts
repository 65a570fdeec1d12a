/**
 * What a test reads of a run in memory: orders, events and decisions, in the words of the ledger and
 * with the sentence that explains each.
 */
import { formatMoney, type Money } from '../core/money.ts'
import { viewEffects } from '../workflow/fold-context.ts'
import type { Effect, Entitlement, Operation, OrderLedger, Payment } from '../workflow/order.ts'
import { isFinal, type Outcome, type OutcomeKind } from '../workflow/outcome.ts'
import type { PlayedFinding, PlayRun } from '../workflow/play.ts'
import type { PlayedOperation } from '../workflow/play-operations.ts'
import type { PlayedEvent } from '../workflow/play-inbox.ts'

/** A decision, explained. */
export interface ExplainedDecision {
  readonly eventId: string
  readonly eventType: string
  readonly kind: OutcomeKind
  readonly reason: string
  readonly from: string | null
  readonly to: string | null
  /** Effects that it made: `license`, `refund re_1`. */
  readonly effects: readonly string[]
  /** `subject entitlement` pairs that became active, or ceased to be. */
  readonly granted: readonly string[]
  readonly revoked: readonly string[]
  /** Kinds of the findings that it made. */
  readonly findings: readonly string[]
  /** Whether it is the last word about its event. */
  readonly final: boolean
  /** All of it in one line. */
  readonly text: string
}

/** An order, with everything that the ledger holds of it. */
export interface PlayedOrder {
  readonly id: string
  readonly workflow: string
  readonly state: string
  readonly subject: string | null
  readonly expected: Money | null
  readonly payments: readonly Payment[]
  readonly effects: readonly Effect[]
  /** What its effects send, with the receipts. */
  readonly operations: readonly Operation[]
  /** The set last stated; active while the state entitles. */
  readonly entitlements: readonly Entitlement[]
  readonly findings: readonly PlayedFinding[]
  /** In the order in which they were made. */
  readonly decisions: readonly ExplainedDecision[]
}

/** An operation that was sent, or would be sent now. */
export interface SentOperation {
  readonly operationId: string
  readonly destination: string
  readonly name: string
  readonly orderId: string
  readonly effect: { readonly type: string; readonly reference: string }
  /** The request, parsed where it is JSON, else as text. */
  readonly body: unknown
  /** `sent` once it was answered. */
  readonly state: 'pending' | 'sent'
}

/** An event, and what became of it. */
export interface InboxEntry {
  readonly eventId: string
  readonly eventType: string
  /** The name of its source. */
  readonly source: string
  readonly state: PlayedEvent['state']
  readonly deliveries: number
  readonly orderId: string | null
  /** Why: of the last decision. */
  readonly reason: string
  /** For a waiting event: what for, and until when. */
  readonly waitsFor: string | null
  readonly until: Date | null
  readonly overdue: boolean
  /** The operation of ours that caused it, where its source says by which request it was. */
  readonly causedBy: string | null
  /** What its function threw, for an event that is dead of it. */
  readonly error: unknown
}

/** The order as tests see it. */
export function orderView(run: PlayRun, ledger: OrderLedger): PlayedOrder {
  const { id, workflow, state, subject, expected } = ledger
  return {
    id,
    workflow,
    state,
    subject,
    expected,
    payments: ledger.payments.map(({ sourceId: _, ...payment }) => payment),
    effects: viewEffects(ledger.effects, ledger.operations),
    operations: [...ledger.operations],
    entitlements: ledger.entitlements
      .filter((row) => row.stated)
      .map(({ stated: _, grantedBy: __, ...row }) => row),
    findings: run.findings.filter((each) => each.orderId === id || each.figures['order'] === id),
    decisions: run.decisions
      .filter((outcome) => outcome.orderId === id || outcome.wait?.orderId === id)
      .map(explained),
  }
}

/** The operation as tests see it; nothing for one of another order, or that its order's state has canceled. */
export function sentView(
  { draft, state, holds }: PlayedOperation,
  orderId: string | undefined,
): SentOperation[] {
  if (orderId !== undefined && draft.orderId !== orderId) return []
  if (state === 'pending' && !holds) return []
  const { operationId, destination, name, effectType: type, effectReference: reference } = draft
  const body = parsed(new TextDecoder().decode(draft.request))
  const effect = { type, reference }
  return [{ operationId, destination, name, orderId: draft.orderId, effect, body, state }]
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** The event as tests see it. */
export function inboxEntry(played: PlayedEvent): InboxEntry {
  const { event, outcome, state, deliveries, deadline, overdue, error } = played
  return {
    eventId: event.eventId,
    eventType: event.eventType,
    source: event.source.name ?? event.source.provider,
    state,
    deliveries,
    orderId: outcome?.orderId ?? null,
    reason: outcome?.reason ?? '',
    waitsFor: state === 'deferred' ? (outcome?.wait?.description ?? null) : null,
    until: deadline,
    overdue,
    causedBy: event.causedBy ?? null,
    error,
  }
}

function explained(outcome: Outcome): ExplainedDecision {
  const { event, kind, reason, from, to, granted, revoked } = outcome
  const effects = outcome.effects.map(({ type, reference }) =>
    reference === '' ? type : `${type} ${reference}`,
  )
  return {
    eventId: event.eventId,
    eventType: event.eventType,
    kind,
    reason,
    from,
    to,
    effects,
    granted,
    revoked,
    findings: outcome.findings.map((each) => each.kind),
    final: isFinal(kind),
    text: lineOf(outcome, effects),
  }
}

function lineOf(outcome: Outcome, effects: readonly string[]): string {
  const { event, kind, reason, payment, granted, revoked, findings } = outcome
  const parts = [`${event.eventType} ${event.eventId}: ${kind}, ${reason}`]
  if (payment !== null) {
    const applied = payment.applied ? '' : ', not applied'
    parts.push(`payment ${payment.id} of ${formatMoney(payment)}${applied}`)
  }
  const fetch = outcome.evidence['fetch'] as { about?: string; number?: string } | undefined
  if (fetch !== undefined) parts.push(`looked at ${fetch.about}: answer ${fetch.number}`)
  if (effects.length > 0) parts.push(`made ${effects.join(', ')}`)
  if (granted.length > 0) parts.push(`granted ${granted.join(', ')}`)
  if (revoked.length > 0) parts.push(`revoked ${revoked.join(', ')}`)
  if (findings.length > 0) parts.push(`found ${findings.map((each) => each.kind).join(', ')}`)
  return parts.join('; ')
}
