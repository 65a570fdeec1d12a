/**
 * What an id that a person pasted stands for: an order, an event, a name or payment of an order, a subject, a
 * provider's customer, the reference of an effect, an operation, the key that its destination saw or that the app gave it, a finding,
 * or one of our own numbers (`event:12`, `decision:40`).
 */
import type { Database } from '../postgres/executor.ts'
import { presentSubject } from '../postgres/present-subject.ts'
import { findFindings } from './findings.ts'
import { findOperations } from './operations.ts'

/** As what an id was found. */
export type SubjectKind =
  | 'order'
  | 'event'
  | 'name'
  | 'payment'
  | 'subject'
  | 'customer'
  | 'operation'
  | 'finding'
  | 'decision'
  | 'effect'

/** What an id stands for, and what is concerned by it. */
export interface Subject {
  readonly kind: SubjectKind
  /** The id in full. */
  readonly id: string
  readonly order_ids: readonly string[]
  readonly event_keys: readonly string[]
  /** The operations that it names; several where one key is known to several destinations. */
  readonly operation_ids: readonly string[]
}

/** Finds what an id stands for; null when nothing knows it. The first kind that knows it is taken. */
export async function findSubject(db: Database, id: string): Promise<Subject | null> {
  for (const find of [
    findOrder,
    findEvent,
    findName,
    findPayment,
    findLooked,
    findFinding,
    findOperation,
    findNumber,
    findCustomer,
    findWhoOwns,
    findEffect,
    findRefusedOrder,
  ]) {
    const subject = await find(db, id)
    if (subject !== null) return subject
  }
  return null
}

interface Found {
  order_id: string | null
  event_key: string | null
}

function subject(kind: SubjectKind, id: string, rows: readonly Found[]): Subject | null {
  if (rows.length === 0) return null
  const distinct = (values: (string | null)[]): string[] => [
    ...new Set(values.filter((value) => value !== null)),
  ]
  return {
    kind,
    id,
    order_ids: distinct(rows.map((row) => row.order_id)),
    event_keys: distinct(rows.map((row) => row.event_key)),
    operation_ids: [],
  }
}

async function findOrder(db: Database, id: string): Promise<Subject | null> {
  const rows = await db.query<Found>({
    text: `select order_id, null as event_key from ${db.schema}orders where order_id = $1`,
    values: [id],
  })
  return subject('order', id, rows)
}

/** Sources are few: one probe of the unique index for each. */
async function findEvent(db: Database, id: string): Promise<Subject | null> {
  const s = db.schema
  const rows = await db.query<Found>({
    text: `select e.event_key, coalesce(
          (select d.order_id from ${s}ledger_decisions d where d.event_key = e.event_key and d.final),
          (select d.order_id from ${s}ledger_decisions d where d.event_key = e.event_key and not d.final
           order by d.decision_id desc limit 1),
          (select g.order_id from ${s}inbox_gathers g where g.event_key = e.event_key and g.waiting)) as order_id
      from ${s}sources n join ${s}inbox_events e on e.source_id = n.source_id and e.event_id = $1 order by e.event_key`,
    values: [id],
  })
  return subject('event', id, rows)
}

/**
 * Names stand under (source, kind, name): the few pairs of source and kind are found by jumping from
 * one to the next in the index, and each is probed.
 */
async function findName(db: Database, id: string): Promise<Subject | null> {
  const s = db.schema
  const rows = await db.query<Found>({
    text: `with recursive kinds as (
        (select source_id, kind from ${s}order_names order by source_id, kind limit 1)
        union all
        select next.source_id, next.kind from kinds k cross join lateral (
          select n.source_id, n.kind from ${s}order_names n where (n.source_id, n.kind) > (k.source_id, k.kind)
          order by n.source_id, n.kind limit 1) next
      )
      select n.order_id, w.event_key
      from kinds k
      join ${s}order_names n on n.source_id = k.source_id and n.kind = k.kind and n.name = $1
      left join ${s}inbox_waits w on w.kind = n.kind and w.source_id = n.source_id and w.name = n.name`,
    values: [id],
  })
  return subject('name', id, rows)
}

async function findPayment(db: Database, id: string): Promise<Subject | null> {
  const s = db.schema
  const rows = await db.query<Found>({
    text: `select p.order_id, null as event_key
      from ${s}sources n join ${s}ledger_payments p on p.source_id = n.source_id and p.payment_id = $1`,
    values: [id],
  })
  return subject('payment', id, rows)
}

/** An object that orders follow, by its own id; or an order of which nothing but a look is known yet. */
async function findLooked(db: Database, id: string): Promise<Subject | null> {
  const s = db.schema
  const rows = await db.query<Found & { isOrder: boolean }>({
    text: `with recursive kinds as (
        (select source_id, kind from ${s}looked_at order by source_id, kind limit 1)
        union all
        select next.source_id, next.kind from kinds k cross join lateral (
          select n.source_id, n.kind from ${s}looked_at n where (n.source_id, n.kind) > (k.source_id, k.kind)
          order by n.source_id, n.kind limit 1) next
      )
      select l.order_id, null as event_key, false as "isOrder"
      from kinds k join ${s}looked_at l on l.source_id = k.source_id and l.kind = k.kind and l.object_id = $1
      where k.kind <> 'event'
      union
      select l.order_id, null, true from ${s}looked_at l where l.order_id = $1`,
    values: [id],
  })
  return subject(rows.some((row) => row.isOrder) ? 'order' : 'name', id, rows)
}

async function findOperation(db: Database, id: string): Promise<Subject | null> {
  const operations = await findOperations(db, id)
  const [operation] = operations
  // the beginning of an id must be the beginning of one only; a key may be known to several destinations
  const isKey = operations.every((each) => each.effect_type === null && each.name === id)
  if (operation === undefined || (operations.length > 1 && !isKey)) return null
  const found = operations.map((each) => ({ order_id: each.order_id, event_key: null }))
  const named = subject('operation', isKey ? id : operation.operation_id, found)
  return named && { ...named, operation_ids: operations.map((each) => each.operation_id) }
}

async function findFinding(db: Database, id: string): Promise<Subject | null> {
  const findings = await findFindings(db, id)
  const [finding] = findings
  // the beginning of an id must be the beginning of one only
  if (finding === undefined || findings.length > 1) return null
  return subject('finding', finding.finding_id, [finding])
}

async function findNumber(db: Database, id: string): Promise<Subject | null> {
  const s = db.schema
  const match = /^(event|decision):(\d{1,18})$/.exec(id)
  const [, kind, number = ''] = match ?? []
  if (kind === 'decision') {
    const text = `select order_id, event_key from ${s}ledger_decisions where decision_id = $1::bigint`
    return subject('decision', id, await db.query<Found>({ text, values: [number] }))
  }
  if (kind !== 'event') return null
  const text = `select null as order_id, event_key from ${s}inbox_events where event_key = $1::bigint`
  return subject('event', id, await db.query<Found>({ text, values: [number] }))
}

/**
 * A provider's customer: what waits for it to be linked, and where it is, the orders of its subject. Sources are
 * few: one probe of the unique index for each.
 */
async function findCustomer(db: Database, id: string): Promise<Subject | null> {
  const s = db.schema
  const links = await db.query<Found & { subject: string | null }>({
    text: `select null as order_id, w.event_key, l.subject
      from ${s}sources n join ${s}customer_links l on l.source_id = n.source_id and l.customer_id = $1
      left join ${s}inbox_waits w on w.kind = 'customer' and w.source_id = l.source_id and w.name = l.customer_id
      order by w.event_key limit ${mostOrders}`,
    values: [id],
  })
  const owners = [...new Set(links.map((row) => row.subject).filter((each) => each !== null))]
  const orders = await Promise.all(owners.map((each) => ordersOf(db, each)))
  return subject('customer', id, [...links, ...orders.flat()])
}

/** A subject with all that was merged into it, or with it: the newest of its orders. */
async function findWhoOwns(db: Database, id: string): Promise<Subject | null> {
  const s = db.schema
  const orders = await ordersOf(db, id)
  if (orders.length > 0) return subject('subject', id, orders)
  // somebody has spoken of it, and it has no order yet
  const known = await db.query<Found>({
    text: `select null as order_id, null as event_key
      where exists (select 1 from ${s}subject_merges m where m.from_subject = $1)
        or exists (select 1 from ${s}subject_merges m where m.into_subject = $1)
        or exists (select 1 from ${s}customer_links l where l.subject = $1)`,
    values: [id],
  })
  return subject('subject', id, known)
}

/** Most orders of a subject that are told. */
const mostOrders = 100

async function ordersOf(db: Database, id: string): Promise<Found[]> {
  const s = db.schema
  return db.query<Found>({
    text: `with now as (select ${presentSubject(s, '$1::text')} as subject),
      names as materialized (
        select subject from now
        union all select m.from_subject from ${s}subject_merges m where m.into_subject = (select subject from now)),
      owned as (
        select o.order_id from names n cross join lateral (
          select order_id from ${s}orders o where o.subject = n.subject offset 0) o
        union
        select e.order_id from names n cross join lateral (
          select order_id from ${s}entitlements e where e.subject = n.subject offset 0) e)
      select w.order_id, null as event_key from owned w cross join lateral (
        select o.opened_at from ${s}orders o where o.order_id = w.order_id offset 0) o
      order by o.opened_at desc, w.order_id limit ${mostOrders}`,
    values: [id],
  })
}

/** The last resort: references have no index of their own. */
async function findEffect(db: Database, id: string): Promise<Subject | null> {
  const rows = await db.query<Found>({
    text: `select order_id, null as event_key from ${db.schema}fulfillment_effects
      where effect_reference = $1 and effect_reference <> '' limit 10`,
    values: [id],
  })
  return subject('effect', id, rows)
}

/**
 * An order that was never opened, since what claimed it was a contradiction: somebody may have paid for
 * it all the same. Only the findings, which are few, say for which order it was meant.
 */
async function findRefusedOrder(db: Database, id: string): Promise<Subject | null> {
  const rows = await db.query<Found>({
    text: `select distinct null as order_id, event_key from ${db.schema}findings
      where event_key is not null and order_id is null
        and (evidence ->> 'order' = $1 or $1 = any (string_to_array(evidence ->> 'orders', ', ')))
      order by event_key limit 100`,
    values: [id],
  })
  return subject('order', id, rows)
}
