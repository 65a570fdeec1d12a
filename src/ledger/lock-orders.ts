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

async function readRows(
  db: Database,
  tx: Executor,
  ids: readonly string[],
  ledgers: ReadonlyMap<string, OrderLedger>,
): Promise<void> {
  const values = [ids]
  const payments = await tx.query<PaymentRow>({
    text: `select order_id, source_id, payment_id, amount, currency, applied
      from ${db.schema}ledger_payments where order_id = any ($1::text[]) order by recorded_at, payment_id`,
    values,
  })
  const effects = await tx.query<EffectRow>({
    text: `select order_id, effect_type, effect_reference, amount, currency, payment_id, data
      from ${db.schema}fulfillment_effects where order_id = any ($1::text[])
      order by decision_id, effect_type, effect_reference`,
    values,
  })
  const entitlements = await tx.query<EntitlementRow>({
    text: `select order_id, subject, entitlement, quantity, valid_until, active, stated, granted_by
      from ${db.schema}entitlements where order_id = any ($1::text[]) order by order_id, subject, entitlement`,
    values,
  })
  for (const row of payments) ledgers.get(row.order_id)?.payments.push(paymentOf(row))
  for (const row of effects) ledgers.get(row.order_id)?.effects.push(effectOf(row))
  for (const row of entitlements) ledgers.get(row.order_id)?.entitlements.push(entitlementOf(row))
}

interface PaymentRow {
  order_id: string
  source_id: number
  payment_id: string
  amount: string
  currency: string
  applied: boolean
}

function paymentOf(row: PaymentRow): LedgerPayment {
  const { source_id: sourceId, payment_id: id, currency, applied } = row
  return Object.freeze({ sourceId, id, amount: BigInt(row.amount), currency, applied })
}

interface EffectRow {
  order_id: string
  effect_type: string
  effect_reference: string
  amount: string | null
  currency: string | null
  payment_id: string | null
  data: Record<string, unknown> | null
}

function effectOf(row: EffectRow): LedgerEffect {
  return Object.freeze({
    type: row.effect_type,
    reference: row.effect_reference,
    amount: row.amount === null ? null : BigInt(row.amount),
    currency: row.currency,
    payment: row.payment_id,
    data: Object.freeze({ ...row.data }),
  })
}

interface EntitlementRow {
  order_id: string
  subject: string
  entitlement: string
  quantity: string
  valid_until: Date | string | null
  active: boolean
  stated: boolean
  granted_by: string | null
}

function entitlementOf(row: EntitlementRow): LedgerEntitlement {
  return Object.freeze({
    subject: row.subject,
    entitlement: row.entitlement,
    quantity: Number(row.quantity),
    validUntil: row.valid_until === null ? null : new Date(row.valid_until),
    active: row.active,
    stated: row.stated,
    grantedBy: row.granted_by === null ? null : BigInt(row.granted_by),
  })
}
