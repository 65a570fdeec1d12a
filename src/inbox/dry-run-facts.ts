/**
 * What the ledger holds of orders with the decision and the moment behind each row, and the order as it
 * was at a moment. Where a row was changed since and its earlier figures are not kept, they count as they are now.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import type {
  LedgerEffect,
  LedgerEntitlement,
  LedgerPayment,
  Operation,
  OperationState,
  OrderLedger,
} from '../workflow/order.ts'
import type { HistoryWindow } from './dry-run-reads.ts'

/** A row of the ledger, and when it was made by which decision. */
export interface Dated<T> {
  readonly row: T
  readonly decisionId: string
  readonly isBefore: boolean
}

/** An operation, and when it ended. */
export interface DatedOperation {
  readonly row: Operation
  readonly isBefore: boolean
  readonly finishedMs: number | null
}

/** An entitlement, whether it was there before the window, and whether it was active then. */
export interface DatedEntitlement {
  readonly row: LedgerEntitlement
  /** How much, and until when, just before the window. */
  readonly before: Pick<LedgerEntitlement, 'quantity' | 'validUntil'>
  readonly changedBy: string
  readonly wasThere: boolean
  readonly wasActive: boolean
}

/** Everything that is recorded of one order. */
export interface OrderFacts {
  readonly id: string
  /** The order as it is now, without what hangs on it; null where there is none. */
  readonly now: OrderLedger | null
  /** Its state just before the window; null: it did not exist. */
  readonly stateBefore: string | null
  /** What the app's opening added to the order within the window: before it was not there. */
  readonly openedLater: { readonly subject: boolean; readonly expected: boolean }
  readonly payments: readonly Dated<LedgerPayment>[]
  readonly effects: readonly Dated<LedgerEffect>[]
  readonly entitlements: readonly DatedEntitlement[]
  readonly operations: readonly DatedOperation[]
}

interface Writable {
  id: string
  now: OrderLedger | null
  stateBefore: string | null
  openedLater: OrderFacts['openedLater']
  payments: Dated<LedgerPayment>[]
  effects: Dated<LedgerEffect>[]
  entitlements: DatedEntitlement[]
  operations: DatedOperation[]
}

/** Reads the facts of orders. */
export async function readFacts(
  db: Database,
  tx: Executor,
  ids: readonly string[],
  window: HistoryWindow,
): Promise<ReadonlyMap<string, OrderFacts>> {
  const facts = new Map<string, Writable>(
    ids.map((id) => [
      id,
      {
        id,
        now: null,
        stateBefore: null,
        openedLater: { subject: false, expected: false },
        payments: [],
        effects: [],
        entitlements: [],
        operations: [],
      },
    ]),
  )
  await readOrders(db, tx, ids, window, facts)
  await readMoney(db, tx, ids, window, facts)
  await readEntitlements(db, tx, ids, window, facts)
  await readOperations(db, tx, ids, window, facts)
  return facts
}

async function readOrders(
  db: Database,
  tx: Executor,
  ids: readonly string[],
  window: HistoryWindow,
  facts: ReadonlyMap<string, Writable>,
): Promise<void> {
  const s = db.schema
  // an opening names the state that it found, and moves nothing
  const before = (kinds: string): string =>
    `(select d.to_state from ${s}ledger_decisions d where d.order_id = o.order_id and d.to_state is not null
          and d.decided_at < $2::timestamptz and ${kinds} order by d.decision_id desc limit 1)`
  const openedLater = (figure: string): string =>
    `exists (select 1 from ${s}ledger_decisions d where d.order_id = o.order_id and d.kind = 'opened'
          and d.decided_at >= $2::timestamptz and d.evidence ->> '${figure}' is not null)
        and not exists (select 1 from ${s}ledger_decisions d where d.order_id = o.order_id and d.decided_at < $2::timestamptz
          and (d.kind = 'adopted' or d.kind = 'opened' and d.evidence ->> '${figure}' is not null))`
  const rows = await tx.query<{
    order_id: string
    workflow: string
    state: string
    subject: string | null
    expected_amount: string | null
    currency: string | null
    source_id: number | null
    provider: string | null
    provider_account: string | null
    version: string
    before: string | null
    subject_later: boolean
    expected_later: boolean
  }>({
    text: `select o.order_id, o.workflow, o.state, o.subject, o.expected_amount, o.currency, o.source_id, n.provider,
        o.provider_account, o.version,
        case when o.opened_at < $2::timestamptz then coalesce(${before(`d.kind <> 'opened'`)}, ${before(`d.kind = 'opened'`)}) end as before,
        ${openedLater('subject')} as subject_later, ${openedLater('expected')} as expected_later
      from unnest($1::text[]) as k(order_id)
      join ${s}orders o on o.order_id = k.order_id
      left join ${s}sources n on n.source_id = o.source_id`,
    values: [ids, window.since],
  })
  for (const row of rows) {
    const found = facts.get(row.order_id)
    if (found === undefined) continue
    const { expected_amount: amount, currency } = row
    found.stateBefore = row.before
    found.openedLater = { subject: row.subject_later, expected: row.expected_later }
    found.now = {
      id: row.order_id,
      workflow: row.workflow,
      sourceId: row.source_id,
      provider: row.provider,
      providerAccount: row.provider_account,
      state: row.state,
      subject: row.subject,
      expected: amount === null || currency === null ? null : { amount: BigInt(amount), currency },
      version: BigInt(row.version),
      stored: true,
      payments: [],
      effects: [],
      entitlements: [],
      operations: [],
    }
  }
}

async function readMoney(
  db: Database,
  tx: Executor,
  ids: readonly string[],
  window: HistoryWindow,
  facts: ReadonlyMap<string, Writable>,
): Promise<void> {
  const s = db.schema
  const payments = await tx.query<{
    order_id: string
    source_id: number
    payment_id: string
    amount: string
    currency: string
    applied: boolean
    decision_id: string
    is_before: boolean
    by_before: boolean
  }>({
    text: `select p.order_id, p.source_id, p.payment_id, p.amount, p.currency, p.applied, p.decision_id::text as decision_id,
        p.recorded_at < $2::timestamptz as is_before,
        coalesce((select d.decided_at < $2::timestamptz from ${s}ledger_decisions d where d.decision_id = p.decision_id), true) as by_before
      from ${s}ledger_payments p where p.order_id = any ($1::text[]) order by p.recorded_at, p.decision_id, p.payment_id`,
    values: [ids, window.since],
  })
  for (const row of payments) {
    facts.get(row.order_id)?.payments.push({
      row: Object.freeze({
        sourceId: row.source_id,
        id: row.payment_id,
        amount: BigInt(row.amount),
        currency: row.currency,
        // kept aside before the window, and applied within it
        applied: row.applied && (row.by_before || !row.is_before),
      }),
      decisionId: row.decision_id,
      isBefore: row.is_before,
    })
  }
  const effects = await tx.query<{
    order_id: string
    effect_type: string
    effect_reference: string
    amount: string | null
    currency: string | null
    payment_id: string | null
    data: Record<string, unknown> | null
    decision_id: string
    is_before: boolean
  }>({
    text: `select f.order_id, f.effect_type, f.effect_reference, f.amount, f.currency, f.payment_id, f.data,
        f.decision_id::text as decision_id, f.recorded_at < $2::timestamptz as is_before
      from ${s}fulfillment_effects f where f.order_id = any ($1::text[]) order by f.recorded_at, f.decision_id, f.effect_type`,
    values: [ids, window.since],
  })
  for (const row of effects) {
    facts.get(row.order_id)?.effects.push({
      row: Object.freeze({
        type: row.effect_type,
        reference: row.effect_reference,
        amount: row.amount === null ? null : BigInt(row.amount),
        currency: row.currency,
        payment: row.payment_id,
        data: Object.freeze({ ...row.data }),
      }),
      decisionId: row.decision_id,
      isBefore: row.is_before,
    })
  }
}

async function readEntitlements(
  db: Database,
  tx: Executor,
  ids: readonly string[],
  window: HistoryWindow,
  facts: ReadonlyMap<string, Writable>,
): Promise<void> {
  const s = db.schema
  const rows = await tx.query<{
    order_id: string
    subject: string
    entitlement: string
    quantity: string
    valid_until: Date | string | null
    active: boolean
    stated: boolean
    changed_by: string
    was_there: boolean
    was_active: boolean
    stated_later: boolean
    stated_before: { readonly quantity: number; readonly valid_until: string | null } | null
  }>({
    text: `select t.order_id, t.subject, t.entitlement, t.quantity, t.valid_until, t.active, t.stated,
        t.changed_by::text as changed_by,
        exists (select 1 from ${s}ledger_decisions d where d.order_id = t.order_id and d.decided_at < $2::timestamptz
          and (d.decision_id = t.changed_by or d.evidence -> 'granted' ? (t.subject || ' ' || t.entitlement))) as was_there,
        coalesce((select not coalesce(d.evidence -> 'granted' ? (t.subject || ' ' || t.entitlement), false)
          from ${s}ledger_decisions d where d.order_id = t.order_id and d.decided_at >= $2::timestamptz
          and (d.evidence -> 'granted' ? (t.subject || ' ' || t.entitlement)
            or d.evidence -> 'revoked' ? (t.subject || ' ' || t.entitlement))
          order by d.decision_id limit 1), t.active) as was_active,
        exists (select 1 from ${s}ledger_decisions d where d.order_id = t.order_id and d.decided_at >= $2::timestamptz
          and d.evidence -> 'stated' ? (t.subject || ' ' || t.entitlement)) as stated_later,
        (select d.evidence -> 'stated' -> (t.subject || ' ' || t.entitlement) from ${s}ledger_decisions d
          where d.order_id = t.order_id and d.decided_at < $2::timestamptz
            and d.evidence -> 'stated' ? (t.subject || ' ' || t.entitlement)
          order by d.decision_id desc limit 1) as stated_before
      from ${s}entitlements t where t.order_id = any ($1::text[]) order by t.subject, t.entitlement`,
    values: [ids, window.since],
  })
  for (const row of rows) {
    const quantity = Number(row.quantity)
    const validUntil = row.valid_until === null ? null : new Date(row.valid_until)
    const now = { quantity, validUntil }
    facts.get(row.order_id)?.entitlements.push({
      before: row.stated_later ? figuresOf(row.stated_before) : now,
      row: Object.freeze({
        subject: row.subject,
        entitlement: row.entitlement,
        quantity,
        validUntil,
        active: row.active,
        stated: row.stated,
        grantedBy: null,
      }),
      changedBy: row.changed_by,
      wasThere: row.was_there,
      wasActive: row.was_active,
    })
  }
}

/** Figures that a decision stated; it states them unless they are plain. */
function figuresOf(
  stated: { readonly quantity: number; readonly valid_until: string | null } | null,
): Pick<LedgerEntitlement, 'quantity' | 'validUntil'> {
  if (stated === null) return { quantity: 1, validUntil: null }
  const { quantity, valid_until: until } = stated
  return { quantity, validUntil: until === null ? null : new Date(until) }
}

async function readOperations(
  db: Database,
  tx: Executor,
  ids: readonly string[],
  window: HistoryWindow,
  facts: ReadonlyMap<string, Writable>,
): Promise<void> {
  const rows = await tx.query<{
    order_id: string
    name: string
    destination: string
    effect_type: string
    effect_reference: string
    state: string
    receipt: Record<string, unknown> | null
    is_before: boolean
    finished_ms: string | null
  }>({
    text: `select o.order_id, o.name, o.destination, o.effect_type, o.effect_reference, o.state, o.receipt,
        o.created_at < $2::timestamptz as is_before,
        floor(extract(epoch from o.finished_at) * 1000)::bigint::text as finished_ms
      from ${db.schema}outbox_operations o
      where o.order_id = any ($1::text[]) and o.effect_type is not null order by o.created_at, o.name`,
    values: [ids, window.since],
  })
  for (const row of rows) {
    facts.get(row.order_id)?.operations.push({
      row: Object.freeze({
        name: row.name,
        destination: row.destination,
        effect: Object.freeze({ type: row.effect_type, reference: row.effect_reference }),
        state: row.state as OperationState,
        receipt: row.receipt,
      }),
      isBefore: row.is_before,
      finishedMs: row.finished_ms === null ? null : Number(row.finished_ms),
    })
  }
}
