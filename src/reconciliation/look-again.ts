/**
 * Lists are cut by when records were made, so that an old object that changes is on none of them. Whatever a
 * mirror follows is looked at again once it was not for long: a few a pass, those first that waited longest.
 * The same is asked for once only, whoever else does it at the same moment, and however often.
 */
import type { Executor } from '../postgres/executor.ts'
import { keyedPlans } from '../postgres/keyed-plans.ts'
import type { Name } from '../workflow/order.ts'
import type { MadeEvent, ProviderRecord, RecordReference } from '../workflow/records.ts'
import { injectEvents, type InjectedEvent } from './inject.ts'
import type { PassContext, SourceRun } from './pass-context.ts'
import { requireStorable } from './storable-event.ts'
import type { Injections } from './walk-events.ts'

/** So many objects are looked at again in one pass over a source. */
const mostLooks = 100

interface Stale {
  readonly orderId: string
  readonly sourceId: number
  readonly account: string
  readonly object: Name
  readonly evidenceId: string | null
  /** Its order is in a state that nothing follows, or somebody waits for an answer already. */
  readonly isPassedOver: boolean
}

/** The statement that finds them, exported so that its plan can be asserted. */
export function staleStatement(s: string): string {
  return `select l.order_id, l.source_id, l.kind, l.object_id, l.evidence_id,
      exists (select 1 from unnest($3::text[], $4::text[]) as e(workflow, state)
        where e.workflow = o.workflow and e.state = o.state) or o.order_id is null
        or exists (select 1 from ${s}inbox_gathers g where g.order_id = l.order_id and g.source_id = l.source_id
          and g.kind = l.kind and g.object_id = l.object_id and g.waiting offset 0) as passed_over
    from (select * from ${s}looked_at l
      where l.kind <> 'event' and l.source_id = any ($1::integer[])
        and greatest(l.answered_at, l.checked_at) < now() - $2::bigint * interval '1 millisecond'
      order by greatest(l.answered_at, l.checked_at) limit ${mostLooks}) l
    left join lateral (select o.order_id, o.workflow, o.state from ${s}orders o where o.order_id = l.order_id offset 0) o on true`
}

/** Puts the looks in that are due, in one transaction; answers how many. `ids`: account → its number. */
export async function lookAgain(
  context: PassContext,
  run: SourceRun,
  ids: ReadonlyMap<string, number>,
  injections: Injections,
): Promise<number> {
  const stale = await findStale(context, ids)
  if (stale.length === 0) return 0
  const events: InjectedEvent[] = []
  for (const each of stale) {
    const event = each.isPassedOver ? null : await lookOf(context, run, each)
    if (event !== null) events.push({ sourceId: each.sourceId, event })
  }
  const { db, lockTimeoutMs } = context
  const stored = await db.transaction(
    async (tx) => {
      await check(tx, db.schema, stale)
      const made = await injectEvents(tx, db.schema, events, 'reconciliation')
      injections.written(made)
      return made
    },
    { setup: `set local lock_timeout = ${lockTimeoutMs}; ${keyedPlans}` },
  )
  injections.committed(stored, 0)
  return stored.length
}

interface StaleRow {
  readonly order_id: string
  readonly source_id: number
  readonly kind: string
  readonly object_id: string
  readonly evidence_id: string | null
  readonly passed_over: boolean
}

async function findStale(
  { db, settings, endings }: PassContext,
  ids: ReadonlyMap<string, number>,
): Promise<readonly Stale[]> {
  const accounts = new Map([...ids].map(([account, id]) => [id, account]))
  const read = {
    text: staleStatement(db.schema),
    values: [
      [...accounts.keys()],
      settings.relookMs,
      endings.map(({ workflow }) => workflow),
      endings.map(({ state }) => state),
    ],
  }
  const rows = await db.transaction((tx) => tx.query<StaleRow>(read), { setup: keyedPlans })
  return rows.map((row) => ({
    orderId: row.order_id,
    sourceId: row.source_id,
    account: accounts.get(row.source_id) ?? '',
    object: { kind: row.kind, value: row.object_id },
    evidenceId: row.evidence_id,
    isPassedOver: row.passed_over,
  }))
}

/** What was gone through comes last from now on; what somebody has in hand is for the next pass. */
async function check(tx: Executor, s: string, stale: readonly Stale[]): Promise<void> {
  await tx.query({
    text: `update ${s}looked_at set checked_at = now() where (order_id, source_id, kind, object_id) in (
        select l.order_id, l.source_id, l.kind, l.object_id
        from unnest($1::text[], $2::integer[], $3::text[], $4::text[]) as k(order_id, source_id, kind, object_id)
        join ${s}looked_at l on l.order_id = k.order_id collate "C" and l.source_id = k.source_id
          and l.kind = k.kind collate "C" and l.object_id = k.object_id collate "C"
        order by l.order_id, l.source_id, l.kind, l.object_id for update of l skip locked)`,
    values: [
      stale.map(({ orderId }) => orderId),
      stale.map(({ sourceId }) => sourceId),
      stale.map(({ object }) => object.kind),
      stale.map(({ object }) => object.value),
    ],
  })
}

/** The event of a look, made of the last answer, else of the record as it is; null where nobody mirrors it now. */
async function lookOf(
  context: PassContext,
  run: SourceRun,
  stale: Stale,
): Promise<MadeEvent | null> {
  const reference = referenceTo(run, stale)
  const last = await lastAnswer(context, stale)
  if (last === 'gone') return null
  const made =
    last === null
      ? null
      : await previewed(context, run, stale, {
          ...reference,
          createdAt: run.now,
          object: last,
        })
  if (made !== null) return made
  const isListed = run.source.source.records.kinds.some(({ kind }) => kind === reference.kind)
  const record = isListed ? await run.asker.fetch(reference) : null
  return record === null ? null : previewed(context, run, stale, record)
}

function referenceTo({ source }: SourceRun, { object, account }: Stale): RecordReference {
  return (
    source.source.records.namedBy(object, account) ?? {
      kind: object.kind,
      id: object.value,
      account,
    }
  )
}

async function lastAnswer(
  { db, parse }: PassContext,
  { evidenceId }: Stale,
): Promise<Readonly<Record<string, unknown>> | 'gone' | null> {
  if (evidenceId === null) return null
  const [row] = await db.query<{ is_found: boolean; body: Uint8Array | null }>({
    text: `select is_found, body from ${db.schema}newest_answers(array[$1::bigint], 0)`,
    values: [evidenceId],
  })
  // what the provider knew no more it will not know again
  if (row?.is_found === false) return 'gone'
  if (row === undefined || row.body === null) return null
  const content = parse(row.body)
  const value = content.readable ? content.value['value'] : null
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)
    : null
}

/** The first event made of the record that a mirror of this order follows with this very object. */
async function previewed(
  { preview }: PassContext,
  { source }: SourceRun,
  { account, orderId, object }: Stale,
  record: ProviderRecord,
): Promise<MadeEvent | null> {
  const events = eventsOf(source.source.records, record)
  const [outcomes = []] = await preview.previewEach(source, account, [events], [record])
  const found = outcomes.find(
    (each) =>
      each.orderId === orderId &&
      each.eventKey === null &&
      !each.isPending &&
      each.look?.object.kind === object.kind &&
      each.look.object.value === object.value,
  )
  if (found === undefined) return null
  requireStorable(found.made)
  return found.made
}

/** What an app makes of a record of its own sender may throw about one that is no longer as it was. */
function eventsOf(
  records: SourceRun['source']['source']['records'],
  record: ProviderRecord,
): readonly MadeEvent[] {
  try {
    return records.eventsOf(record)
  } catch {
    return []
  }
}
