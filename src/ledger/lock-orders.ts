/**
 * Locks orders and reads them. Existing ones are locked sorted, FOR NO KEY UPDATE SKIP LOCKED: an
 * order that somebody else holds (another worker, the app's own checkout) is left for later, never
 * waited for. New ones are inserted sorted; only that insert can wait, and only for `lock_timeout`.
 * Rows are re-read after the locks, in statements of their own.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import type {
  LedgerEffect,
  LedgerEntitlement,
  LedgerPayment,
  OrderLedger,
} from '../workflow/order.ts'
import { byteOrder } from './byte-order.ts'

/** An order that a batch may open. */
export interface NewOrder {
  readonly id: string
  readonly workflow: string
  readonly initial: string
}

/** The orders of a batch, under lock. */
export interface LockedOrders {
  /** Orders that this transaction holds now, by id. `stored` is false for those it has just inserted. */
  readonly ledgers: ReadonlyMap<string, OrderLedger>
  /** Ids that exist (or are being made) in somebody else's hands. */
  readonly held: ReadonlySet<string>
}

/** Locks the orders of a batch. `openable` are those that may be opened where they do not exist. */
export async function lockOrders(
  db: Database,
  tx: Executor,
  ids: readonly string[],
  openable: readonly NewOrder[],
): Promise<LockedOrders> {
  const ledgers = new Map<string, OrderLedger>()
  const wanted = [...new Set(ids)].sort(byteOrder)
  if (wanted.length === 0) return { ledgers, held: new Set() }
  for (const row of await lockExisting(db, tx, wanted)) ledgers.set(row.order_id, ledgerOf(row))
  const existing = [...ledgers.keys()]
  const missing = wanted.filter((id) => !ledgers.has(id))
  for (const id of await insertNew(db, tx, missing, openable)) ledgers.set(id.id, newLedger(id))
  const free = missing.filter((id) => !ledgers.has(id))
  const held = free.length === 0 ? new Set<string>() : await existingAmong(db, tx, free)
  // what can be opened and was neither locked nor inserted is being made by somebody else
  for (const order of openable)
    if (!ledgers.has(order.id) && wanted.includes(order.id)) held.add(order.id)
  if (existing.length > 0) await readRows(db, tx, existing, ledgers)
  return { ledgers, held }
}

interface OrderRow {
  order_id: string
  workflow: string
  source_id: number | null
  provider: string | null
  provider_account: string | null
  state: string
  subject: string | null
  expected_amount: string | null
  currency: string | null
  version: string
}

async function lockExisting(
  db: Database,
  tx: Executor,
  ids: readonly string[],
): Promise<OrderRow[]> {
  return tx.query<OrderRow>({
    text: `select order_id, workflow, source_id, provider_account, state, subject, expected_amount, currency, version,
        (select s.provider from ${db.schema}sources s where s.source_id = o.source_id) as provider
      from ${db.schema}orders o where order_id = any ($1::text[]) order by order_id
      for no key update of o skip locked`,
    values: [ids],
  })
}

async function insertNew(
  db: Database,
  tx: Executor,
  missing: readonly string[],
  openable: readonly NewOrder[],
): Promise<NewOrder[]> {
  const absent = new Set(missing)
  const orders = new Map(
    openable.filter((order) => absent.has(order.id)).map((order) => [order.id, order]),
  )
  const sorted = [...orders.values()].sort((a, b) => byteOrder(a.id, b.id))
  if (sorted.length === 0) return []
  const rows = await tx.query<{ order_id: string }>({
    text: `insert into ${db.schema}orders (order_id, workflow, state)
      select * from unnest($1::text[], $2::text[], $3::text[]) as n(order_id, workflow, state) order by order_id
      on conflict (order_id) do nothing returning order_id`,
    values: [sorted.map((o) => o.id), sorted.map((o) => o.workflow), sorted.map((o) => o.initial)],
  })
  return rows.flatMap((row) => orders.get(row.order_id) ?? [])
}

async function existingAmong(
  db: Database,
  tx: Executor,
  ids: readonly string[],
): Promise<Set<string>> {
  const rows = await tx.query<{ order_id: string }>({
    text: `select order_id from ${db.schema}orders where order_id = any ($1::text[])`,
    values: [ids],
  })
  return new Set(rows.map((row) => row.order_id))
}

function ledgerOf(row: OrderRow): OrderLedger {
  return {
    id: row.order_id,
    workflow: row.workflow,
    sourceId: row.source_id,
    provider: row.provider,
    providerAccount: row.provider_account,
    state: row.state,
    subject: row.subject,
    expected:
      row.expected_amount === null || row.currency === null
        ? null
        : Object.freeze({ amount: BigInt(row.expected_amount), currency: row.currency }),
    version: BigInt(row.version),
    stored: true,
    payments: [],
    effects: [],
    entitlements: [],
  }
}

function newLedger(order: NewOrder): OrderLedger {
  return {
    id: order.id,
    workflow: order.workflow,
    sourceId: null,
    provider: null,
    providerAccount: null,
    state: order.initial,
    subject: null,
    expected: null,
    version: 0n,
    stored: false,
    payments: [],
    effects: [],
    entitlements: [],
  }
}

/** Everything that hangs on the orders, in one round trip: rows of three tables in columns they share. */
async function readRows(
  db: Database,
  tx: Executor,
  ids: readonly string[],
  ledgers: ReadonlyMap<string, OrderLedger>,
): Promise<void> {
  const s = db.schema
  const rows = await tx.query<LedgerRow>({
    text: `select 'payment' as kind, order_id, payment_id as name, null::text as other, source_id,
        amount, currency, applied as active, true as stated, null::jsonb as data,
        null::timestamptz as valid_until, recorded_at as at, decision_id
      from ${s}ledger_payments where order_id = any ($1::text[])
      union all
      select 'effect ' || effect_type, order_id, effect_reference, payment_id, null,
        amount, currency, true, true, data, null, null, decision_id
      from ${s}fulfillment_effects where order_id = any ($1::text[])
      union all
      select 'entitlement', order_id, subject, entitlement, null,
        quantity, null, active, stated, null, valid_until, null, granted_by
      from ${s}entitlements where order_id = any ($1::text[])
      order by at, decision_id, kind, name, other`,
    values: [ids],
  })
  for (const row of rows) {
    const ledger = ledgers.get(row.order_id)
    if (row.kind === 'payment') ledger?.payments.push(paymentOf(row))
    else if (row.kind === 'entitlement') ledger?.entitlements.push(entitlementOf(row))
    else ledger?.effects.push(effectOf(row))
  }
}

interface LedgerRow {
  /** `payment`, `entitlement`, or `effect <type>`. */
  kind: string
  order_id: string
  name: string
  other: string | null
  source_id: number | null
  amount: string | null
  currency: string | null
  active: boolean
  stated: boolean
  data: Record<string, unknown> | null
  valid_until: Date | string | null
  decision_id: string | null
}

function paymentOf(row: LedgerRow): LedgerPayment {
  return Object.freeze({
    sourceId: row.source_id ?? 0,
    id: row.name,
    amount: BigInt(row.amount ?? 0),
    currency: row.currency ?? '',
    applied: row.active,
  })
}

function effectOf(row: LedgerRow): LedgerEffect {
  return Object.freeze({
    type: row.kind.slice('effect '.length),
    reference: row.name,
    amount: row.amount === null ? null : BigInt(row.amount),
    currency: row.currency,
    payment: row.other,
    data: Object.freeze({ ...row.data }),
  })
}

function entitlementOf(row: LedgerRow): LedgerEntitlement {
  return Object.freeze({
    subject: row.name,
    entitlement: row.other ?? '',
    quantity: Number(row.amount),
    validUntil: row.valid_until === null ? null : new Date(row.valid_until),
    active: row.active,
    stated: row.stated,
    grantedBy: row.decision_id === null ? null : BigInt(row.decision_id),
  })
}
