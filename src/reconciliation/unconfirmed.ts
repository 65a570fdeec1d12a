/**
 * The other way round: what this database says was paid, and no record of the pass confirmed. Found in one
 * reading through a cursor, whatever the window holds; the provider is asked about it afterwards.
 */
import { finding } from '../workflow/finding-kinds.ts'
import { formatMoney } from '../core/money.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import type { RecordReference } from '../workflow/records.ts'
import type { AccountSource, CompareContext } from './compare-context.ts'
import { entitlingIn } from './judge-records.ts'
import { readByTime } from './local-checks/read-by-time.ts'
import type { Discrepancy } from './ports.ts'

/** A payment that counts here. */
export interface LocalPayment {
  readonly sourceId: number
  readonly id: string
  readonly orderId: string
  readonly amount: bigint
  readonly currency: string
}

/** An order that entitles without any payment that counts. */
export interface UnpaidOrder {
  readonly sourceId: number
  readonly orderId: string
  readonly state: string
}

/** A span of time by the database's clock. */
export interface LocalWindow {
  readonly from: Date
  readonly to: Date
}

/** So many rows are remembered at most: the rest is looked at by the next pass that comes by. */
const mostKept = 50_000

/** By time alone: nothing but the block range index may lead to the rows, whatever statistics say. */
function paymentsStatement(s: string): string {
  return `select p.source_id, p.payment_id, p.order_id, p.amount, p.currency from ${s}ledger_payments p
    where p.recorded_at >= $2::timestamptz and p.recorded_at < $3::timestamptz
      and p.source_id + 0 = any ($1::integer[]) and p.applied and p.amount > 0
      and not exists (select 1 from ${s}ledger_decisions d where d.decision_id = p.decision_id and d.kind = 'adopted' offset 0)`
}

function unpaidStatement(s: string): string {
  return `select distinct o.source_id, o.order_id, o.state, o.workflow from ${s}ledger_decisions d
    cross join lateral (select o.source_id, o.order_id, o.state, o.workflow from ${s}orders o
      where o.order_id = d.order_id and o.state = d.to_state offset 0) o
    where d.decided_at >= $2::timestamptz and d.decided_at < $3::timestamptz
      and d.entitles and d.kind in ('fulfilled', 'moved', 'reversed')
      and o.source_id = any ($1::integer[])
      and coalesce(d.evidence -> 'fetch' ->> 'about', 'event ') like 'event %'
      and not exists (select 1 from ${s}ledger_payments p where p.order_id = d.order_id and p.applied offset 0)`
}

/** Payments recorded in the window that `isConfirmed` does not know. What was adopted is the app's own word. */
export async function unconfirmedPayments(
  db: Database,
  sourceIds: readonly number[],
  window: LocalWindow,
  isConfirmed: (payment: LocalPayment) => boolean,
): Promise<LocalPayment[]> {
  const found: LocalPayment[] = []
  await readRows<{
    source_id: number
    payment_id: string
    order_id: string
    amount: string
    currency: string
  }>(db, paymentsStatement(db.schema), sourceIds, window, (row) => {
    const payment = {
      sourceId: row.source_id,
      id: row.payment_id,
      orderId: row.order_id,
      amount: BigInt(row.amount),
      currency: row.currency,
    }
    if (!isConfirmed(payment)) found.push(payment)
    return found.length < mostKept
  })
  return found
}

/**
 * Orders that were decided in the window into the entitling state that they are in, and that nobody paid for. What
 * a mirror decided is the provider's word already.
 */
export async function unpaidOrders(
  { db, registry }: Pick<CompareContext, 'db' | 'registry'>,
  sourceIds: readonly number[],
  window: LocalWindow,
): Promise<UnpaidOrder[]> {
  const entitlesNow = entitlingIn(registry.workflows)
  const found: UnpaidOrder[] = []
  await readRows<{ source_id: number; order_id: string; state: string; workflow: string }>(
    db,
    unpaidStatement(db.schema),
    sourceIds,
    window,
    ({ source_id: sourceId, order_id: orderId, state, workflow }) => {
      if (entitlesNow({ workflow, state })) found.push({ sourceId, orderId, state })
      return found.length < mostKept
    },
  )
  return found
}

async function readRows<R extends object>(
  db: Database,
  text: string,
  sourceIds: readonly number[],
  { from, to }: LocalWindow,
  take: (row: R) => boolean,
): Promise<void> {
  if (sourceIds.length === 0 || from >= to) return
  const values = [sourceIds, from.toISOString(), to.toISOString()]
  await readByTime<R>(db, text, values, (rows) => rows.every(take))
}

/** `paid_here` for a payment of which the provider says that there is none. */
export function withoutRecord(
  at: AccountSource,
  payment: LocalPayment,
  reference: RecordReference,
): Discrepancy {
  return {
    draft: finding('paid_here', `payment:${payment.sourceId}:${payment.id}`, {
      order: payment.orderId,
      payment: payment.id,
      here: formatMoney(payment),
      there: 'no such record',
    }),
    source: at.text,
    orderId: payment.orderId,
    eventKey: null,
    sourceId: payment.sourceId,
    reference,
  }
}

/** `paid_here` for an order that entitles and that nothing at the provider pays for. */
export function withoutPayment(
  at: AccountSource,
  order: UnpaidOrder,
  reference: RecordReference,
  there: string,
): Discrepancy {
  return {
    draft: finding('paid_here', `order:${order.orderId}`, {
      order: order.orderId,
      state: order.state,
      there,
    }),
    source: at.text,
    orderId: order.orderId,
    eventKey: null,
    sourceId: order.sourceId,
    reference,
  }
}

/** The records that the names of an order stand for, of the kinds that are listed. */
export async function namedRecords(
  tx: Pick<Executor, 'query'>,
  s: string,
  { source: { source }, account, sourceId }: AccountSource,
  orderId: string,
): Promise<RecordReference[]> {
  const { records } = source
  if (records === undefined) return []
  const rows = await tx.query<{ kind: string; name: string }>({
    text: `select kind, name from ${s}order_names where order_id = $1 and source_id = $2 order by kind, name limit 20`,
    values: [orderId, sourceId],
  })
  const listed = records.kinds.map(({ kind }) => kind)
  const references = rows.flatMap(
    ({ kind, name }) => records.namedBy({ kind, value: name }, account) ?? [],
  )
  const distinct = new Map(references.map((each) => [`${each.kind} ${each.id}`, each]))
  return [...distinct.values()]
    .filter(({ kind }) => listed.includes(kind))
    .sort((a, b) => listed.indexOf(a.kind) - listed.indexOf(b.kind))
}
