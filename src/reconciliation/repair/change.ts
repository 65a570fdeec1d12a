/** The change of an order that each choice means. Each is made under the order's lock, and writes nothing. */
import { HookledgerError } from '../../core/errors.ts'
import type { Executor } from '../../postgres/executor.ts'
import type { LedgerEffect, OrderLedger } from '../../workflow/order.ts'
import type { Outcome } from '../../workflow/outcome.ts'
import { grants, type Workflow } from '../../workflow/workflow.ts'
import type { Answers } from './ask.ts'
import { OrderHeld, unchanged, type DraftPayment, type OrderChange } from './draft.ts'
import type { FindingRow } from './finding.ts'
import type { Folded, FoldedOrder, RepairContext } from './ports.ts'

const changing: ReadonlySet<string> = new Set(['fulfilled', 'moved', 'reversed'])

/** What folding the provider's records came to for the finding's order. */
export interface ProviderChange {
  /** Null: it changes nothing here. */
  readonly change: OrderChange | null
  /** Whether all that the records say is recorded here already. */
  readonly isRecorded: boolean
  readonly notes: readonly string[]
}

/**
 * Folds the provider's records over the finding's order.
 *
 * @throws OrderHeld when somebody else holds it
 * @throws HookledgerError HKL_REPAIR_IMPOSSIBLE where they lead to several orders
 */
export async function providerChange(
  context: RepairContext,
  tx: Executor,
  input: {
    readonly finding: FindingRow
    readonly answers: Answers
    readonly decisionId: bigint
    readonly lenient: boolean
    readonly writes: boolean
  },
): Promise<ProviderChange> {
  const { finding, answers, decisionId, lenient, writes } = input
  const { source } = finding
  if (source === null || answers.events.length === 0)
    return { change: null, isRecorded: false, notes: [] }
  const { events } = answers
  const folded = await context.fold(tx, { source, events, decisionId, lenient, writes })
  const [held] = folded.held
  if (held !== undefined) throw new OrderHeld(held)
  const order = theOrder(finding, folded)
  if (order === null)
    return { change: null, isRecorded: false, notes: [...notesOf(folded, []), ...folded.ignored] }
  const workflow = context.workflows.get(order.after.workflow)
  const changed = order.outcomes.filter(({ kind }) => changing.has(kind))
  const others = order.outcomes.filter(({ kind }) => !changing.has(kind))
  const notes = notesOf(folded, others)
  if (workflow === undefined || changed.length === 0) {
    const isRecorded =
      order.outcomes.length > 0 &&
      others.every(({ kind }) => kind === 'absorbed' || kind === 'skipped')
    return {
      change: null,
      isRecorded: isRecorded && folded.failures.length === 0,
      notes: [...notes, ...skippedNotes(others), ...folded.ignored],
    }
  }
  return {
    change: foldedChange(order, workflow, changed, decisionId, notes),
    isRecorded: false,
    notes,
  }
}

function theOrder(finding: FindingRow, folded: Folded): FoldedOrder | null {
  if (finding.orderId !== null)
    return folded.orders.find(({ id }) => id === finding.orderId) ?? null
  const [only, ...others] = folded.orders
  if (others.length === 0) return only ?? null
  throw new HookledgerError(
    'HKL_REPAIR_IMPOSSIBLE',
    `the provider's records lead to ${folded.orders.length} orders (${folded.orders.map(({ id }) => id).join(', ')}): choose what to do with each by its own finding`,
  )
}

function notesOf({ loose, failures }: Folded, others: readonly Outcome[]): string[] {
  const refused = others
    .filter(({ kind }) => kind === 'contradicted' || kind === 'deferred')
    .map(({ event, kind, reason }) => `not part of it: ${event.eventType} is ${kind}, ${reason}`)
  return [
    ...refused,
    ...loose.map((each) => `not part of it: ${each}`),
    ...failures.map((each) => `not part of it: ${each}`),
  ]
}

function skippedNotes(others: readonly Outcome[]): string[] {
  return others
    .filter(({ kind }) => kind === 'absorbed' || kind === 'skipped')
    .map(({ event, kind, reason }) => `${event.eventType} is ${kind}, ${reason}`)
}

function foldedChange(
  order: FoldedOrder,
  workflow: Workflow,
  changed: readonly Outcome[],
  decisionId: bigint,
  notes: readonly string[],
): OrderChange {
  const { before, after } = order
  const payments: DraftPayment[] = changed.flatMap(({ event, payment, appliesPayment }) =>
    payment === null && appliesPayment === null
      ? []
      : [{ sourceId: event.sourceId, row: payment, applies: appliesPayment }],
  )
  return {
    workflow,
    before,
    after: { ...after, entitlements: ownGrants(before, after, workflow, decisionId) },
    payments,
    voided: [],
    effects: changed.flatMap(({ effects }) => effects),
    operations: changed.flatMap(({ operations }) => operations),
    learned: order.outcomes.flatMap(({ event, learned }) =>
      learned.map((name) => ({ sourceId: event.sourceId, kind: name.kind, value: name.value })),
    ),
    findings: changed.flatMap(({ findings }) => findings),
    notes,
  }
}

/**
 * What one decision ends with. On its way it may have granted what it revoked again: such a grant would name
 * a decision that does not entitle.
 */
function ownGrants(
  before: OrderLedger,
  after: OrderLedger,
  workflow: Workflow,
  decisionId: bigint,
): OrderLedger['entitlements'] {
  const open = grants(workflow, after.state)
  return after.entitlements.map((row) => {
    const earlier = before.entitlements.find(
      (each) => each.subject === row.subject && each.entitlement === row.entitlement,
    )
    const active = row.stated && open
    const grantedBy = active && earlier?.active !== true ? decisionId : (earlier?.grantedBy ?? null)
    return { ...row, active, grantedBy }
  })
}

/**
 * The finding's order, under its lock where something is written; null where it does not exist.
 *
 * @throws OrderHeld when somebody else holds it
 * @throws HookledgerError HKL_REPAIR_IMPOSSIBLE for a workflow that is not configured
 */
export async function orderAsItIs(
  context: RepairContext,
  tx: Executor,
  orderId: string | null,
  writes: boolean,
): Promise<OrderChange | null> {
  if (orderId === null) return null
  const { ledgers, held } = await context.orders(tx, [orderId], writes)
  if (held.has(orderId)) throw new OrderHeld(orderId)
  const ledger = ledgers.get(orderId)
  if (ledger === undefined) return null
  const workflow = context.workflows.get(ledger.workflow)
  if (workflow !== undefined) return unchanged(workflow, ledger)
  throw new HookledgerError(
    'HKL_REPAIR_IMPOSSIBLE',
    `order ${orderId} belongs to workflow ${ledger.workflow}, which this configuration does not have`,
  )
}

/**
 * A compensating effect: once for a finding, whatever its type was recorded for before.
 *
 * @throws HookledgerError HKL_REPAIR_CHOICE without a type, HKL_REPAIR_IMPOSSIBLE when it is recorded already
 */
export function compensation(
  held: OrderChange,
  finding: FindingRow,
  type: string,
  payment: { readonly id: string; readonly amount: bigint; readonly currency: string } | null,
): OrderChange {
  const effect: LedgerEffect = Object.freeze({
    type,
    reference: `finding:${finding.id}`,
    amount: payment?.amount ?? null,
    currency: payment?.currency ?? null,
    // it compensates: it does not count against the payment as a refund does
    payment: null,
    data: Object.freeze({
      finding: finding.id,
      kind: finding.kind,
      ...(payment === null ? {} : { payment: payment.id }),
    }),
  })
  const exists = held.before.effects.some(
    (row) => row.type === effect.type && row.reference === effect.reference,
  )
  if (exists) {
    throw new HookledgerError(
      'HKL_REPAIR_IMPOSSIBLE',
      `effect ${type} is recorded for this finding already: it happens once`,
    )
  }
  const after = { ...held.before, effects: [...held.before.effects, effect] }
  return { ...held, after, effects: [effect] }
}
