/** Bulk acts as people read them: what was planned, by whom, how far it has come, and what became of each target. */
import { HookledgerError } from '../../core/errors.ts'
import type { Database, Executor } from '../../postgres/executor.ts'
import {
  cursorForms,
  pageOf,
  readCursor,
  type Page,
  type PageRequest,
} from '../../report/lists/keyset.ts'
import type { Reference } from '../../report/reference.ts'
import { isoTime, requiredTime, type IsoTime } from '../../report/row-values.ts'
import type { BulkState } from './bulk-acts.ts'

/** A bulk act; the keys are what the API sends. */
export interface BulkView {
  readonly bulk_id: string
  readonly act: string
  readonly filter: Readonly<Record<string, unknown>>
  readonly details: Readonly<Record<string, unknown>>
  /** How many targets were planned: fixed from then on. */
  readonly count: number
  readonly state: BulkState
  readonly reason: string
  readonly actor: string
  readonly needs_approval: boolean
  readonly planned_at: IsoTime
  readonly started_at: IsoTime | null
  readonly approved_by: string | null
  readonly approved_at: IsoTime | null
  /** Who canceled or rejected it. */
  readonly ended_by: string | null
  readonly finished_at: IsoTime | null
  /** How many were done, were so already or are in another state by now, failed, and are left. */
  readonly done: number
  readonly unchanged: number
  readonly failed: number
  readonly pending: number
  /** What is to be typed to start or approve it. */
  readonly confirm: string
}

/** One target. */
export interface BulkItemView {
  readonly number: number
  readonly target: string
  /** Where it can be looked at; null: it is not there any more. */
  readonly reference: Reference | null
  readonly title: string
  readonly was: string
  readonly state: 'pending' | 'done' | 'unchanged' | 'failed'
  readonly code: string | null
  readonly message: string | null
  readonly answered_at: IsoTime | null
}

type Times = 'planned_at' | 'started_at' | 'approved_at' | 'finished_at'
type BulkRow = Omit<BulkView, Times | 'confirm'> &
  Record<Times, Date | string | null> & { readonly cursor: string }

/** What is typed to start or approve it: how many there are. */
export function bulkConfirm({ count }: { readonly count: number }): string {
  return String(count)
}

/**
 * One bulk act.
 *
 * @throws HookledgerError HKL_NOT_FOUND
 */
export async function readBulk(
  db: { readonly schema: string } & Pick<Executor, 'query'>,
  bulkId: string,
): Promise<BulkView> {
  const [row] = await db.query<BulkRow>({
    text: `${selectBulk(db.schema)} where b.bulk_id = $1::uuid`,
    values: [bulkId],
  })
  if (row !== undefined) return viewOf(row)
  throw new HookledgerError('HKL_NOT_FOUND', 'there is no such bulk act: see the list of them')
}

/** Bulk acts, the newest first. */
export async function listBulk(
  db: Database,
  { state, cursor, limit }: PageRequest & { readonly state?: BulkState | undefined },
): Promise<Page<BulkView>> {
  const after = readCursor(cursor, [cursorForms.moment, cursorForms.uuid])
  const rows = await db.query<BulkRow>({
    text: bulkListStatement(db.schema),
    values: [state ?? null, after?.[0] ?? null, after?.[1] ?? null, limit + 1],
  })
  return pageOf(rows, limit, ({ cursor: at, bulk_id: id }) => [at, id], viewOf)
}

/** The statement of the list, exported so that its plan can be asserted. */
export function bulkListStatement(s: string): string {
  return `${selectBulk(s)} where ($1::text is null or b.state = $1)
    and ($2::timestamptz is null or (b.planned_at, b.bulk_id) < ($2::timestamptz, $3::uuid))
    order by b.planned_at desc, b.bulk_id desc limit $4`
}

/** The targets of one, in the order in which they are done. */
export async function listBulkItems(
  db: Database,
  bulkId: string,
  { state, cursor, limit }: PageRequest & { readonly state?: BulkItemView['state'] | undefined },
): Promise<Page<BulkItemView>> {
  const after = readCursor(cursor, [cursorForms.number])
  const rows = await db.query<ItemRow>({
    text: bulkItemsStatement(db.schema),
    values: [bulkId, state ?? null, after?.[0] ?? '-1', limit + 1],
  })
  return pageOf(rows, limit, ({ number }) => [String(number)], itemOf)
}

interface ItemRow extends Omit<BulkItemView, 'reference' | 'title' | 'answered_at'> {
  readonly answered_at: Date | string | null
  readonly title: string | null
  readonly place: string | null
}

/** The statement of the targets, exported so that its plan can be asserted. */
export function bulkItemsStatement(s: string): string {
  return `select i.number, i.target, i.was, i.state, i.code, i.message, i.answered_at,
      coalesce(e.title, o.title, f.title) as title, coalesce(e.place, o.place, f.place) as place
    from (select * from ${s}bulk_items t where t.bulk_id = $1::uuid and ($2::text is null or t.state = $2)
      and t.number > $3::integer order by t.number limit $4) i
    left join lateral (
      select v.event_type || ' ' || v.event_id as title,
        concat_ws(':', n.provider, n.provider_account, n.environment) || '/' || v.event_id as place
      from ${s}inbox_events v join ${s}sources n on n.source_id = v.source_id
      where v.event_key = case when i.target like 'event:%' then split_part(i.target, ':', 2)::bigint end) e on true
    left join lateral (
      select p.name || ' to ' || p.destination || coalesce(', order ' || p.order_id, '') as title, p.operation_id::text as place
      from ${s}outbox_operations p
      where p.operation_id = case when i.target like 'operation:%' then split_part(i.target, ':', 2)::uuid end) o on true
    left join lateral (
      select d.kind || coalesce(', order ' || d.order_id, '') as title, d.finding_id::text as place
      from ${s}findings d
      where d.finding_id = case when i.target like 'finding:%' then split_part(i.target, ':', 2)::uuid end) f on true
    order by i.number`
}

function itemOf({ place, title, answered_at: at, ...row }: ItemRow): BulkItemView {
  const kind = row.target.slice(0, row.target.indexOf(':')) as Reference['kind']
  return {
    ...row,
    reference: place === null ? null : { kind, id: place },
    title: title ?? row.target,
    answered_at: isoTime(at),
  }
}

/** Only what runs is counted: of everything else it is written down, or nothing is done yet. */
function selectBulk(s: string): string {
  return `select b.bulk_id::text as bulk_id, b.act, b.filter, b.details, b.targets as count, b.state, b.reason, b.actor,
      b.needs_approval, b.planned_at, b.started_at, b.approved_by, b.approved_at, b.ended_by, b.finished_at,
      b.planned_at::text as cursor, (b.done + i.done)::integer as done, (b.unchanged + i.unchanged)::integer as unchanged,
      (b.failed + i.failed)::integer as failed,
      (b.targets - b.done - b.unchanged - b.failed - i.done - i.unchanged - i.failed)::integer as pending
    from ${s}bulk_acts b
    cross join lateral (${countedItems(s)} and b.state = 'running') i`
}

/** What became of the targets of `b`, counted. */
export function countedItems(s: string): string {
  return `select count(*) filter (where t.state = 'done') as done, count(*) filter (where t.state = 'unchanged') as unchanged,
      count(*) filter (where t.state = 'failed') as failed
    from ${s}bulk_items t where t.bulk_id = b.bulk_id and t.state <> 'pending'`
}

function viewOf({ cursor: _, ...row }: BulkRow): BulkView {
  return {
    ...row,
    planned_at: requiredTime(row.planned_at as Date | string),
    started_at: isoTime(row.started_at),
    approved_at: isoTime(row.approved_at),
    finished_at: isoTime(row.finished_at),
    confirm: bulkConfirm(row),
  }
}
