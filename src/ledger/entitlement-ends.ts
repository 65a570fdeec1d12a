/**
 * What ends by the database's clock, found and noted once: `valid_until` ends access without an event, in the
 * view that everybody reads; here somebody is told of it. One row is locked by whoever looks, and each end has a
 * row of its own, so that any number of watchers, and a commit that came late, tell it once.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import { keyedPlans } from '../postgres/keyed-plans.ts'

/** Most orders of one look. */
const most = 500

/**
 * How far behind the mark ends are looked for, still: a transaction that took longer than it made may show
 * rows whose end had passed before anybody could see them.
 */
const overlap = `interval '1 hour'`

/** So long a told end is remembered: longer than it could be found. */
const remembered = `interval '1 day'`

/**
 * Ends that nobody was told of, up to now. `e` is the entitlement, `w` the watch's row. A row whose decision
 * came when its end had passed already ended with that decision, which is told by itself.
 */
function untold(s: string): string {
  return `e.active and e.valid_until > w.through - ${overlap} and e.valid_until <= now()
    and not exists (select 1 from ${s}entitlement_ends x where x.valid_until = e.valid_until
      and x.order_id = e.order_id and x.subject = e.subject and x.entitlement = e.entitlement)
    and not exists (select 1 from ${s}ledger_decisions d where d.decision_id = e.changed_by and d.decided_at >= e.valid_until)`
}

/** Whether there is anything to be noted or told: one statement without a lock, for a loop that mostly idles. */
export async function anyEntitlementNews(db: Database): Promise<boolean> {
  const s = db.schema
  const [row] = await db.transaction(
    (tx) =>
      tx.query<{ any_news: boolean }>({
        text: `select exists (select 1 from ${s}entitlement_changes)
          or exists (select 1 from ${s}entitlement_watch w join ${s}entitlements e on ${untold(s)}) as any_news`,
      }),
    { setup: keyedPlans },
  )
  return row?.any_news === true
}

/**
 * Notes ends as changes to be told, in a transaction of its own; resolves with how many. An order that somebody
 * holds is looked at again: a decision that prolongs it comes first. Another watcher leaves nothing to do.
 */
export async function noteEnds(db: Database): Promise<number> {
  const s = db.schema
  return db.transaction(
    async (tx) => {
      const [watch] = await tx.query({
        text: `select 1 from ${s}entitlement_watch for update skip locked`,
      })
      if (watch === undefined) return 0
      // the order's lock, and then a statement that sees what whoever held it before has written
      const locked = await tx.query<{ order_id: string }>({
        text: `select o.order_id from ${s}orders o where o.order_id in (
          select e.order_id from ${s}entitlement_watch w join ${s}entitlements e on ${untold(s)} order by e.valid_until limit ${most})
        order by o.order_id for no key update of o skip locked`,
      })
      const ids = locked.map((row) => row.order_id)
      const noted = ids.length === 0 ? 0 : await note(s, tx, ids)
      await advance(s, tx)
      return noted
    },
    { setup: keyedPlans },
  )
}

async function note(s: string, tx: Executor, ids: readonly string[]): Promise<number> {
  const [row] = await tx.query<{ noted: number }>({
    text: `with ended as (
        insert into ${s}entitlement_ends (valid_until, order_id, subject, entitlement)
        select e.valid_until, e.order_id, e.subject, e.entitlement
        from ${s}entitlement_watch w join ${s}entitlements e on e.order_id = any ($1::text[]) and ${untold(s)}
        order by e.valid_until, e.order_id, e.subject, e.entitlement
        on conflict do nothing returning valid_until, order_id, subject, entitlement),
      noted as (
        insert into ${s}entitlement_changes (subject, order_id, because, entitlement, ended_at)
        select subject, order_id, 'expiry', entitlement, valid_until from ended order by valid_until, order_id, subject, entitlement
        returning 1)
      select count(*)::integer as noted from noted`,
    values: [ids],
  })
  return row?.noted ?? 0
}

/** The mark stops before what is still to be noted: an order may be held for longer than the overlap. */
async function advance(s: string, tx: Executor): Promise<void> {
  await tx.query({
    text: `update ${s}entitlement_watch u set through = greatest(u.through, coalesce((
        select min(e.valid_until) - interval '1 microsecond'
        from ${s}entitlement_watch w join ${s}entitlements e on ${untold(s)}), now()))`,
  })
  await tx.query({
    text: `delete from ${s}entitlement_ends where valid_until in (
      select x.valid_until from ${s}entitlement_ends x, ${s}entitlement_watch w
      where x.valid_until < w.through - ${remembered} order by x.valid_until limit 1000)`,
  })
}
