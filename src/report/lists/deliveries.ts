/**
 * Every request that was let in, the newest first. They are numbered as they come and have no index by that
 * number that a write would pay for: a page is looked for in a bounded stretch of numbers, and says where it
 * stopped.
 */
import type { Database } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { requiredTime, type IsoTime } from '../row-values.ts'
import { keyAt } from './key-at.ts'
import { cursorForms, readCursor, writeCursor, type Page, type PageRequest } from './keyset.ts'

/** A request that was let in. */
export interface ListedDelivery {
  readonly delivery_id: string
  readonly source: string
  readonly event_id: string
  readonly event_type: string | null
  /** `duplicate`: it brought what was known already, and changed nothing. */
  readonly verdict: 'new' | 'duplicate'
  readonly body_sha256: string
  readonly received_at: IsoTime
}

/** Which of them. */
export interface DeliveryFilter extends PageRequest {
  readonly verdict?: 'new' | 'duplicate' | undefined
  readonly source?: string | undefined
  readonly from?: string | undefined
  readonly to?: string | undefined
}

/** The first stretch of numbers, and how far a page looks at most. */
const firstStretch = 1000
const mostLooked = 200_000

/** A page; where it is short and has a `next`, the filter fits little of what was looked through. */
export async function listDeliveries(
  db: Database,
  filter: DeliveryFilter,
): Promise<Page<ListedDelivery>> {
  const cursor = readCursor(filter.cursor, [cursorForms.number])
  const numbered = { table: `${db.schema}deliveries`, key: 'delivery_id' }
  let before =
    cursor?.[0] === undefined
      ? ((await keyAt(db, numbered, 'last', filter.to ?? null)) ?? 0n) + 1n
      : BigInt(cursor[0])
  const first = filter.from === undefined ? 0n : await keyAt(db, numbered, 'first', filter.from)
  if (first === null) return { items: [], next: null }
  const rows: DeliveryRow[] = []
  let looked = 0n
  for (let stretch = BigInt(firstStretch); before > first; stretch *= 4n) {
    const from = before - stretch < first ? first : before - stretch
    rows.push(...(await readStretch(db, filter, { from, before }, filter.limit + 1 - rows.length)))
    looked += before - from
    before = from
    if (rows.length > filter.limit || looked >= BigInt(mostLooked)) break
  }
  const shown = rows.slice(0, filter.limit)
  const items = shown.map((row) => ({ ...row, received_at: requiredTime(row.received_at) }))
  const last = rows.length > filter.limit ? shown.at(-1)?.delivery_id : undefined
  if (last !== undefined) return { items, next: writeCursor([last]) }
  const isEnd = before <= first || !(await isAnyBefore(db, before))
  return { items, next: isEnd ? null : writeCursor([before.toString()]) }
}

/** Whether there is anything before a number: what is old enough is gone. */
async function isAnyBefore(db: Database, number: bigint): Promise<boolean> {
  const rows = await db.query({
    text: `select 1 from ${db.schema}deliveries where delivery_id < $1::bigint limit 1`,
    values: [number.toString()],
  })
  return rows.length > 0
}

type DeliveryRow = Omit<ListedDelivery, 'received_at'> & { readonly received_at: Date | string }

/** The statement that reads a stretch, exported so that its plan can be asserted. */
export function stretchStatement(s: string): string {
  return `select * from (
      select d.delivery_id, concat_ws(':', n.provider, n.provider_account, n.environment) as source, d.event_id, e.event_type,
        case when exists (select 1 from ${s}deliveries b where b.source_id = d.source_id and b.event_id = d.event_id
          and b.delivery_id < d.delivery_id) then 'duplicate' else 'new' end as verdict,
        encode(d.body_sha256, 'hex') as body_sha256, d.received_at
      from ${s}deliveries d join ${s}sources n on n.source_id = d.source_id
      left join ${s}inbox_events e on e.source_id = d.source_id and e.event_id = d.event_id
      where d.delivery_id >= $1::bigint and d.delivery_id < $2::bigint
        and ($4::text is null or n.provider = $4 or concat_ws(':', n.provider, n.provider_account, n.environment) = $4)
        and ($5::timestamptz is null or d.received_at >= $5::timestamptz)
        and ($6::timestamptz is null or d.received_at < $6::timestamptz)) c
    where $7::text is null or verdict = $7
    order by delivery_id desc limit $3`
}

function readStretch(
  db: Database,
  filter: DeliveryFilter,
  { from, before }: { readonly from: bigint; readonly before: bigint },
  limit: number,
): Promise<DeliveryRow[]> {
  const values = [
    from.toString(),
    before.toString(),
    limit,
    filter.source ?? null,
    filter.from ?? null,
    filter.to ?? null,
    filter.verdict ?? null,
  ]
  return db.transaction(
    (tx) => tx.query<DeliveryRow>({ text: stretchStatement(db.schema), values }),
    // the index by number finds ranges of pages, which only a bitmap can tell
    { setup: `${keyedPlans}; set local enable_bitmapscan = on` },
  )
}
