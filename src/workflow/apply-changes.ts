/**
 * Changes the order in memory after every check passed: payment, effects, state, and the difference
 * between the entitlements that stand and those that should.
 */
import { isPermanent, PermanentError } from '../core/errors.ts'
import { printable } from './checked-text.ts'
import type { EntitlementClaim } from './decision.ts'
import { recordedPayment, type EffectSend, type SortedChange } from './sorted-change.ts'
import type { LedgerEntitlement, LedgerPayment, Operation, OrderLedger } from './order.ts'
import type { OperationDraft } from './outbox-port.ts'
import type { FindingDraft, Outcome, OutcomeKind, PaymentOutcome } from './outcome.ts'
import { entitles, grants, recordedEntitles } from './workflow.ts'

const kinds = {
  fulfill: 'fulfilled',
  move: 'moved',
  reverse: 'reversed',
  mirror: 'moved',
} as const satisfies Record<string, OutcomeKind>

/** Applies a change that passed every check. */
export function applyChanges(
  change: SortedChange,
  to: string,
  findings: readonly FindingDraft[],
): Outcome {
  const { ledger, claim, decision, workflow, decisionId } = change
  // first: a body that cannot be encoded throws, and must leave the order as it was
  const drafts = draftOperations(change)
  const isShadow = workflow.shadowOf !== undefined
  const operations = isShadow ? noOperations : drafts
  const from = ledger.state
  const wanted = decision.entitle === undefined ? null : wholeSet(decision.entitle)
  const recorded = recordedPayment(change)
  if (change.payment !== null && change.paymentIsNew)
    recordPayment(change, change.payment, recorded)
  ledger.effects.push(...change.fresh)
  for (const draft of operations) ledger.operations.push(recordedOperation(draft))
  if (ledger.subject === null && decision.subject !== undefined) ledger.subject = decision.subject
  ledger.state = to
  ledger.version += 1n
  const difference = stateEntitlements(ledger, wanted, grants(workflow, to), decisionId)
  const evidence = evidenceOf(change, difference, operations)
  return {
    decisionId,
    event: claim.event,
    kind: kinds[decision.kind],
    reason: reasonOf(change, from, to),
    orderId: ledger.id,
    workflow: ledger.workflow,
    workflowVersion: workflow.version,
    from,
    to,
    entitles: recordedEntitles(workflow, to),
    evidence: isShadow ? { ...evidence, ...wouldHave(change, to, drafts) } : evidence,
    payment: recorded === undefined ? change.payment : null,
    appliesPayment: change.paymentIsNew && recorded !== undefined ? recorded.id : null,
    effects: change.fresh,
    operations,
    learned: claim.learned,
    findings,
    granted: difference.granted,
    revoked: difference.revoked,
    ...(difference.entitled !== undefined && { entitled: [...difference.entitled] }),
    wait: null,
  }
}

/** Whether a change without new effects would leave the order as it is: state, subject and the whole set. */
export function isNoChange(
  { ledger, decision, workflow, decisionId }: SortedChange,
  to: string,
): boolean {
  if (to !== ledger.state) return false
  if (ledger.subject === null && decision.subject !== undefined) return false
  if (decision.entitle === undefined) return true
  // nothing of the trial is kept: the difference alone is asked for
  const trial = { ...ledger }
  const wanted = wholeSet(decision.entitle)
  const difference = stateEntitlements(trial, wanted, grants(workflow, to), decisionId)
  return (
    difference.granted.length === 0 &&
    difference.revoked.length === 0 &&
    difference.stated === undefined &&
    statedKeys(trial) === statedKeys(ledger)
  )
}

/** What an order that does not entitle now would entitle to is part of what it is, too. */
function statedKeys({ entitlements }: Pick<OrderLedger, 'entitlements'>): string {
  const keys = entitlements.flatMap((row) =>
    row.stated ? [`${row.subject}\u0000${row.entitlement}`] : [],
  )
  return keys.sort().join('\n')
}

const noOperations: readonly OperationDraft[] = Object.freeze([])

/** What a decision in shadow left to the handler beside which it was made. */
function wouldHave(
  { ledger, workflow }: SortedChange,
  to: string,
  drafts: readonly OperationDraft[],
): Record<string, unknown> {
  const stated = entitles(workflow, to) ? ledger.entitlements.filter((row) => row.stated) : []
  return {
    shadow: true,
    ...(stated.length > 0 && {
      would_grant: stated.map((row) => `${row.subject} ${row.entitlement}`),
    }),
    ...(drafts.length > 0 && {
      would_send: drafts.map(({ destination, name }) => `${name} to ${destination}`),
    }),
  }
}

/** What the new effects send, with the exact bytes: made once, when nothing else can refuse the change. */
function draftOperations(change: SortedChange): readonly OperationDraft[] {
  if (change.sends.length === 0) return noOperations
  return change.sends.map((each) => draftOperation(change, each))
}

function draftOperation(
  { claim, ledger, workflow, context }: SortedChange,
  { effect, send }: EffectSend,
): OperationDraft {
  try {
    return context.outbox.draft({
      orderId: ledger.id,
      effectType: effect.type,
      effectReference: effect.reference,
      destination: send.to,
      name: send.name ?? effect.type,
      body: send.body,
      whileStates: send.while === undefined ? null : [...new Set(send.while)],
    })
  } catch (error) {
    if (!(isPermanent(error) && error instanceof Error)) throw error
    throw new PermanentError(
      `workflow ${workflow.name}, ${printable(claim.event.eventType)}: send of effect ${effect.type} to ${send.to}: ${error.message}`,
      { cause: error },
    )
  }
}

function recordedOperation(draft: OperationDraft): Operation {
  return Object.freeze({
    name: draft.name,
    destination: draft.destination,
    effect: Object.freeze({ type: draft.effectType, reference: draft.effectReference }),
    state: 'pending',
    receipt: null,
  })
}

/** What the workflow declared, and what the decision names, makes and changes. */
function evidenceOf(
  change: SortedChange,
  { granted, revoked, stated }: Difference,
  operations: readonly OperationDraft[],
): Record<string, unknown> {
  const { decision, payment, absorbed, fresh } = change
  const evidence: Record<string, unknown> = { ...decision.evidence }
  if (payment !== null) {
    Object.assign(evidence, {
      payment: payment.id,
      amount: payment.amount,
      currency: payment.currency,
    })
  }
  if (absorbed.length > 0) evidence['absorbed'] = absorbed.map((row) => [row.type, row.reference])
  if (fresh.length > 0) evidence['effects'] = fresh.map((row) => [row.type, row.reference])
  if (operations.length > 0) evidence['operations'] = operations.map((each) => each.operationId)
  if (granted.length > 0) evidence['granted'] = granted
  if (revoked.length > 0) evidence['revoked'] = revoked
  if (stated !== undefined) evidence['stated'] = stated
  return evidence
}

function reasonOf(change: SortedChange, from: string, to: string): string {
  const { decision } = change
  if (typeof decision.reason === 'string' && decision.reason !== '')
    return printable(decision.reason)
  const made = change.fresh
    .map((row) => (row.reference === '' ? row.type : `${row.type} ${row.reference}`))
    .join(', ')
  const moved = from === to ? `stays ${to}` : `${from} to ${to}`
  return made === '' ? moved : `${moved}: ${made}`
}

/** A payment that was kept as not applied is applied now; its figures stay those of the first. */
function recordPayment(
  change: SortedChange,
  payment: PaymentOutcome,
  recorded: LedgerPayment | undefined,
): void {
  const { ledger, claim } = change
  const row = recorded ?? { ...payment, sourceId: claim.event.sourceId }
  const applied = Object.freeze({ ...row, applied: true })
  if (recorded === undefined) ledger.payments.push(applied)
  else ledger.payments = [...ledger.payments.filter((each) => each !== recorded), applied]
}

function wholeSet(claims: readonly EntitlementClaim[]): Map<string, EntitlementClaim> {
  return new Map(claims.map((claim) => [`${claim.subject}\u0000${claim.entitlement}`, claim]))
}

interface Difference {
  readonly granted: string[]
  readonly revoked: string[]
  /** How much and until when, of rows that changed and are or were not simply one for ever. */
  stated?: Record<string, { readonly quantity: number; readonly valid_until: string | null }>
  /** Subjects who may use something else than before. */
  entitled?: Set<string>
}

/**
 * Writes the difference. `wanted` null keeps the set last stated. Nothing of an order is active
 * outside its entitling states, whatever a decision states: nobody can forget to revoke.
 */
export function stateEntitlements(
  ledger: OrderLedger,
  wanted: ReadonlyMap<string, EntitlementClaim> | null,
  stateEntitles: boolean,
  decisionId: bigint,
): Difference {
  const difference: Difference = { granted: [], revoked: [] }
  if (ledger.entitlements.length === 0 && (wanted === null || wanted.size === 0)) return difference
  const rows = new Map<string, LedgerEntitlement>()
  for (const row of ledger.entitlements) rows.set(`${row.subject}\u0000${row.entitlement}`, row)
  if (wanted !== null) {
    for (const [key, claim] of wanted) {
      const { subject, entitlement, quantity = 1 } = claim
      const validUntil = claim.validUntil == null ? null : new Date(claim.validUntil)
      const { active = false, grantedBy = null } = rows.get(key) ?? {}
      rows.set(key, { subject, entitlement, quantity, validUntil, active, stated: true, grantedBy })
    }
    for (const [key, row] of rows) {
      if (!wanted.has(key) && row.stated) rows.set(key, { ...row, stated: false })
    }
  }
  const next: LedgerEntitlement[] = []
  for (const row of rows.values()) {
    const active = row.stated && stateEntitles
    if (active !== row.active) {
      const changed = active ? difference.granted : difference.revoked
      changed.push(`${row.subject} ${row.entitlement}`)
      difference.entitled = (difference.entitled ?? new Set()).add(row.subject)
    }
    next.push({ ...row, active, grantedBy: active && !row.active ? decisionId : row.grantedBy })
  }
  noteFigures(difference, ledger.entitlements, next)
  ledger.entitlements = next
  return difference
}

/** What else than being there a row says is told too, so that it can be held against its decisions later. */
function noteFigures(
  difference: Difference,
  before: readonly LedgerEntitlement[],
  after: readonly LedgerEntitlement[],
): void {
  for (const row of after) {
    const old = before.find(
      (each) => each.subject === row.subject && each.entitlement === row.entitlement,
    )
    if (isPlain(row) && (old === undefined || isPlain(old))) continue
    const until = row.validUntil?.getTime()
    if (old !== undefined && old.quantity === row.quantity && old.validUntil?.getTime() === until)
      continue
    if (row.active) difference.entitled = (difference.entitled ?? new Set()).add(row.subject)
    difference.stated = {
      ...difference.stated,
      [`${row.subject} ${row.entitlement}`]: {
        quantity: row.quantity,
        valid_until: row.validUntil?.toISOString() ?? null,
      },
    }
  }
}

function isPlain({ quantity, validUntil }: LedgerEntitlement): boolean {
  return quantity === 1 && validUntil === null
}
