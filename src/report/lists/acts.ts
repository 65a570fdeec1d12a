/**
 * What people did and looked at, the newest first: four append-only tables as one stream. A cursor holds where
 * each of them stopped, so that none is ever read twice or sorted whole. Each keeps its own order when they are
 * merged: numbers and moments need not agree, since whoever took a number first may have begun later.
 */
import type { Database } from '../../postgres/executor.ts'
import { requiredTime, type IsoTime } from '../row-values.ts'
import { cursorForms, readCursor, writeCursor, type Page, type PageRequest } from './keyset.ts'

/** One act. */
export interface ListedAct {
  /** Of one kind and number: no two acts have the same. */
  readonly act_id: string
  readonly act: string
  /** `order:42`, `event:<source>/<event id>`, `operation:<id>`, `finding:<id>`, `subject:…`. */
  readonly target: string
  readonly reason: string
  readonly actor: string
  readonly database_role: string
  readonly acted_at: IsoTime
}

/** Which acts. */
export interface ActFilter extends PageRequest {
  readonly actor?: string | undefined
  readonly act?: string | undefined
  readonly target?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

interface ActRow {
  readonly stream: number
  readonly position: string
  readonly act: string
  readonly target: string
  readonly reason: string
  readonly actor: string
  readonly database_role: string
  readonly acted_at: Date | string
}

const letters = ['a', 'p', 'o', 'r'] as const
const orNothing = ({ source }: RegExp): RegExp => new RegExp(`^$|${source}`, 'u')
const number = orNothing(cursorForms.number)
/** Where each stream stopped; empty: it was not begun. */
const positions = [number, number, number, orNothing(cursorForms.moment)]

/** A page of acts. */
export async function listActs(db: Database, filter: ActFilter): Promise<Page<ListedAct>> {
  const cursor = readCursor(filter.cursor, positions)
  const at = (index: number): string | null => cursor?.[index] || null
  const targets = filter.target === undefined ? null : await writtenTargets(db, filter.target)
  const rows = await db.query<ActRow>({
    text: actsStatement(db.schema),
    values: [
      at(0),
      at(1),
      at(2),
      at(3),
      filter.actor ?? null,
      filter.act ?? null,
      targets,
      filter.from ?? null,
      filter.to ?? null,
      filter.limit + 1,
    ],
  })
  const shown = rows.slice(0, filter.limit)
  const stopped = letters.map(
    (_, index) => shown.findLast((row) => row.stream === index)?.position ?? at(index) ?? '',
  )
  return {
    items: shown.map(
      ({
        stream,
        position,
        acted_at: actedAt,
        act,
        target,
        reason,
        actor,
        database_role: role,
      }) => ({
        act,
        target,
        reason,
        actor,
        database_role: role,
        act_id: `${letters[stream] ?? ''}${position}`,
        acted_at: requiredTime(actedAt),
      }),
    ),
    next: rows.length > filter.limit ? writeCursor(stopped) : null,
  }
}

/** A target as it is asked for, and as acts wrote it: they name an event by its number. */
async function writtenTargets(db: Database, target: string): Promise<readonly string[]> {
  const [, source, id] = /^event:([^/]*)\/(.*)$/s.exec(target) ?? []
  if (source === undefined || id === undefined) return [target]
  const s = db.schema
  const rows = await db.query<{ target: string }>({
    text: `select 'event:' || e.event_key as target from ${s}sources n join ${s}inbox_events e on e.source_id = n.source_id and e.event_id = $2
      where concat_ws(':', n.provider, n.provider_account, n.environment) = $1`,
    values: [source, id],
  })
  return [target, ...rows.map((row) => row.target)]
}

function actsStatement(s: string): string {
  const event = `(select 'event:' || concat_ws(':', n.provider, n.provider_account, n.environment) || '/' || e.event_id
    from ${s}inbox_events e join ${s}sources n on n.source_id = e.source_id where e.event_key = `
  const rest = (time: string): string =>
    `($5::text is null or c.actor = $5) and ($6::text is null or c.act = $6)
      and ($7::text[] is null or c.raw_target = any ($7::text[]))
      and ($8::timestamptz is null or c.${time} >= $8::timestamptz) and ($9::timestamptz is null or c.${time} < $9::timestamptz)`
  const stream = (number: number, inner: string, order: string): string =>
    `(select ${number} as stream, l.position, l.act, l.target, l.reason, l.actor, l.database_role, l.acted_at,
        row_number() over (order by l.${order} desc) as place, min(l.acted_at) over (order by l.${order} desc) as merged_at
      from (select c.* from (${inner}) c where ${rest('acted_at')} order by c.${order} desc limit $10) l)`
  const acts = `select a.act_id, a.act_id::text as position, a.act, a.target as raw_target,
      coalesce(case when a.target like 'event:%' and a.target ~ '^event:[0-9]{1,18}$'
        then ${event} substr(a.target, 7)::bigint) end, a.target) as target,
      a.reason, a.actor, a.database_role, a.acted_at
    from ${s}operator_acts a where $1::text is null or a.act_id < $1::text::bigint`
  const bodies = `select r.read_id, r.read_id::text as position, case when r.evidence_id is null then 'read_payload' else 'read_evidence' end as act,
      'event:' || r.event_key as raw_target, coalesce(${event} r.event_key), 'event:' || r.event_key) as target,
      r.reason, r.actor, r.database_role, r.read_at as acted_at
    from ${s}payload_reads r where $2::text is null or r.read_id < $2::text::bigint`
  const requests = `select r.read_id, r.read_id::text as position, 'read_operation' as act, 'operation:' || r.operation_id as raw_target,
      'operation:' || r.operation_id as target, r.reason, r.actor, r.database_role, r.read_at as acted_at
    from ${s}operation_reads r where $3::text is null or r.read_id < $3::text::bigint`
  const repairs = `select r.applied_at, r.applied_at::text as position, 'repair' as act, 'finding:' || r.finding_id as raw_target,
      'finding:' || r.finding_id as target, r.reason, r.actor, r.database_role, r.applied_at as acted_at
    from ${s}repairs r where $4::text is null or r.applied_at < $4::text::timestamptz`
  return `select * from (${[
    stream(0, acts, 'act_id'),
    stream(1, bodies, 'read_id'),
    stream(2, requests, 'read_id'),
    stream(3, repairs, 'applied_at'),
  ].join('\n union all ')}) u order by merged_at desc, stream, place limit $10`
}
