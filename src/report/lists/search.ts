/** What an id or a name leads to, of any kind: what `explain` finds, as links. */
import type { Database } from '../../postgres/executor.ts'
import { findSubject, type Subject } from '../find-subject.ts'

/** A hit; the id of an event is `source/event_id`. */
export interface SearchHit {
  readonly kind: 'order' | 'event' | 'operation' | 'finding' | 'subject'
  readonly id: string
  readonly title: string
  /** What it is, and where it stands. */
  readonly where: string
}

/** Hits of one kind. */
const mostHits = 25

/** Everything that this leads to, the thing itself first. */
export async function search(db: Database, text: string): Promise<readonly SearchHit[]> {
  const found = await findSubject(db, text)
  const subject = await subjectHit(db, text)
  if (found === null) return subject
  const [orders, events] = await Promise.all([
    orderHits(db, found.order_ids.slice(0, mostHits)),
    eventHits(db, found.event_keys.slice(0, mostHits)),
  ])
  const own = ownHits(found)
  const first = found.kind === 'event' ? [...events, ...orders] : [...orders, ...events]
  const as = `${found.kind} ${found.id}`
  return [
    ...own,
    ...(found.kind === 'subject' ? subject : []),
    ...first.map((hit) => ({ ...hit, where: named(hit, found, as) })),
    ...(found.kind === 'subject' ? [] : subject),
  ]
}

function named(hit: SearchHit, found: Subject, as: string): string {
  return found.kind === hit.kind && found.id === hit.id ? hit.where : `${hit.where} · by ${as}`
}

function ownHits({ kind, id, operation_ids: operations }: Subject): SearchHit[] {
  if (kind === 'operation')
    return operations.map((each) => ({ kind, id: each, title: id, where: 'operation' }))
  return kind === 'finding' ? [{ kind, id, title: id, where: 'finding' }] : []
}

async function orderHits(db: Database, ids: readonly string[]): Promise<SearchHit[]> {
  if (ids.length === 0) return []
  const rows = await db.query<{
    order_id: string
    workflow: string
    state: string
    subject: string | null
  }>({
    text: `select order_id, workflow, state, subject from ${db.schema}orders where order_id = any ($1::text[]) order by opened_at desc`,
    values: [ids],
  })
  return rows.map((row) => ({
    kind: 'order',
    id: row.order_id,
    title: row.order_id,
    where: `order, ${row.workflow} ${row.state}${row.subject === null ? '' : `, of ${row.subject}`}`,
  }))
}

async function eventHits(db: Database, keys: readonly string[]): Promise<SearchHit[]> {
  if (keys.length === 0) return []
  const rows = await db.query<{
    source: string
    event_id: string
    event_type: string
    state: string
  }>({
    text: `select concat_ws(':', provider, provider_account, environment) as source, event_id, event_type, state
      from ${db.schema}webhook_inbox where event_key = any ($1::bigint[]) order by event_key desc`,
    values: [keys],
  })
  return rows.map((row) => ({
    kind: 'event',
    id: `${row.source}/${row.event_id}`,
    title: row.event_id,
    where: `event, ${row.event_type}, ${row.state}`,
  }))
}

/** Somebody with entitlements, links or merges under exactly this name. */
async function subjectHit(db: Database, text: string): Promise<SearchHit[]> {
  const s = db.schema
  const [row] = await db.query<{ known: boolean }>({
    text: `select exists (select 1 from ${s}orders where subject = $1) or exists (select 1 from ${s}entitlements where subject = $1)
      or exists (select 1 from ${s}customer_links where subject = $1)
      or exists (select 1 from ${s}subject_merges where from_subject = $1 or into_subject = $1) as known`,
    values: [text],
  })
  return row?.known === true
    ? [{ kind: 'subject', id: text, title: text, where: 'subject: what it may use' }]
    : []
}
