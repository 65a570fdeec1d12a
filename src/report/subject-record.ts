/**
 * What a subject may use at this moment and because of what: each entitlement with the orders that state it and the
 * decisions behind them, its orders, its customers at providers, and what it is one with. By index throughout.
 */
import type { Database } from '../postgres/executor.ts'
import { presentSubject } from '../postgres/present-subject.ts'
import { actsAboutSubjects, type SubjectActView } from './acts-about-subjects.ts'
import { eventReference, type Reference } from './reference.ts'
import { isoTime, requiredTime, type IsoTime } from './row-values.ts'

/** What it may use now, combined over its orders as declared. */
export interface UsableEntitlement {
  readonly entitlement: string
  /** Digits. */
  readonly quantity: string
  readonly valid_until: IsoTime | null
  /** How several orders count together: `any`, `max` or `sum`. */
  readonly combine: string
}

/** A decision as the cause of access. */
export interface AccessCause {
  readonly decision_id: string
  readonly kind: string
  readonly reason: string
  readonly decided_at: IsoTime
  readonly event: Reference | null
}

/** What one order entitles it to, and since which decision. */
export interface AccessGround {
  /** Under which name: its own, or one that was merged into it. */
  readonly subject: string
  readonly entitlement: string
  readonly order_id: string
  readonly workflow: string
  readonly order_state: string
  /** Whether that state entitles. */
  readonly entitles: boolean
  /** Whether it counts now: active, and its end has not come. */
  readonly in_force: boolean
  readonly quantity: string | null
  readonly valid_until: IsoTime | null
  readonly granted: AccessCause | null
  /** The decision that changed it last. */
  readonly changed: AccessCause | null
}

/** One of its orders. */
export interface SubjectOrder {
  readonly order_id: string
  readonly workflow: string
  readonly state: string
  readonly entitles: boolean
  readonly opened_at: IsoTime
  readonly updated_at: IsoTime
}

/** An order of it that somebody has to look at. */
export interface SubjectFinding {
  readonly finding_id: string
  readonly kind: string
  readonly state: string
  readonly owner: string
  readonly due_at: IsoTime
  readonly order_id: string
}

/** A subject. */
export interface SubjectRecord {
  readonly subject: string
  /** What it is now: itself, or what it was merged into. */
  readonly present: string
  /** What was merged into that. */
  readonly merged: readonly string[]
  readonly may_use: readonly UsableEntitlement[]
  readonly grounds: readonly AccessGround[]
  readonly orders: readonly SubjectOrder[]
  /** Findings about its orders that are not closed. */
  readonly findings: readonly SubjectFinding[]
  readonly customers: readonly {
    readonly source: string
    readonly customer_id: string
    readonly linked_at: IsoTime | null
  }[]
  /** Links and merges, by whom and why. */
  readonly acts: readonly SubjectActView[]
  /** Whether a list above ends at its limit: the lists of the console go on. */
  readonly is_cut: boolean
}

/** Most names, grounds, orders, findings and customers that are told. */
const most = 100

/** Reads a subject; null where nothing knows it. */
export async function readSubject(db: Database, subject: string): Promise<SubjectRecord | null> {
  const s = db.schema
  const [now] = await db.query<{ present: string; merged: string[] }>({
    text: `select n.subject as present, array(select from_subject from ${s}subject_merges m
        where m.into_subject = n.subject order by 1 limit ${most}) as merged
      from (select ${presentSubject(s, '$1::text')} as subject) n`,
    values: [subject],
  })
  const present = now?.present ?? subject
  const merged = now?.merged ?? []
  const names = [present, ...merged]
  const [usable, grounds, orders, customers, acts] = await Promise.all([
    readUsable(db, present),
    readGrounds(db, names),
    readOrders(db, names),
    readCustomers(db, names),
    actsAboutSubjects(db, { kind: 'subject', id: subject }),
  ])
  if (grounds.length + orders.length + customers.length + acts.length + merged.length === 0)
    return null
  const orderIds = [...new Set([...orders, ...grounds].map((each) => each.order_id))]
  const findings = await readFindings(db, orderIds)
  const lists = [merged, grounds, orders, findings, customers, acts]
  return {
    subject,
    present,
    merged,
    may_use: usable,
    grounds,
    orders,
    findings,
    customers,
    acts,
    is_cut: lists.some((list) => list.length >= most),
  }
}

async function readUsable(db: Database, present: string): Promise<UsableEntitlement[]> {
  const s = db.schema
  const rows = await db.query<UsableEntitlement & { valid_until: Date | string | null }>({
    text: `select c.entitlement, c.quantity::text as quantity, c.valid_until, coalesce(r.combine, 'any') as combine
      from ${s}current_entitlements c left join ${s}entitlement_rules r on r.entitlement = c.entitlement
      where c.subject = $1 order by c.entitlement limit ${most}`,
    values: [present],
  })
  return rows.map((row) => ({ ...row, valid_until: isoTime(row.valid_until) }))
}

type CauseRow = Omit<AccessCause, 'event' | 'decided_at'> & {
  readonly decided_at: string
  readonly source: string | null
  readonly event_id: string | null
}

type GroundRow = Omit<AccessGround, 'granted' | 'changed' | 'valid_until'> & {
  readonly valid_until: Date | string | null
  readonly granted: CauseRow | null
  readonly changed: CauseRow | null
}

/** Those that count first, then the newest: a long history does not hide what is in force. */
async function readGrounds(db: Database, names: readonly string[]): Promise<AccessGround[]> {
  const s = db.schema
  const rows = await db.query<GroundRow>({
    text: `with g as materialized (
        select e.*, e.active and (e.valid_until is null or e.valid_until > now()) as in_force
        from unnest($1::text[]) as name(subject)
        cross join lateral (select * from ${s}entitlements e where e.subject = name.subject offset 0) e
        order by in_force desc, e.changed_by desc, e.entitlement, e.order_id limit ${most})
      select g.subject, g.entitlement, g.order_id, o.workflow, o.state as order_state, w.entitles, g.in_force,
        g.quantity::text as quantity, g.valid_until, ${causeSql(s, 'g.granted_by')} as granted,
        ${causeSql(s, 'g.changed_by')} as changed
      from g join ${s}orders o on o.order_id = g.order_id
      join ${s}workflow_states w on w.workflow = o.workflow and w.state = o.state
      order by g.in_force desc, g.entitlement, g.changed_by desc, g.order_id`,
    values: [names],
  })
  return rows.map((row) => ({
    ...row,
    valid_until: isoTime(row.valid_until),
    granted: causeOf(row.granted),
    changed: causeOf(row.changed),
  }))
}

/** SQL: a decision with the event that it was made for, as JSON. Its ids are texts: they may pass 2^53. */
function causeSql(s: string, decisionId: string): string {
  return `(select json_build_object('decision_id', d.decision_id::text, 'kind', d.kind, 'reason', d.reason,
      'decided_at', d.decided_at, 'event_id', e.event_id,
      'source', case when e.event_key is not null then concat_ws(':', n.provider, n.provider_account, n.environment) end)
    from ${s}ledger_decisions d left join ${s}inbox_events e on e.event_key = d.event_key
    left join ${s}sources n on n.source_id = e.source_id where d.decision_id = ${decisionId})`
}

function causeOf(row: CauseRow | null): AccessCause | null {
  if (row === null) return null
  const { source, event_id: id, decided_at: at, ...rest } = row
  const event = source === null || id === null ? null : eventReference({ source, event_id: id })
  return { ...rest, decided_at: requiredTime(at), event }
}

async function readOrders(db: Database, names: readonly string[]): Promise<SubjectOrder[]> {
  const s = db.schema
  const rows = await db.query<SubjectOrder & { opened_at: Date; updated_at: Date }>({
    text: `with mine as materialized (
        select o.* from unnest($1::text[]) as name(subject)
        cross join lateral (select * from ${s}orders o where o.subject = name.subject offset 0) o
        order by o.opened_at desc, o.order_id limit ${most})
      select m.order_id, m.workflow, m.state, w.entitles, m.opened_at, m.updated_at
      from mine m join ${s}workflow_states w on w.workflow = m.workflow and w.state = m.state
      order by m.opened_at desc, m.order_id`,
    values: [names],
  })
  return rows.map((row) => ({
    ...row,
    opened_at: requiredTime(row.opened_at),
    updated_at: requiredTime(row.updated_at),
  }))
}

async function readFindings(db: Database, orderIds: readonly string[]): Promise<SubjectFinding[]> {
  const rows = await db.query<SubjectFinding & { due_at: Date }>({
    text: `select f.finding_id, f.kind, f.state, f.owner, f.due_at, f.order_id
      from unnest($1::text[]) as mine(order_id) cross join lateral (
        select * from ${db.schema}findings f where f.order_id = mine.order_id offset 0) f
      where f.state in ('open', 'repairing') order by f.due_at, f.finding_id limit ${most}`,
    values: [orderIds],
  })
  return rows.map((row) => ({ ...row, due_at: requiredTime(row.due_at) }))
}

async function readCustomers(
  db: Database,
  names: readonly string[],
): Promise<{ source: string; customer_id: string; linked_at: IsoTime | null }[]> {
  const s = db.schema
  const rows = await db.query<{ source: string; customer_id: string; linked_at: Date | null }>({
    text: `select concat_ws(':', n.provider, n.provider_account, n.environment) as source, l.customer_id, l.linked_at
      from unnest($1::text[]) as name(subject) cross join lateral (
        select * from ${s}customer_links l where l.subject = name.subject offset 0) l
      join ${s}sources n on n.source_id = l.source_id
      order by l.linked_at, l.customer_id limit ${most}`,
    values: [names],
  })
  return rows.map((row) => ({ ...row, linked_at: isoTime(row.linked_at) }))
}
