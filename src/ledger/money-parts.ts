/**
 * Payments and effects of a batch. They are inserted sorted by their full key and without a conflict
 * clause: a key that somebody else recorded meanwhile fails the whole statement, and nothing stands.
 */
import { toJson } from '../core/json.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import type { LedgerBatch } from './batch.ts'
import { byteOrder } from './byte-order.ts'
import { storable } from '../postgres/storable-text.ts'

interface PaymentRow {
  readonly sourceId: number
  readonly id: string
  readonly orderId: string
  readonly amount: string
  readonly currency: string
  readonly applied: boolean
  readonly decisionId: string
}

/** The payments that decisions name for the first time. */
export function paymentsPart(s: string, batch: LedgerBatch): WritePart | null {
  // a payment that is kept as not applied and accepted in the same batch is one row, of the decision that accepts it
  const acceptedBy = acceptedPayments(batch)
  const rows: PaymentRow[] = []
  for (const { outcome } of batch.decided) {
    const { payment, orderId, event, decisionId } = outcome
    if (payment === null || orderId === null) continue
    const { sourceId } = event
    const { id, amount, currency, applied } = payment
    const accepted = acceptedBy.size === 0 ? undefined : acceptedBy.get(`${sourceId}\n${id}`)
    rows.push({
      sourceId,
      id,
      orderId,
      amount: amount.toString(),
      currency,
      applied: applied || accepted !== undefined,
      decisionId: (accepted ?? decisionId).toString(),
    })
  }
  if (rows.length === 0) return null
  rows.sort((a, b) => a.sourceId - b.sourceId || byteOrder(a.id, b.id))
  return {
    name: 'paid',
    sql: `paid as (
      insert into ${s}ledger_payments (source_id, payment_id, order_id, amount, currency, applied, decision_id)
      select * from unnest(:1::integer[], :2::text[], :3::text[], :4::bigint[], :5::text[], :6::boolean[], :7::bigint[])
      returning 1)`,
    values: [
      rows.map((row) => row.sourceId),
      rows.map((row) => row.id),
      rows.map((row) => row.orderId),
      rows.map((row) => row.amount),
      rows.map((row) => row.currency),
      rows.map((row) => row.applied),
      rows.map((row) => row.decisionId),
    ],
    expected: rows.length,
  }
}

/** Payments that were kept as not applied and are accepted now: by key, the decision that accepts. */
function acceptedPayments(batch: LedgerBatch): Map<string, bigint> {
  const accepted = new Map<string, bigint>()
  for (const { outcome: o } of batch.decided) {
    if (o.appliesPayment !== null)
      accepted.set(`${o.event.sourceId}\n${o.appliesPayment}`, o.decisionId)
  }
  return accepted
}

/** Those of them that an earlier batch recorded. Its figures stay; its order is under this batch's lock. */
export function acceptedPart(s: string, batch: LedgerBatch): WritePart | null {
  const accepted = acceptedPayments(batch)
  if (accepted.size === 0) return null
  const inserted = new Set(
    batch.decided.map(({ outcome: o }) => `${o.event.sourceId}\n${o.payment?.id ?? ''}`),
  )
  const rows = [...accepted]
    .filter(([key]) => !inserted.has(key))
    .map(([key, decisionId]) => {
      const [sourceId = '', ...id] = key.split('\n')
      return { sourceId: Number(sourceId), id: id.join('\n'), decisionId }
    })
  if (rows.length === 0) return null
  return { ...appliedRows(s, rows), expected: rows.length }
}

/** Payments that were kept aside count from now on. Their orders are locked. */
export function appliedRows(
  s: string,
  rows: readonly { readonly sourceId: number; readonly id: string; readonly decisionId: bigint }[],
): WritePart {
  return {
    name: 'accepted',
    sql: `accepted as (
      update ${s}ledger_payments p set applied = true, decision_id = n.decision_id
      from unnest(:1::integer[], :2::text[], :3::bigint[]) as n(source_id, payment_id, decision_id)
      where p.source_id = n.source_id and p.payment_id = n.payment_id and not p.applied returning 1)`,
    values: [
      rows.map((row) => row.sourceId),
      rows.map((row) => row.id),
      rows.map((row) => row.decisionId.toString()),
    ],
  }
}

/** The effects that decisions make. */
export function effectsPart(s: string, batch: LedgerBatch): WritePart | null {
  const rows = batch.decided.flatMap(({ outcome: { effects, decisionId, orderId } }) =>
    effects.map((effect) => ({ effect, decisionId, orderId: orderId ?? '' })),
  )
  if (rows.length === 0) return null
  rows.sort(
    (a, b) =>
      byteOrder(a.orderId, b.orderId) ||
      byteOrder(a.effect.type, b.effect.type) ||
      byteOrder(a.effect.reference, b.effect.reference),
  )
  return {
    name: 'effected',
    sql: `effected as (
      insert into ${s}fulfillment_effects (order_id, effect_type, effect_reference, decision_id, amount, currency, payment_id, data)
      select order_id, effect_type, effect_reference, decision_id, amount, currency, payment_id, data::jsonb
      from unnest(:1::text[], :2::text[], :3::text[], :4::bigint[], :5::bigint[], :6::text[], :7::text[], :8::text[])
        as n(order_id, effect_type, effect_reference, decision_id, amount, currency, payment_id, data)
      returning 1)`,
    values: [
      rows.map((row) => row.orderId),
      rows.map((row) => row.effect.type),
      rows.map((row) => row.effect.reference),
      rows.map((row) => row.decisionId.toString()),
      rows.map((row) => row.effect.amount?.toString() ?? null),
      rows.map((row) => row.effect.currency),
      rows.map((row) => row.effect.payment),
      rows.map((row) =>
        Object.keys(row.effect.data).length === 0 ? null : storable(toJson(row.effect.data)),
      ),
    ],
    expected: rows.length,
  }
}
