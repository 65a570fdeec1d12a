/**
 * Whether what a preview says is known here already, so that it need not be put into the inbox: the event is
 * there under its id, the same contradiction is recorded, or an event of the same type waits for the same.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import { toJson } from '../core/json.ts'
import { storable } from '../postgres/storable-text.ts'
import type { OrderLedger } from '../workflow/order.ts'
import type { Outcome } from '../workflow/outcome.ts'
import { isLookKnown, knowsRecord, settlingLooks, stillLooks } from './known-looks.ts'
import type { Previewed } from './previewed.ts'
import { backlogSql, wokenFor, type OrderAndType } from './waiting-events.ts'

/** Where to look. */
export interface KnownContext {
  readonly db: Database
  readonly tx: Executor
  readonly sourceId: number
  readonly sourceText: string
  readonly findingId: (kind: string, source: string, about: string) => string
}

/** What is known of a previewed event. */
export interface KnownOutcome {
  readonly eventKey: bigint | null
  readonly isKnown: boolean
  /** It, or older ones of its type, are in the inbox and not decided yet: what it comes to cannot be told now. */
  readonly isPending: boolean
  /** So, since others of its type or order wait: whatever it says is not in the inbox by itself. */
  readonly isHeldUp: boolean
  /** Of a look that leaves the order as it is: whether a finding would be made or closed. */
  readonly hasNews: boolean
}

/** Of what nothing is known. */
export const nothingKnown: KnownOutcome = Object.freeze({
  eventKey: null,
  isKnown: false,
  isPending: false,
  isHeldUp: false,
  hasNews: false,
})

type Asked = Omit<Previewed, 'event'>

/** In the order in which they were asked. */
export async function knownOutcomes(
  context: KnownContext,
  asked: readonly Asked[],
  orders: ReadonlyMap<string, OrderLedger>,
): Promise<readonly KnownOutcome[]> {
  const keys = await eventKeys(context, asked)
  const contradictions = await knownContradictions(context, asked, orders)
  const waits = await knownWaits(context, asked)
  const failed = await typesIn(context, asked.filter(isFailure), failedSql)
  const pending = await typesIn(context, asked.filter(isChanging), backlogSql)
  const woken = await wokenFor(context, asked.filter(isChanging).map(claimOf))
  const wokenEvents = new Set([...woken].map(({ each }) => each))
  const undecided = await undecidedKeys(context, [...keys.values()])
  const refused = await contradictedKeys(context, [...keys.values()])
  const news = await lookNews(context, asked)
  return asked.map((each) => {
    const eventKey = keys.get(each.made.eventId) ?? null
    const { eventType } = each.made
    const isHeldUp = isChanging(each) && (pending.has(eventType) || wokenEvents.has(each))
    return {
      eventKey,
      isKnown:
        contradictions.has(each) ||
        waits.has(each) ||
        (isFailure(each) && failed.has(eventType)) ||
        isLookKnown(each) ||
        (each.needsFacts && knowsRecord(orders.get(each.orderId ?? ''), each.record)) ||
        (each.outcome?.kind === 'contradicted' && eventKey !== null && refused.has(eventKey)),
      isPending:
        (eventKey !== null && undecided.has(eventKey)) ||
        each.look?.knowledge.isWaiting === true ||
        isHeldUp,
      isHeldUp,
      hasNews: news.has(each),
    }
  })
}

/** Looks that leave their order as it is, and yet would make a finding that is not here, or end one that is open. */
async function lookNews(
  context: KnownContext,
  asked: readonly Asked[],
): Promise<ReadonlySet<Asked>> {
  const still = stillLooks(asked)
  const flagging = still.filter(({ outcome }) => (outcome?.findings.length ?? 0) > 0)
  const flagged = await sameFindings(context, flagging)
  const settling = await settlingLooks({ ...context, schema: context.db.schema }, still)
  return new Set([...flagging.filter((each) => !flagged.has(each)), ...settling])
}

function isFailure({ outcome, failure }: Asked): boolean {
  return outcome === null && failure !== null
}

function claimOf(each: Asked): OrderAndType & { readonly each: Asked } {
  return { each, orderId: each.orderId, eventType: each.made.eventType }
}

function isChanging({ outcome }: Asked): boolean {
  return (
    outcome !== null && ['fulfilled', 'moved', 'reversed', 'contradicted'].includes(outcome.kind)
  )
}

/** What throws here threw there: the event is tried again, or dead with a finding. */
const failedSql = (s: string): string => `
  select 1 from ${s}inbox_events e join (
    select event_key from ${s}inbox_dead union all select event_key from ${s}inbox_delayed
    union all select event_key from ${s}inbox_suspects) u on u.event_key = e.event_key
  where e.source_id = $1 and e.event_type = k.event_type`

/** The types of which such an event is in the inbox. */
async function typesIn(
  { db, tx, sourceId }: KnownContext,
  asked: readonly Asked[],
  sql: (schema: string) => string,
): Promise<ReadonlySet<string>> {
  if (asked.length === 0) return new Set()
  const rows = await tx.query<{ event_type: string }>({
    text: `select k.event_type from unnest($2::text[]) as k(event_type) where exists (${sql(db.schema)} offset 0)`,
    repeated: true,
    values: [sourceId, [...new Set(asked.map(({ made }) => made.eventType))]],
  })
  return new Set(rows.map((row) => row.event_type))
}

async function undecidedKeys(
  { db, tx }: KnownContext,
  keys: readonly bigint[],
): Promise<ReadonlySet<bigint>> {
  if (keys.length === 0) return new Set()
  const s = db.schema
  const rows = await tx.query<{ event_key: string }>({
    text: `select k.event_key::text as event_key from unnest($1::bigint[]) as k(event_key)
      where exists (select 1 from ${s}inbox_ready r where r.event_key = k.event_key offset 0)
        or exists (select 1 from ${s}inbox_delayed d where d.event_key = k.event_key offset 0)
        or exists (select 1 from ${s}inbox_suspects u where u.event_key = k.event_key offset 0)
        or exists (select 1 from ${s}inbox_gathers g where g.event_key = k.event_key and g.waiting offset 0)`,
    repeated: true,
    values: [keys.map(String)],
  })
  return new Set(rows.map((row) => BigInt(row.event_key)))
}

async function eventKeys(
  { db, tx, sourceId }: KnownContext,
  asked: readonly Asked[],
): Promise<ReadonlyMap<string, bigint>> {
  const rows = await tx.query<{ event_id: string; event_key: string }>({
    text: `select e.event_id, e.event_key::text as event_key from unnest($2::text[]) as k(id)
      cross join lateral (select i.event_id, i.event_key from ${db.schema}inbox_events i
        where i.source_id = $1 and i.event_id = k.id collate "C" offset 0) e`,
    repeated: true,
    values: [sourceId, [...new Set(asked.map(({ made }) => made.eventId))]],
  })
  return new Map(rows.map((row) => [row.event_id, BigInt(row.event_key)]))
}

/** Events that ended in a contradiction, whatever it said then. */
async function contradictedKeys(
  { db, tx }: KnownContext,
  keys: readonly bigint[],
): Promise<ReadonlySet<bigint>> {
  if (keys.length === 0) return new Set()
  const rows = await tx.query<{ event_key: string }>({
    text: `select k.event_key::text as event_key from unnest($1::bigint[]) as k(event_key)
      where exists (select 1 from ${db.schema}ledger_decisions d
        where d.event_key = k.event_key and d.final and d.kind = 'contradicted' offset 0)`,
    repeated: true,
    values: [keys.map(String)],
  })
  return new Set(rows.map((row) => BigInt(row.event_key)))
}

async function knownContradictions(
  context: KnownContext,
  asked: readonly Asked[],
  orders: ReadonlyMap<string, OrderLedger>,
): Promise<ReadonlySet<Asked>> {
  const known = new Set<Asked>()
  const open = asked.filter((each) => {
    const { outcome } = each
    if (outcome?.kind !== 'contradicted') return false
    if (!isPaymentKept(context, outcome, orders)) return true
    known.add(each)
    return false
  })
  if (open.length === 0) return known
  const decided = await sameDecisions(context, open)
  const found = await sameFindings(context, open)
  for (const each of open) if (decided.has(each) || found.has(each)) known.add(each)
  return known
}

/** The payment of a contradicted decision is kept, as not applied. */
function isPaymentKept(
  { sourceId }: KnownContext,
  outcome: Outcome,
  orders: ReadonlyMap<string, OrderLedger>,
): boolean {
  const payments = orders.get(outcome.orderId ?? '')?.payments ?? []
  return outcome.findings.some(({ figures }) =>
    payments.some(
      ({ id, sourceId: of, applied }) => of === sourceId && !applied && id === figures['payment'],
    ),
  )
}

async function sameDecisions(
  { db, tx }: KnownContext,
  asked: readonly Asked[],
): Promise<ReadonlySet<Asked>> {
  const withOrder = asked.filter(({ outcome }) => outcome?.orderId != null)
  if (withOrder.length === 0) return new Set()
  const rows = await tx.query<{ position: number }>({
    text: `select k.position::integer as position
      from unnest($1::text[], $2::text[]) with ordinality as k(order_id, reason, position)
      where exists (select 1 from ${db.schema}ledger_decisions d
        where d.order_id = k.order_id collate "C" and d.kind = 'contradicted' and d.reason = k.reason offset 0)`,
    repeated: true,
    values: [
      withOrder.map(({ outcome }) => outcome?.orderId ?? ''),
      withOrder.map(({ outcome }) => storable(outcome?.reason ?? '')),
    ],
  })
  return new Set(rows.flatMap(({ position }) => withOrder[position - 1] ?? []))
}

/** Findings about a payment have its id; those about an event are told by what they say. */
async function sameFindings(
  { db, tx, sourceText, findingId }: KnownContext,
  asked: readonly Asked[],
): Promise<ReadonlySet<Asked>> {
  const drafts = asked.flatMap((each) =>
    (each.outcome?.findings ?? []).map((draft) => ({ each, draft })),
  )
  if (drafts.length === 0) return new Set()
  const rows = await tx.query<{ position: number }>({
    text: `select k.position::integer as position
      from unnest($1::uuid[], $2::text[], $3::text[]) with ordinality as k(id, kind, evidence, position)
      where exists (select 1 from ${db.schema}findings f where f.finding_id = k.id
          and f.state <> 'closed' and f.evidence = k.evidence::jsonb offset 0)
        or exists (select 1 from ${db.schema}findings f where f.kind = k.kind collate "C"
          and f.state in ('open', 'repairing') and f.evidence = k.evidence::jsonb offset 0)
        or exists (select 1 from ${db.schema}findings f where f.kind = k.kind collate "C"
          and f.state = 'dismissed' and f.evidence = k.evidence::jsonb offset 0)`,
    repeated: true,
    values: [
      drafts.map(({ draft }) => findingId(draft.kind, sourceText, draft.about)),
      drafts.map(({ draft }) => draft.kind),
      drafts.map(({ draft }) => storable(toJson(draft.figures))),
    ],
  })
  return new Set(rows.flatMap(({ position }) => drafts[position - 1]?.each ?? []))
}

async function knownWaits(
  { db, tx, sourceId }: KnownContext,
  asked: readonly Asked[],
): Promise<ReadonlySet<Asked>> {
  const waits = asked.flatMap((each) => {
    const { outcome } = each
    if (outcome?.kind !== 'deferred' || outcome.wait === null) return []
    const names = outcome.wait.names.map(({ kind, value }) => ({ each, kind, sourceId, value }))
    names.push(
      ...(outcome.wait.customers ?? []).map((value) => ({
        each,
        kind: 'customer',
        sourceId,
        value,
      })),
    )
    const { orderId } = outcome.wait
    return orderId === null
      ? names
      : [...names, { each, kind: 'order', sourceId: 0, value: orderId }]
  })
  if (waits.length === 0) return new Set()
  const rows = await tx.query<{ position: number }>({
    text: `select k.position::integer as position
      from unnest($1::text[], $2::integer[], $3::text[], $4::text[]) with ordinality
        as k(kind, source_id, name, event_type, position)
      where exists (
        select 1 from ${db.schema}inbox_waits w
        cross join lateral (select i.event_type from ${db.schema}inbox_events i where i.event_key = w.event_key offset 0) e
        where w.kind = k.kind collate "C" and w.source_id = k.source_id and w.name = k.name collate "C"
          and e.event_type = k.event_type offset 0)`,
    repeated: true,
    values: [
      waits.map(({ kind }) => kind),
      waits.map((wait) => wait.sourceId),
      waits.map(({ value }) => value),
      waits.map(({ each }) => each.made.eventType),
    ],
  })
  return new Set(rows.flatMap(({ position }) => waits[position - 1]?.each ?? []))
}
