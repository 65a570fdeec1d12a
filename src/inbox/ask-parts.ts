/**
 * What a batch writes about looking at the provider, in its one statement: who asks leaves the ready list
 * and waits for a request that is numbered from now on; what was decided from an answer says so. Numbers
 * are compared under the locks of what is looked at, so that no request under way counts as one to come.
 */
import { backoffMs } from '../core/backoff.ts'
import type { Limits } from '../core/limits.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import { gatheredEvent } from '../workflow/gathering.ts'
import { isFinal } from '../workflow/outcome.ts'
import type { Claim } from '../workflow/resolve-event.ts'
import { looks, lookKey, mostTries, type Look, type LookedAt } from './answers.ts'
import type { ClaimedRow } from './claim.ts'
import type { Retried, Settled } from './outcome-parts.ts'

/** An event that waits for an answer from now on. */
export interface Asking {
  readonly row: ClaimedRow
  readonly claim: Claim
  readonly look: Look
}

/** What events of a batch wait for, and what was looked at for those that were decided. */
export interface AskWrites {
  readonly asking: readonly Asking[]
  readonly settled: readonly Settled[]
  readonly retried: readonly Retried[]
  /** By the event's key. */
  readonly looks: ReadonlyMap<bigint, Look>
}

/** Asks of a fold, parted: most ask again, and a gathering whose order moves again and again backs off. */
export function partAsks(
  asks: readonly Claim[],
  rowOf: (claim: Claim) => ClaimedRow | undefined,
  looked: ReadonlyMap<bigint, Look>,
  limits: Pick<Limits, 'firstRetryMs' | 'maxRetryMs'>,
): { readonly asking: readonly Asking[]; readonly retried: readonly Retried[] } {
  const asking: Asking[] = []
  const retried: Retried[] = []
  for (const claim of asks) {
    const row = rowOf(claim)
    const look = looked.get(claim.event.key)
    if (row === undefined || look === undefined) continue
    const isMirror = claim.candidate.handler.mirror !== undefined
    if (isMirror || (look.asked?.tries ?? 0) < mostTries) asking.push({ row, claim, look })
    else {
      const error = `what was gathered grew old ${mostTries + 1} times before it could be decided from: order ${claim.orderId} changes faster than the provider answers`
      const options = { firstMs: limits.firstRetryMs, maxMs: limits.maxRetryMs }
      retried.push({ row, delayMs: backoffMs(row.attempts + 1, Math.random(), options), error })
    }
  }
  return { asking, retried }
}

/** The parts; none where nothing was looked at. */
export function askParts(s: string, writes: AskWrites): WritePart[] {
  const { asking, looks: looked } = writes
  if (looked.size === 0) return []
  const parts: WritePart[] = []
  const fresh = distinct(asking).filter(({ look }) => !look.known)
  if (fresh.length > 0) parts.push(lookedAtPart(s, fresh))
  if (asking.length > 0) parts.push(waitingPart(s, asking), fetchesPart(s, distinct(asking)))
  return [...parts, ...doneParts(s, writes)]
}

const columns = ':1::text[], :2::integer[], :3::text[], :4::text[]'
const keyColumns = 'order_id, source_id, kind, object_id'

function keyValues(rows: readonly LookedAt[]): WritePart['values'] {
  return [
    rows.map((each) => each.orderId),
    rows.map((each) => each.sourceId),
    rows.map((each) => each.kind),
    rows.map((each) => each.objectId),
  ]
}

/** The number to go on from, of something that is looked at again after it was forgotten. */
function lastNumber(s: string): string {
  return `case when n.known then 0 else coalesce((select max(e.number) from ${s}evidence e where e.order_id = n.order_id
        and e.source_id = n.source_id and e.kind = n.kind and e.object_id = n.object_id), 0) end`
}

/** One of each object, the first event that asks for it. */
function distinct(asking: readonly Asking[]): Asking[] {
  const first = new Map<string, Asking>()
  for (const each of asking) {
    const key = lookKey(each.look)
    if (!first.has(key)) first.set(key, each)
  }
  return [...first.values()]
}

/**
 * What is looked at for the first time. The order's lock is held, so that nobody else inserts the same. A
 * gathering that is done anew goes on with the numbers of the one before it.
 */
function lookedAtPart(s: string, rows: readonly Asking[]): WritePart {
  return {
    name: 'looked',
    sql: `looked as (
      insert into ${s}looked_at (${keyColumns}, workflow, sent, answered)
      select n.order_id, n.source_id, n.kind, n.object_id, n.workflow, last, last
      from unnest(${columns}, :5::text[], :6::boolean[]) as n(${keyColumns}, workflow, known)
      cross join lateral (select ${lastNumber(s)} as last) l
      order by n.order_id, n.source_id, n.kind, n.object_id returning 1)`,
    values: [
      ...keyValues(rows.map(({ look }) => look)),
      rows.map(({ claim }) => claim.candidate.workflow.name),
      rows.map(({ look }) => look.known),
    ],
    expected: rows.length,
  }
}

/** Off every other list until a request with a number that nobody has had yet is answered. */
function waitingPart(s: string, asking: readonly Asking[]): WritePart {
  return {
    name: 'asked',
    sql: `asked as (
      insert into ${s}inbox_gathers (event_key, received_on, ${keyColumns}, wanted, waiting, tries, attempts, deadline_at, waits_for, overdue)
      select event_key, received_on, ${keyColumns}, wanted + ${lastNumber(s)}, true, tries, attempts, deadline_at, waits_for, overdue
      from unnest(${columns}, :5::bigint[], :6::date[], :7::bigint[], :8::smallint[], :9::smallint[], :10::timestamptz[], :11::text[], :12::boolean[], :13::boolean[])
        as n(${keyColumns}, event_key, received_on, wanted, tries, attempts, deadline_at, waits_for, overdue, known)
      order by event_key
      on conflict (event_key) do update set order_id = excluded.order_id, source_id = excluded.source_id, kind = excluded.kind,
        object_id = excluded.object_id, wanted = excluded.wanted, waiting = true, tries = excluded.tries,
        attempts = excluded.attempts, deadline_at = excluded.deadline_at, waits_for = excluded.waits_for, overdue = excluded.overdue
      returning 1)`,
    values: [
      ...keyValues(asking.map(({ look }) => look)),
      asking.map(({ row }) => row.key.toString()),
      asking.map(({ row }) => row.receivedOn),
      asking.map(({ look }) => (look.sent + 1n).toString()),
      asking.map(({ look }) => (look.asked === null ? 0 : look.asked.tries + 1)),
      asking.map(({ row }) => row.attempts),
      asking.map(({ row }) => row.deadlineAt?.toISOString() ?? null),
      asking.map(({ row }) => row.waitsFor),
      asking.map(({ row }) => row.overdue),
      asking.map(({ look }) => look.known),
    ],
    expected: asking.length,
  }
}

/** The request itself: one that is there already is joined, however long it is still to be backed off. */
function fetchesPart(s: string, rows: readonly Asking[]): WritePart {
  return {
    name: 'fetches_due',
    sql: `fetches_due as (
      insert into ${s}fetches as f (${keyColumns}, workflow, event_type, event_key, wanted)
      select ${keyColumns}, workflow, event_type, event_key, wanted + ${lastNumber(s)}
      from unnest(${columns}, :5::text[], :6::text[], :7::bigint[], :8::bigint[], :9::boolean[])
        as n(${keyColumns}, workflow, event_type, event_key, wanted, known)
      order by ${keyColumns}
      on conflict (${keyColumns}) do update set wanted = greatest(f.wanted, excluded.wanted), workflow = excluded.workflow,
        event_type = excluded.event_type, event_key = excluded.event_key
      returning 1)`,
    values: [
      ...keyValues(rows.map(({ look }) => look)),
      rows.map(({ claim }) => claim.candidate.workflow.name),
      rows.map(({ claim }) => claim.event.eventType),
      rows.map(({ row }) => row.key.toString()),
      rows.map(({ look }) => (look.sent + 1n).toString()),
      rows.map(({ look }) => look.known),
    ],
    expected: rows.length,
  }
}

/** An event that ends without having been looked at again waits for no answer. */
export function notGathered(s: string, keys: readonly string[]): WritePart {
  return {
    name: 'not_gathered',
    sql: `not_gathered as (delete from ${s}inbox_gathers where event_key = any (:1::bigint[]) returning 1)`,
    values: [keys],
  }
}

/** Of what was decided: it waits no longer, and the number that it was decided from is the newest. */
function doneParts(s: string, { settled, retried, looks: looked }: AskWrites): WritePart[] {
  const parts: WritePart[] = []
  // what grew old too often starts anew when it comes back
  const worn = retried.filter(({ row }) => (looked.get(row.key)?.asked?.tries ?? 0) >= mostTries)
  const ended = [...settled, ...worn].flatMap(({ row: { key } }) =>
    looked.get(key)?.asked == null ? [] : [key],
  )
  if (ended.length > 0) {
    parts.push({
      name: 'gathers_done',
      sql: `gathers_done as (delete from ${s}inbox_gathers where event_key = any (:1::bigint[]) returning 1)`,
      values: [ended.map(String)],
      expected: ended.length,
    })
  }
  const applied = appliedOf(settled, looked)
  if (applied.length > 0) {
    parts.push({
      name: 'looks_applied',
      sql: `looks_applied as (
        update ${s}looked_at l set applied = n.number, applied_by = n.decision_id
        from unnest(${columns}, :5::bigint[], :6::bigint[]) as n(${keyColumns}, number, decision_id)
        where l.order_id = n.order_id and l.source_id = n.source_id and l.kind = n.kind and l.object_id = n.object_id
        returning 1)`,
      values: [
        ...keyValues(applied.map(({ look }) => look)),
        applied.map(({ look }) => look.answered.toString()),
        applied.map(({ decisionId }) => decisionId.toString()),
      ],
      expected: applied.length,
    })
  }
  const gathered = settled.flatMap(({ row, outcome }) => {
    const look = looked.get(row.key)
    return look?.kind === gatheredEvent && look.known && isFinal(outcome.kind) ? [look] : []
  })
  if (gathered.length > 0) {
    parts.push({
      name: 'looks_done',
      sql: `looks_done as (
        delete from ${s}looked_at l using unnest(${columns}) as n(${keyColumns})
        where l.order_id = n.order_id and l.source_id = n.source_id and l.kind = n.kind and l.object_id = n.object_id
        returning 1)`,
      values: keyValues(gathered),
      expected: gathered.length,
    })
  }
  return parts
}

/** The first decision made from each object's newest answer, where none was made from it before. */
function appliedOf(
  settled: readonly Settled[],
  looked: ReadonlyMap<bigint, Look>,
): { readonly look: Look; readonly decisionId: bigint }[] {
  const applied = new Map<string, { readonly look: Look; readonly decisionId: bigint }>()
  for (const { row, outcome } of settled) {
    const look = looked.get(row.key)
    if (look === undefined || look.kind === gatheredEvent || look.answered <= look.applied) continue
    // a contradiction of accounts or workflows looks at nothing, and what waits will look again
    if (outcome.evidence['fetch'] === undefined || !isFinal(outcome.kind)) continue
    const before = applied.get(lookKey(look))
    if (before === undefined || outcome.decisionId < before.decisionId)
      applied.set(lookKey(look), { look, decisionId: outcome.decisionId })
  }
  return [...applied.values()]
}

/** Whether any claim of a batch looks at its provider: only then is anything of this read or written. */
export function anyLooks(claims: readonly Claim[]): boolean {
  return claims.some(looks)
}
