/**
 * Opens an order inside the app's own transaction. An upsert: it never fails on an order that exists,
 * it answers what it found. Both this and an event that waits for the order write the order's row in
 * the table of names, so that neither can miss the other.
 */
import { HookledgerError } from '../core/errors.ts'
import { formatMoney, type Money } from '../core/money.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { runParts, type WritePart } from '../postgres/write-parts.ts'
import { finding } from '../workflow/finding-kinds.ts'
import type { FindingDraft } from '../workflow/outcome.ts'
import { orderId } from '../workflow/resolution.ts'
import { entitles, type Workflow } from '../workflow/workflow.ts'
import { findingsPart, type FindingPolicy } from './findings.ts'
import { orderKind } from './names.ts'

/** What the app knows of an order when it opens it. */
export interface OpenOrder {
  /** The app's own id, at most 255 bytes. */
  readonly id: string
  readonly subject?: string | undefined
  /** What must be paid at least; without it the workflow's `accepts` is asked of every payment. */
  readonly expected?: Money | undefined
}

/** `mismatch`: the order exists with another workflow, subject or amount, which stay as they are. */
export type OpenOrderResult = 'created' | 'existed' | 'mismatch'

/** What opening needs of the other parts. */
export interface OpenOrderContext {
  readonly db: Database
  readonly installationId: string
  readonly policy: FindingPolicy
  /** The inbox's part: wakes what waits for a name (source 0 and kind `order` is an order's own id). */
  readonly wake: (names: readonly { readonly sourceId: number; readonly kind: string; readonly value: string }[]) => WritePart[]
  readonly actor: string
}

interface ExistingOrder {
  workflow: string
  state: string
  subject: string | null
  expected_amount: string | null
  currency: string | null
  captured: string | null
}

/** Opens an order in the transaction that `tx` is in. */
export async function openOrder(
  context: OpenOrderContext,
  tx: Executor,
  workflow: Workflow,
  order: OpenOrder,
): Promise<OpenOrderResult> {
  const id = checkedId(order.id)
  const s = context.db.schema
  const inserted = await tx.query({
    text: `insert into ${s}orders (order_id, workflow, state, subject, expected_amount, currency)
      values ($1, $2, $3, $4, $5::bigint, $6) on conflict (order_id) do nothing returning 1`,
    values: [id, workflow.name, workflow.initial, order.subject ?? null, order.expected?.amount.toString() ?? null, order.expected?.currency ?? null],
  })
  const created = inserted.length > 0
  // waits for a deferral of this order that is being committed, and is waited for by the next one
  await tx.query({
    text: `insert into ${s}order_names as n (source_id, kind, name, order_id) values (0, '${orderKind}', $1, $1)
      on conflict (source_id, kind, name) do update set order_id = excluded.order_id`,
    values: [id],
  })
  const wakes = context.wake([{ sourceId: 0, kind: orderKind, value: id }])
  if (created) {
    await runParts(tx, [openedPart(s, id, workflow, order, context.actor), ...wakes])
    return 'created'
  }
  return complete(context, tx, workflow, { ...order, id }, wakes)
}

function checkedId(id: string): string {
  try {
    const resolved = orderId(id)
    return resolved.kind === 'order' ? resolved.id : id
  } catch (error) {
    throw new HookledgerError('HKL_LEDGER_ORDER_INVALID', error instanceof Error ? error.message : 'the order id is not a text', { cause: error })
  }
}

function openedPart(s: string, id: string, workflow: Workflow, order: OpenOrder, actor: string): WritePart {
  return {
    name: 'opened',
    // The decision names a registered state, and no worker may have started yet. Said on this very
    // connection: the pool may have no other one while checkouts wait for each other.
    sql: `opened_state as (
      insert into ${s}workflow_states (workflow, state, entitles) values (:2, :3, :4::boolean)
      on conflict (workflow, state) do nothing),
    opened as (
      insert into ${s}ledger_decisions (order_id, workflow, kind, final, to_state, entitles, reason, evidence, workflow_version, actor)
      values (:1, :2, 'opened', false, :3, :4::boolean, :5, :6::jsonb, :7, :8) returning 1)`,
    values: [
      id,
      workflow.name,
      workflow.initial,
      entitles(workflow, workflow.initial),
      'opened by the app',
      JSON.stringify({ subject: order.subject ?? null, expected: order.expected === undefined ? null : formatMoney(order.expected) }),
      workflow.version,
      actor,
    ],
  }
}

/** The order exists: figures that were missing are added, others are compared, and a difference told. */
async function complete(
  context: OpenOrderContext,
  tx: Executor,
  workflow: Workflow,
  order: OpenOrder,
  wakes: readonly WritePart[],
): Promise<OpenOrderResult> {
  const s = context.db.schema
  const [existing] = await tx.query<ExistingOrder>({
    text: `select o.workflow, o.state, o.subject, o.expected_amount, o.currency,
        (select max(p.amount) from ${s}ledger_payments p where p.order_id = o.order_id and p.applied and p.currency = $2) as captured
      from ${s}orders o where o.order_id = $1 for no key update of o`,
    values: [order.id, order.expected?.currency ?? ''],
  })
  if (existing === undefined) throw new HookledgerError('HKL_LEDGER_ORDER_INVALID', `order ${order.id} vanished while it was opened: try again`)
  const differences = differencesOf(existing, workflow, order)
  const findings: FindingDraft[] = differences === null ? [] : [finding('order_differs', `order:${order.id}`, differences)]
  const underpaid = shortfall(existing, order)
  if (underpaid !== null) findings.push(finding('underpaid', `order:${order.id}`, underpaid))
  const addsFigures =
    existing.workflow === workflow.name &&
    ((existing.subject === null && order.subject !== undefined) || (existing.expected_amount === null && order.expected !== undefined))
  const found = findingsPart(s, context.installationId, context.policy, findings.map((draft) => ({ draft, source: 'app', orderId: order.id, eventKey: null })))
  await runParts(tx, [
    ...(addsFigures ? [completedPart(s, order), openedPart(s, order.id, { ...workflow, initial: existing.state }, order, context.actor)] : []),
    ...(found === null ? [] : [found]),
    ...wakes,
  ])
  return differences === null ? 'existed' : 'mismatch'
}

function completedPart(s: string, order: OpenOrder): WritePart {
  return {
    name: 'completed',
    sql: `completed as (
      update ${s}orders set subject = coalesce(subject, :2), expected_amount = coalesce(expected_amount, :3::bigint),
        currency = coalesce(currency, :4), version = version + 1, updated_at = now()
      where order_id = :1 returning 1)`,
    values: [order.id, order.subject ?? null, order.expected?.amount.toString() ?? null, order.expected?.currency ?? null],
  }
}

function differencesOf(existing: ExistingOrder, workflow: Workflow, order: OpenOrder): Record<string, string> | null {
  const differences: Record<string, string> = {}
  if (existing.workflow !== workflow.name) differences['workflow'] = `${existing.workflow}, asked ${workflow.name}`
  if (existing.subject !== null && order.subject !== undefined && existing.subject !== order.subject) {
    differences['subject'] = `${existing.subject}, asked ${order.subject}`
  }
  if (existing.expected_amount !== null && existing.currency !== null && order.expected !== undefined) {
    const known = { amount: BigInt(existing.expected_amount), currency: existing.currency }
    if (known.amount !== order.expected.amount || known.currency !== order.expected.currency) {
      differences['expected'] = `${formatMoney(known)}, asked ${formatMoney(order.expected)}`
    }
  }
  return Object.keys(differences).length === 0 ? null : { order: order.id, ...differences }
}

/** More is expected now than was captured when an event opened the order. */
function shortfall(existing: ExistingOrder, order: OpenOrder): Record<string, string> | null {
  if (order.expected === undefined || existing.expected_amount !== null || existing.captured === null) return null
  const captured = BigInt(existing.captured)
  if (captured >= order.expected.amount) return null
  return {
    order: order.id,
    captured: formatMoney({ amount: captured, currency: order.expected.currency }),
    expected: formatMoney(order.expected),
  }
}
