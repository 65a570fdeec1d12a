/** Findings as people read them: what differs, since when, who answers for it, until when. */
import type { Database } from '../postgres/executor.ts'
import { findingKinds } from '../workflow/finding-kinds.ts'
import {
  counted,
  exactJson,
  isoTime,
  requiredTime,
  type Count,
  type IsoTime,
} from './row-values.ts'

/** A finding; the keys are what `--json` prints. */
export interface FindingView {
  readonly finding_id: string
  readonly class: string
  readonly kind: string
  readonly severity: string
  readonly state: string
  readonly owner: string
  readonly order_id: string | null
  readonly event_key: string | null
  readonly event_id: string | null
  readonly event_type: string | null
  readonly evidence: unknown
  /** The provider's record that it compares. */
  readonly record: { readonly kind: string; readonly id: string; readonly account: string } | null
  readonly due_at: IsoTime
  readonly overdue: boolean
  readonly first_seen_at: IsoTime
  readonly last_seen_at: IsoTime
  readonly closed_at: IsoTime | null
  readonly closed_because: string | null
  /** Of a dismissed one. */
  readonly dismissed_until: IsoTime | null
  readonly times_seen: Count
}

/** Which findings to list. */
export interface FindingFilter {
  /** States; empty means all of them. */
  readonly states?: readonly string[]
  readonly kind?: string | undefined
  readonly class?: string | undefined
  readonly owner?: string | undefined
  readonly orderId?: string | undefined
  readonly overdue?: boolean
  readonly limit: number
}

interface FindingRow {
  finding_id: string
  class: string
  kind: string
  severity: string
  state: string
  owner: string
  order_id: string | null
  event_key: string | null
  event_id: string | null
  event_type: string | null
  evidence: string
  due_at: Date | string
  overdue: boolean
  first_seen_at: Date | string
  last_seen_at: Date | string
  closed_at: Date | string | null
  closed_because: string | null
  dismissed_until: Date | string | null
  record: string | null
  times_seen: string
}

/** The findings that fit, those due first first. */
export async function listFindings(db: Database, filter: FindingFilter): Promise<FindingView[]> {
  const rows = await db.query<FindingRow>({
    text: `${selectFindings(db.schema)}
      where (cardinality($1::text[]) = 0 or f.state = any ($1::text[]))
        and ($2::text is null or f.kind = $2) and ($3::text is null or f.class = $3)
        and ($4::text is null or f.owner = $4) and ($5::text is null or f.order_id = $5)
        and (not $6::boolean or (f.due_at < now() and f.state in ('open', 'repairing')))
      order by f.due_at, f.finding_id limit $7`,
    values: [
      filter.states ?? [],
      filter.kind ?? null,
      filter.class ?? null,
      filter.owner ?? null,
      filter.orderId ?? null,
      filter.overdue === true,
      filter.limit,
    ],
  })
  return rows.map(findingView)
}

/** The kinds that findings of this database have, whatever made them. */
export async function knownFindingKinds(db: Database): Promise<string[]> {
  const rows = await db.query<{ kind: string }>({
    text: `select distinct kind from ${db.schema}findings order by kind`,
  })
  return [...new Set([...findingKinds, ...rows.map(({ kind }) => kind)])]
}

/** The finding with this id; several when only the beginning of an id (six digits or more) is given. */
export async function findFindings(db: Database, id: string): Promise<FindingView[]> {
  if (!/^[0-9a-f-]{6,36}$/i.test(id)) return []
  const rows = await db.query<FindingRow>({
    text: `${selectFindings(db.schema)} where f.finding_id::text like $1 order by f.finding_id limit 10`,
    values: [`${id.toLowerCase()}%`],
  })
  return rows.map(findingView)
}

/** The findings with these ids, in no order. */
export async function findingsWith(db: Database, ids: readonly string[]): Promise<FindingView[]> {
  const rows = await db.query<FindingRow>({
    text: `${selectFindings(db.schema)} where f.finding_id = any ($1::uuid[])`,
    values: [ids],
  })
  return rows.map(findingView)
}

/** The operation that a finding is about; null for one about something else. */
export function operationOf({ evidence }: Pick<FindingView, 'evidence'>): string | null {
  if (typeof evidence !== 'object' || evidence === null || !('operation' in evidence)) return null
  const { operation } = evidence
  return typeof operation === 'string' ? operation : null
}

/** Whether passes over the provider's records find it: neither deciding an event nor dispatching an operation does. */
export function isSeenByPasses(finding: FindingView): boolean {
  if (finding.kind === 'event_missing') return true
  return finding.event_key === null && operationOf(finding) === null
}

/** The findings of an order, of events or of operations, first seen first. */
export async function findingsAbout(
  db: Database,
  about: {
    readonly orderId: string | null
    readonly eventKeys: readonly string[]
    readonly operationIds: readonly string[]
  },
): Promise<FindingView[]> {
  const ofOperations =
    about.operationIds.length === 0 ? '' : `or f.evidence ->> 'operation' = any ($3::text[])`
  const rows = await db.query<FindingRow>({
    text: `${selectFindings(db.schema)}
      where f.order_id = $1 or f.event_key = any ($2::bigint[]) ${ofOperations} order by f.first_seen_at, f.finding_id`,
    values: [
      about.orderId,
      about.eventKeys,
      ...(about.operationIds.length === 0 ? [] : [about.operationIds]),
    ],
  })
  return rows.map(findingView)
}

function selectFindings(s: string): string {
  return `select f.finding_id::text as finding_id, f.class, f.kind, f.severity, f.state, f.owner, f.order_id, f.event_key,
    e.event_id, e.event_type, f.evidence::text as evidence, f.due_at, (f.due_at < now() and f.state in ('open', 'repairing')) as overdue,
    f.first_seen_at, f.last_seen_at, f.closed_at, f.closed_because, f.reference::text as record,
    case when f.state = 'dismissed' then f.dismissed_until end as dismissed_until, f.times_seen
    from ${s}findings f left join ${s}inbox_events e on e.event_key = f.event_key`
}

function findingView(row: FindingRow): FindingView {
  return {
    ...row,
    evidence: exactJson(row.evidence),
    record: row.record === null ? null : (exactJson(row.record) as FindingView['record']),
    dismissed_until: isoTime(row.dismissed_until),
    due_at: requiredTime(row.due_at),
    first_seen_at: requiredTime(row.first_seen_at),
    last_seen_at: requiredTime(row.last_seen_at),
    closed_at: isoTime(row.closed_at),
    times_seen: counted(row.times_seen),
  }
}
