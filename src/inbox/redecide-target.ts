/**
 * What is to be decided anew: an event with its final decision, and the last word about it, which may be
 * a decision that superseded that one. Only what changed nothing can be decided anew.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import type { InboxEvent } from '../workflow/event.ts'
import { findReplayable, type RecordedDecision } from './replay-lookup.ts'
import { eventOf, type EventReading, type StoredEvent } from './read-claimed.ts'
import { ownSource } from './own-event.ts'
import type { ReplayReason } from './replay.ts'

/** An event that can be decided anew. */
export interface RedecisionTarget {
  readonly kind: 'target'
  readonly event: InboxEvent
  /** `provider:account`. */
  readonly source: string
  /** The last word about it, which the new decision stands in the place of. */
  readonly supersedes: LastWord
}

/** A decision that changed nothing, and what it said of its event. */
export interface LastWord {
  readonly decision: RecordedDecision
  readonly kind: string
  readonly reason: string
}

/** It was decided anew already, and that changed something (or did what there was to do). */
export interface AlreadyRedecided {
  readonly kind: 'recorded'
  readonly eventKey: string
  readonly decision: RecordedDecision
}

/** The id under which the event of a new decision is stored: one for each decision that it supersedes. */
export function redecisionId(decisionId: string): string {
  return `redecide:${decisionId}`
}

/** Kinds that changed nothing of their order. */
const changedNothing: ReadonlySet<string> = new Set(['skipped', 'contradicted'])

/**
 * Finds an event and the last word about it.
 *
 * @throws HookledgerError HKL_INBOX_EVENT_UNKNOWN, or HKL_INBOX_NOT_REPLAYABLE when it has no final
 * decision, or one that changed something
 */
export async function findLastWord(
  db: Database,
  event: { readonly id: string; readonly source?: string | undefined },
): Promise<
  AlreadyRedecided | { readonly kind: 'last'; readonly eventKey: string; readonly word: LastWord }
> {
  const { event_key: eventKey, decision } = await findReplayable(db, event.id, event.source)
  if (decision === null) {
    throw new HookledgerError(
      'HKL_INBOX_NOT_REPLAYABLE',
      `${event.id} has no final decision yet: replay it without --redecide`,
    )
  }
  if (!changedNothing.has(decision.kind)) {
    throw new HookledgerError(
      'HKL_INBOX_NOT_REPLAYABLE',
      `${event.id} was ${decision.kind} (decision ${decision.decision_id}): only what was skipped or contradicted is decided anew, since anything else would be done twice`,
    )
  }
  let word: LastWord = { decision, kind: decision.kind, reason: decision.reason }
  for (;;) {
    const next = await supersedingOf(db, word.decision.decision_id)
    if (next === null) return { kind: 'last', eventKey, word }
    if (!changedNothing.has(next.kind))
      return { kind: 'recorded', eventKey, decision: next.decision }
    word = next
  }
}

/** The decision that superseded this one, found by the id of its event. */
export async function supersedingOf(db: Database, decisionId: string): Promise<LastWord | null> {
  const s = db.schema
  const [row] = await db.query<
    RecordedDecision & { readonly said: string | null; readonly because: string | null }
  >({
    text: `select d.decision_id, d.kind, d.order_id, d.from_state, d.to_state, d.reason, d.decided_at,
        d.evidence -> 'redecided' ->> 'as' as said, d.evidence -> 'redecided' ->> 'because' as because
      from ${s}sources n
      join ${s}inbox_events e on e.source_id = n.source_id and e.event_id = $2
      join ${s}ledger_decisions d on d.event_key = e.event_key and d.final
      where n.provider = $1 and n.provider_account = $1`,
    values: [ownSource, redecisionId(decisionId)],
  })
  if (row === undefined) return null
  const { said, because, ...decision } = row
  return { decision, kind: said ?? decision.kind, reason: because ?? decision.reason }
}

/**
 * The event with its body, whose reading is recorded.
 *
 * @throws HookledgerError HKL_INBOX_PAYLOAD_EXPIRED
 */
export async function readEventAgain(
  db: Database,
  eventKey: string,
  reading: EventReading,
  by: ReplayReason,
): Promise<{ readonly event: InboxEvent; readonly source: string }> {
  const s = db.schema
  const [row] = await db.query<EventAgain>({
    text: `select e.source_id, n.provider, n.provider_account as account, n.environment, e.event_id, e.event_type, e.via,
        floor(extract(epoch from e.received_at) * 1000)::bigint::text as received_ms,
        floor(extract(epoch from e.occurred_at) * 1000)::bigint::text as occurred_ms,
        ${s}redecidable_payload(e.event_key, $2, $3) as body
      from ${s}inbox_events e join ${s}sources n on n.source_id = e.source_id where e.event_key = $1::bigint`,
    values: [eventKey, by.reason, by.actor],
  })
  if (row === undefined || row.body === null) {
    throw new HookledgerError(
      'HKL_INBOX_PAYLOAD_EXPIRED',
      `payload expired: the body of event ${row?.event_id ?? eventKey} is no longer kept, so that it cannot be decided anew; see "hookledger repair"`,
    )
  }
  const source = reading.sources.identify(row)
  const event = eventOf(BigInt(eventKey), row, source, reading.parse(row.body))
  return { event, source: `${row.provider}:${row.account}` }
}

interface EventAgain extends StoredEvent {
  readonly provider: string
  readonly account: string
  readonly environment: string
  readonly body: Uint8Array | null
}

/** Findings about an event, by their ids where it has no order. */
export async function findingsOfEvent(
  tx: Executor,
  schema: string,
  about: {
    readonly ids: readonly string[]
    readonly orderId: string | null
    readonly eventKey: bigint
  },
): Promise<
  readonly { readonly id: string; readonly isOpen: boolean; readonly isRepaired: boolean }[]
> {
  const rows = await tx.query<{ finding_id: string; is_open: boolean; is_repaired: boolean }>({
    text: `select f.finding_id::text as finding_id, f.state in ('open', 'repairing') as is_open,
        exists (select 1 from ${schema}repairs r where r.finding_id = f.finding_id) as is_repaired
      from ${schema}findings f
      where f.finding_id = any ($1::uuid[]) or (f.order_id = $2 and f.event_key = $3::bigint)
      order by f.finding_id`,
    values: [about.ids, about.orderId, about.eventKey.toString()],
  })
  return rows.map((row) => ({
    id: row.finding_id,
    isOpen: row.is_open,
    isRepaired: row.is_repaired,
  }))
}
