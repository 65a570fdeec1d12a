/**
 * Whether everybody who paid has what they paid for, as far as anybody can know: findings that say otherwise,
 * events that nobody has decided, and what orders asked for and was not sent. Whatever is left open counts as
 * not served: a provider's success only means that its request was stored.
 */
import type { Database } from '../postgres/executor.ts'
import { findingKinds } from '../workflow/finding-kinds.ts'
import { counted, requiredTime, type Count, type IsoTime } from './row-values.ts'
import type { Reference } from './reference.ts'

/** Somebody who may have paid and may not have what they paid for. */
export interface Unserved {
  /** Where to look. */
  readonly about: Reference
  readonly order_id: string | null
  readonly subject: string | null
  readonly why: string
  readonly since: IsoTime
}

/** All of them: counted, and the oldest. */
export interface UnservedReport {
  readonly count: Count
  /** Orders that findings or unsent operations are about, and findings that name none. */
  readonly orders: Count
  /** Events that wait for a decision for longer than {@link patienceMs}. */
  readonly events: Count
  readonly items: readonly Unserved[]
}

/** How long an event may wait for its decision before its customer counts as not served, in milliseconds. */
export const patienceMs = 60_000

/** How long an operation of an effect may be on its way, in milliseconds. */
const sendingMs = 300_000

/** How many are named. */
const shown = 20

/** Kinds that leave somebody who paid without what they paid for, or may, in words. */
const withholding: Readonly<Record<string, string>> = {
  paid_there: 'paid at the provider, and not here',
  payment_without_order: 'paid for something that is no order here',
  event_missing: 'an event of the provider never arrived',
  underpaid: 'paid less than expected: nothing was granted',
  currency_differs: 'paid in another currency: nothing was granted',
  not_accepted: 'what was paid for is not accepted',
  foreign_account: 'paid to another account: nothing was granted',
  transition_refused: 'its state does not permit what was decided',
  name_of_other_order: 'the event leads to two orders',
  workflow_differs: 'the event belongs to another workflow',
  two_claims: 'two workflows claim the event',
  order_differs: 'the order is not what was paid for',
  contradicted: 'the event contradicts the order',
  wait_overdue: 'an event waits for something that did not come',
  dead_event: 'an event could not be decided',
  fetch_overdue: 'the provider does not answer what the decision needs',
  unknown_price: 'the price is not known here: nothing was granted',
  tampered: "was changed behind the ledger's back",
  operation_dead: 'what it asked for could not be sent',
  operation_uncertain: 'nobody knows whether what it asked for was done',
}

/** Of those, the ones that matter also where the order entitles. */
const evenEntitled = ['tampered', 'unknown_price', 'operation_dead', 'operation_uncertain']

/** Reads who may not be served. */
export async function readUnserved(db: Database): Promise<UnservedReport> {
  const [counts, findings, events, operations] = await Promise.all([
    db.query<{ orders: string; events: string }>({
      text: countsStatement(db.schema),
      values: [Object.keys(withholding), evenEntitled, findingKinds],
    }),
    unservedFindings(db),
    unservedEvents(db),
    unservedOperations(db),
  ])
  const orders = counted(counts[0]?.orders)
  // a row of an event that is finished already is only waiting to be dropped
  const undecided = events.length === 0 ? 0 : counted(counts[0]?.events)
  const items = [...findings, ...events, ...operations]
  const distinct = items.filter(
    ({ order_id: order }, at) =>
      order === null || items.findIndex((each) => each.order_id === order) === at,
  )
  return { count: orders + undecided, orders, events: undecided, items: distinct.slice(0, shown) }
}

/** Findings `f` that withhold; few are open, whatever the size of the ledger. */
function withheld(s: string, columns: string, kinds: string, even: string, known: string): string {
  return `select ${columns} from ${s}findings f
    left join ${s}orders o on o.order_id = coalesce(f.order_id, f.evidence ->> 'order')
    left join ${s}workflow_states w on w.workflow = o.workflow and w.state = o.state
    where f.state in ('open', 'repairing')
      and (f.kind = any (${kinds}::text[])
        or not f.kind = any (${known}::text[]) and exists (select from ${s}ledger_decisions d
          where d.event_key = f.event_key and d.final and d.kind = 'contradicted' offset 0))
      and (w.entitles is not true or f.kind = any (${even}::text[]))`
}

/** Operations `p` of effects that are on their way for too long. */
function unsent(s: string): string {
  return `${s}outbox_operations p where p.next_attempt_at is not null and p.effect_type is not null
    and p.created_at < now() - ${sendingMs} * interval '1 millisecond'`
}

const pendingTables = ['inbox_ready', 'inbox_delayed', 'inbox_suspects', 'inbox_gathers'] as const

function pendingRows(s: string, table: string): string {
  return `${s}${table} t where t.event_key <= (select event_key from old)${table === 'inbox_gathers' ? ' and t.waiting' : ''}`
}

/** Keys are given in order of arrival: the newest event that is old enough bounds all of them. */
function oldEvent(s: string): string {
  return `old as materialized (select event_key from ${s}inbox_events
    where received_at < now() - ${patienceMs} * interval '1 millisecond' order by event_key desc limit 1)`
}

/** The statement, exported so that its plan can be asserted: $1 kinds, $2 those even where entitled, $3 kinds known. */
export function countsStatement(s: string): string {
  const about = `coalesce(f.order_id, f.evidence ->> 'order', f.finding_id::text)`
  const events = pendingTables.map((table) => `(select count(*) from ${pendingRows(s, table)})`)
  return `with ${oldEvent(s)}
    select (select count(*) from (
        ${withheld(s, `${about} collate "C" as about`, '$1', '$2', '$3')}
        union
        select p.order_id from ${unsent(s)}) u) as orders,
      ${events.join(' + ')} as events`
}

async function unservedFindings(db: Database): Promise<Unserved[]> {
  const columns = `f.finding_id::text as finding_id, f.kind, coalesce(f.order_id, f.evidence ->> 'order') as order_id,
    o.order_id is not null as is_order, o.subject, f.first_seen_at`
  const rows = await db.query<{
    finding_id: string
    kind: string
    order_id: string | null
    is_order: boolean
    subject: string | null
    first_seen_at: Date | string
  }>({
    text: `${withheld(db.schema, columns, '$1', '$2', '$3')} order by f.first_seen_at, f.finding_id limit ${shown}`,
    values: [Object.keys(withholding), evenEntitled, findingKinds],
  })
  return rows.map((row) => ({
    about:
      row.is_order && row.order_id !== null
        ? { kind: 'order', id: row.order_id }
        : { kind: 'finding', id: row.finding_id },
    order_id: row.order_id,
    subject: row.subject,
    why: withholding[row.kind] ?? `${row.kind}: the event was contradicted`,
    since: requiredTime(row.first_seen_at),
  }))
}

async function unservedEvents(db: Database): Promise<Unserved[]> {
  const s = db.schema
  const oldest = pendingTables.map(
    (table) =>
      `(select t.event_key from ${pendingRows(s, table)} order by t.event_key limit ${shown})`,
  )
  const rows = await db.query<{
    source: string
    event_id: string
    event_type: string
    received_at: Date | string
  }>({
    text: `with ${oldEvent(s)}
      select concat_ws(':', n.provider, n.provider_account, n.environment) as source, e.event_id, e.event_type, e.received_at
      from (${oldest.join(' union all ')}) k
      join ${s}inbox_events e on e.event_key = k.event_key
      join ${s}sources n on n.source_id = e.source_id
      where not exists (select from ${s}ledger_decisions d where d.event_key = e.event_key and d.final)
      order by e.event_key limit ${shown}`,
  })
  return rows.map((row) => ({
    about: { kind: 'event', id: `${row.source}/${row.event_id}` },
    order_id: null,
    subject: null,
    why: `${row.event_type} arrived, and was not decided`,
    since: requiredTime(row.received_at),
  }))
}

async function unservedOperations(db: Database): Promise<Unserved[]> {
  const s = db.schema
  const rows = await db.query<{
    operation_id: string
    name: string
    destination: string
    order_id: string
    subject: string | null
    created_at: Date | string
  }>({
    text: `select p.operation_id::text as operation_id, p.name, p.destination, p.order_id, o.subject, p.created_at
      from (select * from ${unsent(s)} order by p.sequence limit ${shown}) p
      left join ${s}orders o on o.order_id = p.order_id order by p.sequence`,
  })
  return rows.map((row) => ({
    about: { kind: 'operation', id: row.operation_id },
    order_id: row.order_id,
    subject: row.subject,
    why: `${row.name} to ${row.destination} was not sent yet`,
    since: requiredTime(row.created_at),
  }))
}
