/**
 * Locks orders and reads them. Existing ones are locked sorted, FOR NO KEY UPDATE SKIP LOCKED: an
 * order that somebody else holds (another worker, the app's own checkout) is left for later, never
 * waited for. New ones are inserted sorted; only that insert can wait, and only for `lock_timeout`.
 * Rows are read after the locks, by a statement of their own inside the database's function.
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
import { freezeJson } from '../workflow/any-event.ts'
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
  const wanted = [...new Set(ids)].sort(byteOrder)
  if (wanted.length === 0) return { ledgers: new Map(), held: new Set() }
  const ledgers = await lockExisting(db, tx, wanted)
  const missing = wanted.filter((id) => !ledgers.has(id))
  for (const id of await insertNew(db, tx, missing, openable)) ledgers.set(id.id, newLedger(id))
  const free = missing.filter((id) => !ledgers.has(id))
  const held = free.length === 0 ? new Set<string>() : await existingAmong(db, tx, free)
  // what can be opened and was neither locked nor inserted is being made by somebody else
  for (const order of openable)
    if (!ledgers.has(order.id) && wanted.includes(order.id)) held.add(order.id)
  return { ledgers, held }
}

/** The statement that locks orders and reads them, exported so that its plan can be asserted. */
export function lockedStatement(schema: string): string {
  return `select * from ${schema}locked_orders($1::text[])`
}

/** Locks what nobody else holds, with everything that hangs on it. */
async function lockExisting(
  db: Database,
  tx: Executor,
  ids: readonly string[],
): Promise<Map<string, OrderLedger>> {
  const rows = await tx.query<LedgerRow>({
    text: lockedStatement(db.schema),
    repeated: true,
    values: [ids],
  })
  return ledgersOf(rows)
}

/** Orders out of rows, which must come with the order before all that hangs on it. */
export function ledgersOf(rows: readonly LedgerRow[]): Map<string, OrderLedger> {
  const ledgers = new Map<string, OrderLedger>()
  for (const row of rows) {
    const ledger = ledgers.get(row.order_id)
    if (row.kind === 'order') ledgers.set(row.order_id, ledgerOf(row))
    else if (row.kind === 'payment') ledger?.payments.push(paymentOf(row))
    else if (row.kind === 'entitlement') ledger?.entitlements.push(entitlementOf(row))
    else if (row.kind === 'operation') ledger?.operations.push(operationOf(row))
    else ledger?.effects.push(effectOf(row))
  }
  return ledgers
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
    repeated: true,
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
    repeated: true,
    values: [ids],
  })
  return new Set(rows.map((row) => row.order_id))
}

function ledgerOf(row: LedgerRow): OrderLedger {
  return {
    id: row.order_id,
    workflow: row.workflow ?? '',
    sourceId: row.source_id,
    provider: row.provider,
    providerAccount: row.provider_account,
    state: row.state ?? '',
    subject: row.name,
    expected:
      row.amount === null || row.currency === null
        ? null
        : Object.freeze({ amount: BigInt(row.amount), currency: row.currency }),
    version: BigInt(row.version ?? 0),
    stored: true,
    payments: [],
    effects: [],
    entitlements: [],
    operations: [],
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
    operations: [],
  }
}

/** A row of an order or of what hangs on it, in columns that all of them share. */
export interface LedgerRow {
  /** `order`, `payment`, `entitlement`, `operation`, or `effect <type>`. Orders come first. */
  kind: string
  order_id: string
  /** Of an order its subject. */
  name: string
  /** Of an operation its destination. */
  other: string | null
  source_id: number | null
  amount: string | null
  currency: string | null
  active: boolean
  stated: boolean
  data: Record<string, unknown> | null
  valid_until: Date | string | null
  decision_id: string | null
  /** Of an operation the type of its effect. */
  workflow: string | null
  state: string | null
  /** Of an operation the reference of its effect. */
  provider: string | null
  provider_account: string | null
  version: string | null
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

function operationOf(row: LedgerRow): Operation {
  return Object.freeze({
    name: row.name,
    destination: row.other ?? '',
    effect: Object.freeze({ type: row.workflow ?? '', reference: row.provider ?? '' }),
    state: row.state as OperationState,
    receipt: row.data === null ? null : freezeJson(row.data),
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
