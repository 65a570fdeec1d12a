/**
 * Replay: the same path again for what has no final decision. Deleting an event's row from the table
 * of its state is the token, so that a replay and a worker can never both have it; an event with a
 * final decision answers with it and nothing changes. Every event put back is recorded as an act.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { findReplayable, type RecordedDecision } from './replay-lookup.ts'

/** Why, and who: both are recorded. */
export interface ReplayReason {
  readonly reason: string
  readonly actor: string
}

/** A state from which an event can be put back. */
export type ReplayableState = 'dead' | 'ignored' | 'deferred' | 'delayed'

/** What a replay of one event came to. */
export type ReplayAnswer =
  | { readonly outcome: 'replayed'; readonly event_key: string; readonly from: ReplayableState }
  /** It has its final decision: that is the answer. */
  | {
      readonly outcome: 'recorded'
      readonly event_key: string
      readonly decision: RecordedDecision
    }
  /** It is on the ready list, or in a worker's hands, already. */
  | { readonly outcome: 'pending'; readonly event_key: string }

/** The tables that hold what can be replayed, in the order in which a replay looks at them. */
export const replayableTables: Readonly<Record<ReplayableState, string>> = {
  dead: 'inbox_dead',
  ignored: 'inbox_ignored',
  deferred: 'inbox_deferred',
  delayed: 'inbox_delayed',
}

/**
 * Replays one event. `source` (`provider:account`) tells events of one id apart.
 *
 * @throws HookledgerError HKL_INBOX_EVENT_UNKNOWN, HKL_INBOX_PAYLOAD_EXPIRED when its body is gone,
 * HKL_INBOX_NOT_REPLAYABLE when several sources have an event of this id.
 */
export async function replayEvent(
  db: Database,
  event: { readonly id: string; readonly source?: string | undefined },
  by: ReplayReason,
): Promise<ReplayAnswer> {
  const found = await findReplayable(db, event.id, event.source)
  if (found.decision !== null)
    return { outcome: 'recorded', event_key: found.event_key, decision: found.decision }
  for (const from of Object.keys(replayableTables) as ReplayableState[]) {
    const { replayed, expired } = await replayKeys(db, from, [found.event_key], by)
    if (replayed.length > 0) return { outcome: 'replayed', event_key: found.event_key, from }
    if (expired > 0) {
      throw new HookledgerError(
        'HKL_INBOX_PAYLOAD_EXPIRED',
        `payload expired: the body of event ${event.id} is no longer kept, ask the provider to send it again`,
      )
    }
  }
  return { outcome: 'pending', event_key: found.event_key }
}

/** What became of some events of one state. */
export interface ReplayedKeys {
  /** Keys that are on the ready list now. */
  readonly replayed: readonly string[]
  /** Events whose body is gone; they stay as they are. */
  readonly expired: number
  /** Events in a worker's hands at this moment, or gone from this state meanwhile. */
  readonly busy: number
}

/** Puts events of one state back on the ready list, in one transaction with the record of the act. */
export async function replayKeys(
  db: Database,
  from: ReplayableState,
  keys: readonly string[],
  by: ReplayReason,
): Promise<ReplayedKeys> {
  return db.transaction(async (tx) => {
    const locked = await lockState(db, tx, from, keys)
    const kept = locked.filter((row) => row.has_body).map((row) => row.event_key)
    if (kept.length > 0) await moveToReady(db, tx, from, kept, by)
    return {
      replayed: kept,
      expired: locked.length - kept.length,
      busy: keys.length - locked.length,
    }
  })
}

/** Sorted, and never waiting: what a worker holds is in work already. */
async function lockState(
  db: Database,
  tx: Executor,
  from: ReplayableState,
  keys: readonly string[],
): Promise<{ event_key: string; has_body: boolean }[]> {
  const s = db.schema
  return tx.query({
    text: `with locked as materialized (
        select event_key, received_on from ${s}${replayableTables[from]} where event_key = any ($1::bigint[])
        order by event_key for update skip locked)
      select l.event_key,
        exists (select 1 from ${s}payloads p where p.event_key = l.event_key and p.received_on = l.received_on)
          or exists (select 1 from ${s}payloads_held h where h.event_key = l.event_key) as has_body
      from locked l order by l.event_key`,
    values: [keys],
  })
}

/**
 * Attempts start anew. A dead event keeps the mark that its finding is open, so that the decision that
 * ends it closes the finding; one that waits keeps its deadline: looking again must not prolong it.
 */
async function moveToReady(
  db: Database,
  tx: Executor,
  from: ReplayableState,
  keys: readonly string[],
  by: ReplayReason,
): Promise<void> {
  const s = db.schema
  const kept = from === 'deferred' || from === 'delayed'
  await tx.query({
    text: `with taken as (
        delete from ${s}${replayableTables[from]} where event_key = any ($1::bigint[])
        returning event_key, received_on, ${kept ? 'deadline_at, waits_for, overdue' : `null::timestamptz as deadline_at, null::text as waits_for, ${from === 'dead'} as overdue`}),
      unwaited as (delete from ${s}inbox_waits w using taken t where w.event_key = t.event_key),
      readied as (
        insert into ${s}inbox_ready (event_key, received_on, attempts, deadline_at, waits_for, overdue)
        select event_key, received_on, 0, deadline_at, waits_for, overdue from taken order by event_key
        on conflict (event_key) do nothing)
      insert into ${s}operator_acts (act, target, reason, actor, details)
      select 'replay', 'event:' || event_key, $2, $3, jsonb_build_object('from', $4::text) from taken order by event_key`,
    values: [keys, by.reason, by.actor, from],
  })
}
