/**
 * The writes of a batch that is adopted, for one statement. Inserts are sorted by their full key and without a
 * conflict clause: the orders are locked, and whoever wrote the same past the locks fails it all.
 */
import { toJson } from '../core/json.ts'
import { storable } from '../postgres/storable-text.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import type { AdoptedOrder } from '../workflow/adoption.ts'
import { byteOrder } from './byte-order.ts'
import { appliedRows } from './money-parts.ts'

/** The parts; those that would write nothing are left out. */
export function adoptParts(
  s: string,
  adopted: readonly AdoptedOrder[],
  by: { readonly reason: string; readonly actor: string },
): WritePart[] {
  return [
    decidedPart(s, adopted, by),
    ordersPart(s, adopted),
    paymentsPart(s, adopted),
    appliedPart(s, adopted),
    effectsPart(s, adopted),
    entitlementsPart(s, adopted),
  ].filter((part): part is WritePart => part !== null)
}

function decidedPart(
  s: string,
  adopted: readonly AdoptedOrder[],
  by: { readonly reason: string; readonly actor: string },
): WritePart {
  return {
    name: 'decided',
    sql: `decided as (
      insert into ${s}ledger_decisions (decision_id, order_id, workflow, kind, final, from_state, to_state, entitles,
        reason, evidence, workflow_version, actor)
      select decision_id, order_id, workflow, 'adopted', false, from_state, to_state, entitles, :9::text,
        evidence::jsonb, workflow_version, :10::text
      from unnest(:1::bigint[], :2::text[], :3::text[], :4::text[], :5::text[], :6::boolean[], :7::text[], :8::text[])
        as n(decision_id, order_id, workflow, from_state, to_state, entitles, evidence, workflow_version)
      returning 1)`,
    values: [
      adopted.map((each) => each.decisionId.toString()),
      adopted.map(({ ledger }) => ledger.id),
      adopted.map(({ ledger }) => ledger.workflow),
      adopted.map((each) => each.from),
      adopted.map(({ ledger }) => ledger.state),
      adopted.map((each) => each.entitles),
      adopted.map(({ evidence }) => storable(toJson(evidence))),
      adopted.map(({ line }) => line.workflow.version),
      storable(by.reason),
      storable(by.actor),
    ],
  }
}

function ordersPart(s: string, adopted: readonly AdoptedOrder[]): WritePart {
  const orders = adopted.map(({ ledger }) => ledger)
  return {
    name: 'moved',
    sql: `moved as (
      update ${s}orders o set state = n.state, subject = n.subject, source_id = n.source_id,
        provider_account = n.provider_account, expected_amount = n.expected_amount, currency = n.currency,
        version = n.version, updated_at = clock_timestamp()
      from unnest(:1::text[], :2::text[], :3::text[], :4::integer[], :5::text[], :6::bigint[], :7::text[], :8::bigint[])
        as n(order_id, state, subject, source_id, provider_account, expected_amount, currency, version)
      where o.order_id = n.order_id returning 1)`,
    values: [
      orders.map((o) => o.id),
      orders.map((o) => o.state),
      orders.map((o) => o.subject),
      orders.map((o) => o.sourceId),
      orders.map((o) => o.providerAccount),
      orders.map((o) => o.expected?.amount.toString() ?? null),
      orders.map((o) => o.expected?.currency ?? null),
      orders.map((o) => o.version.toString()),
    ],
  }
}

function paymentsPart(s: string, adopted: readonly AdoptedOrder[]): WritePart | null {
  const rows = adopted
    .flatMap(({ payments, ledger, decisionId }) =>
      payments.map((payment) => ({ ...payment, orderId: ledger.id, decisionId })),
    )
    .sort((a, b) => a.sourceId - b.sourceId || byteOrder(a.id, b.id))
  if (rows.length === 0) return null
  return {
    name: 'paid',
    sql: `paid as (
      insert into ${s}ledger_payments (source_id, payment_id, order_id, amount, currency, applied, decision_id)
      select source_id, payment_id, order_id, amount, currency, true, decision_id
      from unnest(:1::integer[], :2::text[], :3::text[], :4::bigint[], :5::text[], :6::bigint[])
        as n(source_id, payment_id, order_id, amount, currency, decision_id) returning 1)`,
    values: [
      rows.map((row) => row.sourceId),
      rows.map((row) => row.id),
      rows.map((row) => row.orderId),
      rows.map((row) => row.amount.toString()),
      rows.map((row) => row.currency),
      rows.map((row) => row.decisionId.toString()),
    ],
  }
}

/** Payments that a contradicted decision kept: the app has them, so that they count from now on. */
function appliedPart(s: string, adopted: readonly AdoptedOrder[]): WritePart | null {
  const rows = adopted.flatMap(({ applied, decisionId }) =>
    applied.map((payment) => ({ ...payment, decisionId })),
  )
  if (rows.length === 0) return null
  return appliedRows(s, rows)
}

function effectsPart(s: string, adopted: readonly AdoptedOrder[]): WritePart | null {
  const rows = adopted
    .flatMap(({ effects, ledger, decisionId }) =>
      effects.map((effect) => ({ ...effect, orderId: ledger.id, decisionId })),
    )
    .sort(
      (a, b) =>
        byteOrder(a.orderId, b.orderId) ||
        byteOrder(a.type, b.type) ||
        byteOrder(a.reference, b.reference),
    )
  if (rows.length === 0) return null
  return {
    name: 'effected',
    sql: `effected as (
      insert into ${s}fulfillment_effects (order_id, effect_type, effect_reference, decision_id, amount, currency, payment_id, data)
      select order_id, effect_type, effect_reference, decision_id, amount, currency, payment_id, data::jsonb
      from unnest(:1::text[], :2::text[], :3::text[], :4::bigint[], :5::bigint[], :6::text[], :7::text[], :8::text[])
        as n(order_id, effect_type, effect_reference, decision_id, amount, currency, payment_id, data) returning 1)`,
    values: [
      rows.map((row) => row.orderId),
      rows.map((row) => row.type),
      rows.map((row) => row.reference),
      rows.map((row) => row.decisionId.toString()),
      rows.map((row) => row.amount?.toString() ?? null),
      rows.map((row) => row.currency),
      rows.map((row) => row.payment),
      rows.map((row) => (Object.keys(row.data).length === 0 ? null : storable(toJson(row.data)))),
    ],
  }
}

/** Written under the order's lock: a row that is there is the one that was read. */
function entitlementsPart(s: string, adopted: readonly AdoptedOrder[]): WritePart | null {
  const rows = adopted
    .flatMap(({ entitlements, ledger, decisionId }) =>
      entitlements.map((row) => ({ ...row, orderId: ledger.id, decisionId })),
    )
    .sort(
      (a, b) =>
        byteOrder(a.orderId, b.orderId) ||
        byteOrder(a.subject, b.subject) ||
        byteOrder(a.entitlement, b.entitlement),
    )
  if (rows.length === 0) return null
  return {
    name: 'entitled_told',
    sql: `entitled as (
      insert into ${s}entitlements as e (order_id, subject, entitlement, quantity, valid_until, active, stated, granted_by, changed_by)
      select * from unnest(:1::text[], :2::text[], :3::text[], :4::bigint[], :5::timestamptz[], :6::boolean[], :7::boolean[], :8::bigint[], :9::bigint[])
      on conflict (order_id, subject, entitlement) do update set quantity = excluded.quantity,
        valid_until = excluded.valid_until, active = excluded.active, stated = excluded.stated,
        granted_by = excluded.granted_by, changed_by = excluded.changed_by, version = e.version + 1
      returning subject, order_id, changed_by),
      entitled_told as (
        insert into ${s}entitlement_changes (subject, order_id, decision_id, because)
        select distinct subject, order_id, changed_by, 'adopt' from entitled returning 1)`,
    values: [
      rows.map((row) => row.orderId),
      rows.map((row) => row.subject),
      rows.map((row) => row.entitlement),
      rows.map((row) => row.quantity),
      rows.map((row) => row.validUntil?.toISOString() ?? null),
      rows.map((row) => row.active),
      rows.map((row) => row.stated),
      rows.map((row) => row.grantedBy?.toString() ?? null),
      rows.map((row) => row.decisionId.toString()),
    ],
  }
}
