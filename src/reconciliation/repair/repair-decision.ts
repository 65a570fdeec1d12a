/** The decision of a repair: its event of the source `hookledger`, what it says, and its evidence. */
import type { OrderLedger } from '../../workflow/order.ts'
import type { InboxEvent } from '../../workflow/event.ts'
import { emptyOutcome, type Outcome } from '../../workflow/outcome.ts'
import { recordedEntitles } from '../../workflow/workflow.ts'
import { pairOf, type OrderChange, type RepairDraft } from './draft.ts'
import type { FindingRow } from './finding.ts'
import type { RepairContext } from './ports.ts'
import type { RepairReason } from './record.ts'

/** The decision of a repair, as the ledger's statement takes it. */
export function outcomeOf(from: {
  readonly context: RepairContext
  readonly finding: FindingRow
  readonly draft: RepairDraft
  readonly decisionId: bigint
  readonly eventKey: bigint
  readonly by: RepairReason
}): Outcome {
  const { draft, decisionId, by } = from
  const { change, plan } = draft
  const [payment] = change?.payments ?? []
  const base = {
    ...emptyOutcome,
    decisionId,
    event: repairEvent(from, payment?.sourceId ?? from.finding.source?.sourceId ?? 0),
    reason: by.reason,
    evidence: evidenceOf(draft),
  }
  if (change === null) return { ...base, kind: 'skipped' }
  const { after, before, workflow } = change
  return {
    ...base,
    kind: before.version === after.version ? 'skipped' : 'moved',
    orderId: after.id,
    workflow: after.workflow,
    workflowVersion: workflow.version,
    // the decisions of an order are one walk: where a row was changed past them, they go on where they were
    from: before.stored ? (draft.decided ?? before.state) : workflow.initial,
    to: after.state,
    entitles: recordedEntitles(workflow, after.state),
    payment: payment?.row ?? null,
    appliesPayment: payment?.applies ?? null,
    effects: plan.effects,
    operations: change.operations,
    granted: plan.granted,
    revoked: plan.revoked,
  }
}

/** The event of the source `hookledger`; payments of its decision are of the provider's source. */
function repairEvent(
  {
    context,
    finding,
    draft,
    eventKey,
  }: {
    readonly context: RepairContext
    readonly finding: FindingRow
    readonly draft: RepairDraft
    readonly eventKey: bigint
  },
  sourceId: number,
): InboxEvent {
  const { environment } = context
  return {
    key: eventKey,
    sourceId,
    source: { name: 'hookledger', provider: 'hookledger', account: 'hookledger', environment },
    accountAllowed: true,
    eventId: draft.plan.id,
    eventType: `repair.${finding.kind}`,
    receivedAt: new Date(),
    occurredAt: null,
    synthetic: true,
    content: { readable: true, value: {} },
  }
}

function evidenceOf({ plan, change, granted, revoked }: RepairDraft): Record<string, unknown> {
  const evidence: Record<string, unknown> = {
    finding: plan.findingId,
    kind: plan.kind,
    choice: plan.choice,
  }
  const { order } = plan
  if (order?.from != null && order.decided !== null && order.from !== order.decided)
    evidence['found'] = order.from
  const [payment, ...others] = plan.payments
  if (payment !== undefined) {
    const { id, amount, currency } = payment
    Object.assign(evidence, { payment: id, amount, currency })
  }
  if (others.length > 0) evidence['payments'] = plan.payments.map(({ id }) => id)
  if (plan.voided.length > 0) evidence['voided'] = plan.voided.map(({ id }) => id)
  if (plan.effects.length > 0)
    evidence['effects'] = plan.effects.map((row) => [row.type, row.reference])
  const asked = (change?.operations ?? []).map((each) => each.operationId)
  if (asked.length > 0) evidence['operations'] = asked
  if (plan.refund !== null) {
    const { payment: back, amount, currency } = plan.refund
    evidence['refund'] = { payment: back, amount, currency }
    evidence['asked'] = plan.operations
      .filter(({ effect }) => effect === null)
      .map((each) => each.operationId)
  }
  if (granted.length > 0) evidence['granted'] = granted
  if (revoked.length > 0) evidence['revoked'] = revoked
  const stated = statedFigures(change)
  if (stated !== null) evidence['stated'] = stated
  return evidence
}

/** How much and until when, of rows that are not simply one for ever: what they can be held against later. */
function statedFigures(change: OrderChange | null): Record<string, unknown> | null {
  const rows = (change?.after.entitlements ?? []).filter((row) => {
    const isPlain = row.quantity === 1 && row.validUntil === null
    return change?.after !== change?.before && !isPlain
  })
  if (rows.length === 0) return null
  return Object.fromEntries(
    rows.map((row) => [
      pairOf(row),
      { quantity: row.quantity, valid_until: row.validUntil?.toISOString() ?? null },
    ]),
  )
}

/** An order as the row of a repair keeps it: before, and after. */
export function stateOf(ledger: OrderLedger | null): Readonly<Record<string, unknown>> {
  if (ledger === null || !ledger.stored) return {}
  return {
    order: ledger.id,
    state: ledger.state,
    version: ledger.version,
    active: ledger.entitlements
      .filter((row) => row.active)
      .map(pairOf)
      .sort(),
  }
}
