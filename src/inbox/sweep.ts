/**
 * The upkeep of what is not finished. Every sweep is a few statements that any number of workers may
 * run at once: rows are taken with SKIP LOCKED, and deleting a row is the token.
 */
import type { Limits } from '../core/limits.ts'
import type { Database, Executor, Row, Statement } from '../postgres/executor.ts'
import type { Environment, InboxEvent } from '../workflow/event.ts'
import { finding } from '../workflow/finding-kinds.ts'
import { emptyOutcome } from '../workflow/outcome.ts'
import { keyedPlans } from '../postgres/keyed-plans.ts'
import { customerKind } from './customer-links.ts'
import { notGathered } from './ask-parts.ts'
import type { SourceLookup } from './read-claimed.ts'
import type { LedgerPort, SourceName } from './ledger-port.ts'
import { wakeParts } from './outcome-parts.ts'
import { runParts } from '../postgres/write-parts.ts'
import { deadOutcome } from '../workflow/orderless-outcome.ts'

/** What sweeping needs. */
export interface SweepContext {
  readonly db: Database
  readonly ledger: LedgerPort
  readonly sources: SourceLookup
  readonly limits: Limits
  readonly worker: string
  /** Told how many batches were found whose worker had died in them. */
  readonly onDeadBatches?: (batches: number) => void
}

/** One statement in a transaction whose plans do not depend on statistics. */
function keyed(db: Database, statement: Statement): Promise<Row[]> {
  return db.transaction((tx) => tx.query(statement), { setup: keyedPlans })
}

/** Delayed events that are due become ready. Returns how many. */
export async function promoteDelayed(db: Database): Promise<number> {
  const s = db.schema
  const rows = await keyed(db, {
    text: `with due as materialized (
        select event_key from ${s}inbox_delayed where due_at <= now() order by due_at limit 500 for update skip locked),
      gone as (delete from ${s}inbox_delayed d using due where d.event_key = due.event_key
        returning d.event_key, d.received_on, d.attempts, d.deadline_at, d.waits_for, d.overdue)
      insert into ${s}inbox_ready (event_key, received_on, attempts, deadline_at, waits_for, overdue)
      select * from gone order by event_key on conflict (event_key) do nothing returning 1`,
  })
  return rows.length
}

/**
 * Re-arms what a redelivery asks for: dead events (not poison), and deferred ones, which look again.
 * Attempts start anew at most once an hour; in between a redelivery is one more try.
 */
export async function rearmRedelivered(db: Database): Promise<number> {
  const s = db.schema
  const rows = await keyed(db, {
    text: `with seen as (
        delete from ${s}inbox_redeliveries where redelivery_id in (
          select redelivery_id from ${s}inbox_redeliveries order by redelivery_id limit 500 for update skip locked)
        returning source_id, event_id),
      keys as materialized (
        select distinct e.event_key from seen join ${s}inbox_events e on e.source_id = seen.source_id and e.event_id = seen.event_id),
      dead_locked as materialized (
        select d.event_key, exists (
          select 1 from ${s}inbox_rearmed r where r.event_key = d.event_key and r.rearmed_at > now() - interval '1 hour') as lately
        from ${s}inbox_dead d
        where d.event_key in (select event_key from keys) and d.rearmed_by = 'redelivery'
        order by d.event_key for update of d skip locked),
      revived as (
        delete from ${s}inbox_dead d using dead_locked l where d.event_key = l.event_key
        returning d.event_key, d.received_on, case when l.lately then d.attempts else 0::smallint end as attempts, l.lately),
      noted as (
        insert into ${s}inbox_rearmed (event_key) select event_key from revived where not lately order by event_key
        on conflict (event_key) do update set rearmed_at = now()),
      deferred_locked as materialized (
        select d.event_key from ${s}inbox_deferred d where d.event_key in (select event_key from keys)
        order by d.event_key for update skip locked),
      woken as (
        delete from ${s}inbox_deferred d using deferred_locked l where d.event_key = l.event_key
        returning d.event_key, d.received_on, d.attempts, d.deadline_at, d.waits_for, d.overdue),
      unwaited as (delete from ${s}inbox_waits w using woken where w.event_key = woken.event_key)
      insert into ${s}inbox_ready (event_key, received_on, attempts, deadline_at, waits_for, overdue)
      select event_key, received_on, attempts, null::timestamptz, null::text, true from revived
      union all select event_key, received_on, attempts, deadline_at, waits_for, overdue from woken
      order by event_key on conflict (event_key) do nothing returning 1`,
  })
  return rows.length
}

/**
 * Finds batches whose worker died: their rows can be locked. Events of a shared batch become suspects
 * and will run alone; a suspect that killed its worker `loneStarts` times is dead.
 */
export async function adoptDeadBatches(ctx: SweepContext): Promise<number> {
  const { db, limits } = ctx
  const s = db.schema
  const dead = await db.transaction(
    async (tx) => {
      // a row younger than this may be about to be locked by its own worker
      const batches = await tx.query<{ event_keys: string[]; alone: boolean }>({
        text: `delete from ${s}inbox_batches where batch_id in (
          select batch_id from ${s}inbox_batches where started_at < clock_timestamp() - interval '250 milliseconds'
          order by batch_id limit 20 for update skip locked)
        returning event_keys::text[] as event_keys, alone`,
      })
      if (batches.length === 0) return 0
      const shared = batches.filter((batch) => !batch.alone).flatMap((batch) => batch.event_keys)
      const lone = batches.filter((batch) => batch.alone).flatMap((batch) => batch.event_keys)
      if (shared.length > 0) {
        await tx.query({
          text: `with locked as materialized (
            select event_key from ${s}inbox_ready where event_key = any ($1::bigint[]) order by event_key for update skip locked),
          gone as (delete from ${s}inbox_ready r using locked l where r.event_key = l.event_key
            returning r.event_key, r.received_on, r.attempts, r.deadline_at, r.waits_for, r.overdue)
          insert into ${s}inbox_suspects (event_key, received_on, attempts, deadline_at, waits_for, overdue)
          select * from gone order by event_key on conflict (event_key) do nothing`,
          values: [shared],
        })
      }
      if (lone.length > 0) await countLoneDeaths(ctx, tx, lone, limits.loneStarts)
      return batches.length
    },
    { setup: keyedPlans },
  )
  if (dead > 0) ctx.onDeadBatches?.(dead)
  return dead
}

async function countLoneDeaths(
  ctx: SweepContext,
  tx: Executor,
  keys: readonly string[],
  most: number,
): Promise<void> {
  const s = ctx.db.schema
  const counted = await tx.query<{ event_key: string; starts: number }>({
    text: `update ${s}inbox_suspects u set starts = u.starts + 1, attempts = u.attempts + 1,
        due_at = now() + interval '1 second' * power(2, u.starts)
      where u.event_key in (
        select event_key from ${s}inbox_suspects where event_key = any ($1::bigint[]) order by event_key for update skip locked)
      returning u.event_key, u.starts`,
    values: [[...keys]],
  })
  const finished = counted.filter((row) => row.starts >= most).map((row) => row.event_key)
  if (finished.length === 0) return
  const events = await readHeads(ctx, tx, finished)
  await ctx.ledger.apply(
    tx,
    {
      decided: events.map(({ event, decisionId, attempts }) => ({
        outcome: deadOutcome(
          event,
          decisionId,
          `it ended its worker ${most} times when it ran alone`,
        ),
        attempts,
        recorded: true,
      })),
      before: new Map(),
      after: new Map(),
      findings: events.flatMap(({ event, decisionId }) =>
        deadOutcome(
          event,
          decisionId,
          `it ended its worker ${most} times when it ran alone`,
        ).findings.map((draft) => ({
          draft,
          source: sourceText(event),
          orderId: null,
          eventKey: event.key,
        })),
      ),
      closedFindings: [],
      actor: ctx.worker,
    },
    [
      {
        name: 'died',
        sql: `gone_suspects as (delete from ${s}inbox_suspects where event_key = any (:1::bigint[]) returning event_key, received_on, attempts),
          died as (insert into ${s}inbox_dead (event_key, received_on, reason, attempts, rearmed_by)
            select event_key, received_on, 'it ended its worker when it ran alone', attempts, 'operator'
            from gone_suspects order by event_key returning 1)`,
        values: [finished],
      },
      notGathered(s, finished),
    ],
  )
}

interface EventHead {
  readonly event: InboxEvent
  readonly decisionId: bigint
  readonly attempts: number
}

/** Events without their bodies, for decisions that need none. */
async function readHeads(
  ctx: SweepContext,
  tx: Executor,
  keys: readonly string[],
): Promise<EventHead[]> {
  const s = ctx.db.schema
  const rows = await tx.query<{
    event_key: string
    source_id: number
    provider: string
    provider_account: string
    environment: Environment
    event_id: string
    event_type: string
    received_at: Date | string
    decision_id: string
    attempts: number
  }>({
    text: `select e.event_key, e.source_id, s.provider, s.provider_account, s.environment, e.event_id, e.event_type, e.received_at,
        nextval(pg_get_serial_sequence('${s}ledger_decisions', 'decision_id')) as decision_id,
        coalesce(u.attempts, d.attempts, 0) as attempts
      from ${s}inbox_events e join ${s}sources s on s.source_id = e.source_id
      left join ${s}inbox_suspects u on u.event_key = e.event_key
      left join ${s}inbox_deferred d on d.event_key = e.event_key
      where e.event_key = any ($1::bigint[]) order by e.event_key`,
    values: [[...keys]],
  })
  return rows.map((row) => {
    const found = ctx.sources.identify({
      provider: row.provider,
      account: row.provider_account,
      environment: row.environment,
    })
    return {
      decisionId: BigInt(row.decision_id),
      attempts: row.attempts,
      event: {
        key: BigInt(row.event_key),
        sourceId: row.source_id,
        source: found.identity,
        accountAllowed: found.accountAllowed,
        eventId: row.event_id,
        eventType: row.event_type,
        receivedAt: new Date(row.received_at),
        occurredAt: null,
        synthetic: false,
        content: { readable: false, reason: 'not read' },
      },
    }
  })
}

function sourceText(event: InboxEvent): string {
  return `${event.source.provider}:${event.source.account}:${event.source.environment}`
}

/** Waits past their deadline: a finding, or ignored where the type says so. Both can still be woken. */
export async function expireDeferrals(ctx: SweepContext): Promise<number> {
  const { db } = ctx
  const s = db.schema
  return db.transaction(
    async (tx) => {
      const due = await tx.query<{ event_key: string; at_deadline: string; waits_for: string }>({
        text: `select event_key, at_deadline, waits_for from ${s}inbox_deferred
        where deadline_at <= now() and not overdue order by event_key limit 500 for update skip locked`,
      })
      if (due.length === 0) return 0
      const waits = new Map(due.map((row) => [BigInt(row.event_key), row]))
      const heads = await readHeads(
        ctx,
        tx,
        due.map((row) => row.event_key),
      )
      const ignored = heads.filter(({ event }) => waits.get(event.key)?.at_deadline === 'ignore')
      const overdue = heads.filter(({ event }) => waits.get(event.key)?.at_deadline !== 'ignore')
      await ctx.ledger.apply(
        tx,
        {
          decided: ignored.map(({ event, decisionId, attempts }) => ({
            outcome: {
              ...emptyOutcome,
              decisionId,
              event,
              kind: 'ignored',
              reason: `nothing claimed it: it waited for ${waits.get(event.key)?.waits_for}`,
            },
            attempts,
            recorded: true,
          })),
          before: new Map(),
          after: new Map(),
          findings: overdue.map(({ event }) => ({
            draft: finding('wait_overdue', `event:${event.key}`, {
              event: event.eventId,
              type: event.eventType,
              waits_for: waits.get(event.key)?.waits_for ?? '',
            }),
            source: sourceText(event),
            orderId: null,
            eventKey: event.key,
          })),
          closedFindings: [],
          actor: ctx.worker,
        },
        [
          {
            name: 'expired',
            sql: `expired as (update ${s}inbox_deferred set overdue = true where event_key = any (:1::bigint[]) returning 1)`,
            values: [overdue.map(({ event }) => event.key.toString())],
          },
          {
            name: 'unclaimed',
            sql: `unclaimed_gone as (delete from ${s}inbox_deferred where event_key = any (:1::bigint[]) returning event_key, received_on, waits_for),
            unclaimed as (insert into ${s}inbox_ignored (event_key, received_on, reason, event_type)
              select g.event_key, g.received_on, 'nothing claimed it: it waited for ' || g.waits_for, e.event_type
              from unclaimed_gone g join ${s}inbox_events e on e.event_key = g.event_key order by g.event_key returning 1)`,
            values: [ignored.map(({ event }) => event.key.toString())],
          },
        ],
      )
      return due.length
    },
    { setup: keyedPlans },
  )
}

/**
 * The net under wake-ups: names that are bound and orders that changed while events still wait for
 * them. Tests require that it never catches anything.
 */
export async function rescueWaits(db: Database): Promise<number> {
  const s = db.schema
  return db.transaction(async (tx) => {
    const rows = await tx.query<{ kind: string; source_id: number; name: string }>({
      text: `select distinct w.kind, w.source_id, w.name
        from ${s}inbox_waits w
        join ${s}inbox_deferred d on d.event_key = w.event_key
        left join ${s}order_names n on n.kind = w.kind and n.source_id = w.source_id and n.name = w.name and w.source_id <> 0
        left join ${s}orders o on w.source_id = 0 and o.order_id = w.name
        left join ${s}customer_links l on w.kind = '${customerKind}' and l.source_id = w.source_id and l.customer_id = w.name
        where d.deferred_at < now() - interval '5 seconds'
          and (n.order_id is not null or l.subject is not null or o.updated_at > d.deferred_at or o.opened_at > d.deferred_at)
        limit 1000`,
    })
    const names: SourceName[] = rows.map((row) => ({
      kind: row.kind,
      sourceId: row.source_id,
      value: row.name,
    }))
    return (await runParts(tx, wakeParts(s, names))).get('woken') ?? 0
  })
}

/** One round of every sweep but the net; how many events became ready. */
export async function sweepOnce(ctx: SweepContext): Promise<number> {
  const ready = (await promoteDelayed(ctx.db)) + (await rearmRedelivered(ctx.db))
  await adoptDeadBatches(ctx)
  await expireDeferrals(ctx)
  return ready
}
