/**
 * Opens an order inside the app's own transaction. An upsert: it never fails on an order that exists,
 * it answers what it found. Both this and an event that waits for the order write the order's row in
 * the table of names, so that neither can miss the other.
 */
import { HookledgerError } from '../core/errors.ts'
import { formatMoney } from '../core/money.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { subjectAsAsked } from '../postgres/present-subject.ts'
import { runParts, type WritePart } from '../postgres/write-parts.ts'
import {
  checkedOpening,
  openLedger,
  unopenedOrder,
  type Opening,
  type OpeningAnswer,
} from '../workflow/opening.ts'
import type { OrderLedger } from '../workflow/order.ts'
import { recordedEntitles, type Workflow } from '../workflow/workflow.ts'
import { findingsPart, type FindingPolicy } from './findings.ts'
import { orderKind } from './names.ts'

/** What opening needs of the other parts. */
export interface OpenOrderContext {
  readonly db: Database
  readonly installationId: string
  readonly policy: FindingPolicy
  /** The inbox's part: wakes what waits for a name (source 0 and kind `order` is an order's own id). */
  readonly wake: (
    names: readonly { readonly sourceId: number; readonly kind: string; readonly value: string }[],
  ) => WritePart[]
  readonly actor: string
}

/** Opens an order in the transaction that `tx` is in. */
export async function openOrder(
  context: OpenOrderContext,
  tx: Executor,
  workflow: Workflow,
  given: Opening,
): Promise<OpeningAnswer> {
  const order = checkedOpening(given)
  const s = context.db.schema
  const inserted = await tx.query({
    text: `insert into ${s}orders (order_id, workflow, state, subject, expected_amount, currency)
      values ($1, $2, $3, $4, $5::bigint, $6) on conflict (order_id) do nothing returning 1`,
    values: [
      order.id,
      workflow.name,
      workflow.initial,
      order.subject ?? null,
      order.expected?.amount.toString() ?? null,
      order.expected?.currency ?? null,
    ],
  })
  // waits for a deferral of this order that is being committed, and is waited for by the next one
  await tx.query({
    text: `insert into ${s}order_names as n (source_id, kind, name, order_id) values (0, '${orderKind}', $1, $1)
      on conflict (source_id, kind, name) do update set order_id = excluded.order_id`,
    values: [order.id],
  })
  const wakes = context.wake([{ sourceId: 0, kind: orderKind, value: order.id }])
  const ledger =
    inserted.length > 0
      ? unopenedOrder(order.id, workflow)
      : await lockAndRead(context.db, tx, order)
  const { version } = ledger
  const { answer, findings } = openLedger(ledger, workflow, order)
  const found = findingsPart(
    s,
    context.installationId,
    context.policy,
    findings.map((draft) => ({ draft, source: 'app', orderId: order.id, eventKey: null })),
  )
  await runParts(tx, [
    ...(ledger.version === version ? [] : [openedPart(s, ledger, workflow, order, context.actor)]),
    ...(answer === 'created' || ledger.version === version ? [] : [completedPart(s, ledger)]),
    ...(found === null ? [] : [found]),
    ...wakes,
  ])
  return answer
}

/** Locks the order's row, waiting for whoever holds it, and reads what opening compares with. */
async function lockAndRead(
  db: Database,
  tx: Executor,
  { id, subject }: Opening,
): Promise<OrderLedger> {
  const s = db.schema
  const asked = subject ?? null
  const [row] = await tx.query<{
    workflow: string
    state: string
    subject: string | null
    expected_amount: string | null
    currency: string | null
    version: string
  }>({
    text: `select o.workflow, o.state, ${subjectAsAsked(s, 'o.subject', '$2::text')} as subject, o.expected_amount, o.currency, o.version
      from ${s}orders o where o.order_id = $1 for no key update of o`,
    values: [id, asked],
  })
  if (row === undefined)
    throw new HookledgerError(
      'HKL_LEDGER_ORDER_INVALID',
      `order ${id} vanished while it was opened: try again`,
    )
  const payments = await tx.query<{
    source_id: number
    payment_id: string
    amount: string
    currency: string
    applied: boolean
  }>({
    text: `select source_id, payment_id, amount, currency, applied
      from ${db.schema}ledger_payments where order_id = $1 order by recorded_at, payment_id`,
    values: [id],
  })
  const entitled = await tx.query<{ subject: string; entitlement: string }>({
    text: `select ${subjectAsAsked(s, 'e.subject', '$2::text')} as subject, e.entitlement from ${s}entitlements e
      where e.order_id = $1 and e.stated order by e.subject, e.entitlement`,
    values: [id, asked],
  })
  const { workflow, state, expected_amount: amount, currency } = row
  return {
    id,
    workflow,
    sourceId: null,
    provider: null,
    providerAccount: null,
    state,
    subject: row.subject,
    expected: amount === null || currency === null ? null : { amount: BigInt(amount), currency },
    version: BigInt(row.version),
    stored: true,
    payments: payments.map((each) => ({
      sourceId: each.source_id,
      id: each.payment_id,
      amount: BigInt(each.amount),
      currency: each.currency,
      applied: each.applied,
    })),
    effects: [],
    entitlements: entitled.map((each) => ({
      ...each,
      quantity: 1,
      validUntil: null,
      active: false,
      stated: true,
      grantedBy: null,
    })),
    operations: [],
  }
}

function openedPart(
  s: string,
  ledger: OrderLedger,
  workflow: Workflow,
  order: Opening,
  actor: string,
): WritePart {
  const figures = {
    subject: order.subject ?? null,
    expected: order.expected === undefined ? null : formatMoney(order.expected),
  }
  return {
    name: 'opened',
    sql: `opened as (
      insert into ${s}ledger_decisions (order_id, workflow, kind, final, to_state, entitles, reason, evidence, workflow_version, actor)
      values (:1, :2, 'opened', false, :3, :4::boolean, 'opened by the app', :5::text::jsonb, :6, :7) returning 1)`,
    values: [
      ledger.id,
      workflow.name,
      ledger.state,
      recordedEntitles(workflow, ledger.state),
      JSON.stringify(figures),
      workflow.version,
      actor,
    ],
  }
}

/** A subject that was merged since keeps the name under which it was recorded. */
function completedPart(s: string, ledger: OrderLedger): WritePart {
  return {
    name: 'completed',
    sql: `completed as (
      update ${s}orders set subject = coalesce(subject, :2), expected_amount = :3::bigint, currency = :4, version = :5::bigint, updated_at = now()
      where order_id = :1 returning 1)`,
    values: [
      ledger.id,
      ledger.subject,
      ledger.expected?.amount.toString() ?? null,
      ledger.expected?.currency ?? null,
      ledger.version.toString(),
    ],
  }
}
