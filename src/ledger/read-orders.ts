/**
 * Reads orders with all that hangs on them, without locking anything: one statement and so one snapshot, for
 * whoever looks and does not write. What it answers may be old by the time it is used.
 */
import type { Executor } from '../postgres/executor.ts'
import type { OrderLedger } from '../workflow/order.ts'
import { ledgersOf, type LedgerRow } from './lock-orders.ts'

/** The orders that exist, by id. */
export async function readOrders(
  schema: string,
  tx: Pick<Executor, 'query'>,
  ids: readonly string[],
): Promise<Map<string, OrderLedger>> {
  const wanted = [...new Set(ids)]
  if (wanted.length === 0) return new Map()
  return ledgersOf(
    await tx.query<LedgerRow>({ text: readStatement(schema), repeated: true, values: [wanted] }),
  )
}

/** Every row is looked up by its order. */
function readStatement(s: string): string {
  return `select r.kind, r.order_id, r.name, r.other, r.source_id, r.amount, r.currency, r.active, r.stated, r.data,
    r.valid_until, r.decision_id, r.workflow, r.state, r.provider, r.provider_account, r.version
  from unnest($1::text[]) as k(id)
  cross join lateral (
    select 0 as part, 'order' as kind, o.order_id, o.subject as name, null::text as other, o.source_id,
      o.expected_amount as amount, o.currency, true as active, true as stated, null::jsonb as data,
      null::timestamptz as valid_until, null::bigint as decision_id, null::timestamptz as at, o.workflow, o.state,
      (select n.provider from ${s}sources n where n.source_id = o.source_id) as provider, o.provider_account, o.version
    from ${s}orders o where o.order_id = k.id collate "C"
    union all
    select 1, 'payment', p.order_id, p.payment_id, null, p.source_id, p.amount, p.currency, p.applied, true, null,
      null, p.decision_id, p.recorded_at, null, null, null, null, null
    from ${s}ledger_payments p where p.order_id = k.id collate "C"
    union all
    select 1, 'effect ' || f.effect_type, f.order_id, f.effect_reference, f.payment_id, null, f.amount, f.currency,
      true, true, f.data, null, f.decision_id, null, null, null, null, null, null
    from ${s}fulfillment_effects f where f.order_id = k.id collate "C"
    union all
    select 1, 'entitlement', e.order_id, e.subject, e.entitlement, null, e.quantity, null, e.active, e.stated, null,
      e.valid_until, e.granted_by, null, null, null, null, null, null
    from ${s}entitlements e where e.order_id = k.id collate "C"
    union all
    select 1, 'operation', b.order_id, b.name, b.destination, null, null, null, true, true, b.receipt, null,
      b.decision_id, b.created_at, b.effect_type, b.state, b.effect_reference, null, null
    from ${s}outbox_operations b where b.order_id = k.id collate "C" and b.effect_type is not null
    offset 0) r
  order by r.part, r.at, r.decision_id, r.kind, r.name, r.other`
}
