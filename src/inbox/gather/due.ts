/**
 * What is due, account by account: a large backlog of one account, or one that is left alone for a while,
 * never stands in the way of another.
 */
import type { Executor } from '../../postgres/executor.ts'
import type { SourceIdentity } from '../../workflow/event.ts'
import type { LookedAt } from '../answers.ts'
import { allowanceOf, type BudgetFigures } from './budget.ts'
import { accountBudget, rulesOf, sourceBudget } from './budget-rows.ts'
import type { GatherContext, GatherSettings } from './gather-context.ts'

/** An account of a configured source with something to ask. */
export interface DueAccount {
  readonly sourceId: number
  readonly identity: SourceIdentity & { readonly name: string }
  /** Milliseconds until its first request is due; not positive: it is. */
  readonly dueInMs: number
}

interface DueRow {
  readonly source_id: number
  readonly provider: string
  readonly provider_account: string
  readonly environment: string
  readonly due_ms: number
}

/** The statement that looks for accounts, exported so that its plan can be asserted: it hops over the rest. */
export function dueStatement(s: string): string {
  return `with recursive hop(source_id) as (
      (select f.source_id from ${s}fetches f order by f.source_id limit 1)
      union all
      select (select f.source_id from ${s}fetches f where f.source_id > h.source_id order by f.source_id limit 1)
      from hop h where h.source_id is not null)
    select h.source_id, s.provider, s.provider_account, s.environment,
      (extract(epoch from d.due_at - statement_timestamp()) * 1000)::double precision as due_ms
    from hop h join ${s}sources s on s.source_id = h.source_id
    cross join lateral (select f.due_at from ${s}fetches f where f.source_id = h.source_id order by f.due_at limit 1) d`
}

/** The accounts with something to ask, in the order of their numbers. Those of sources not configured here are left. */
export async function readDue({ db, reading }: GatherContext, tx: Executor): Promise<DueAccount[]> {
  const rows = await tx.query<DueRow>({ text: dueStatement(db.schema), repeated: true })
  return rows.flatMap((row) => {
    const account = row.provider_account
    const { provider, environment } = row
    const { identity } = reading.sources.identify({ provider, account, environment })
    const { name } = identity
    if (name === null) return []
    const dueInMs = Number(row.due_ms)
    return [{ sourceId: row.source_id, identity: { ...identity, name }, dueInMs }]
  })
}

/** How many requests of each account may be made, and when it is worth asking again. */
export interface Shares {
  readonly shares: ReadonlyMap<number, number>
  /** Milliseconds; null: nothing is waited for. */
  readonly waitMs: number | null
}

/** Deals `most` requests out to the accounts that are due, one each in turn, as far as the budgets go. */
export function dealShares(
  due: readonly DueAccount[],
  budgets: ReadonlyMap<string, BudgetFigures>,
  settings: GatherSettings,
  most: number,
): Shares {
  const waits: number[] = []
  const left = new Map<string, number>()
  const leftOf = (budget: string): number => {
    const known = left.get(budget)
    if (known !== undefined) return known
    const figures = budgets.get(budget)
    if (figures === undefined) return 0
    const allowance = allowanceOf(figures, rulesOf(budget, settings))
    if (allowance.waitMs !== null) waits.push(allowance.waitMs)
    left.set(budget, allowance.most)
    return allowance.most
  }
  const shares = new Map<number, number>()
  let free = most
  for (let dealt = true; dealt && free > 0;) {
    dealt = false
    for (const { sourceId, identity, dueInMs } of due) {
      if (free === 0) break
      if (dueInMs > 0) continue
      const budgetsOf = [sourceBudget(identity.name), accountBudget(sourceId)]
      if (budgetsOf.some((budget) => leftOf(budget) < 1)) continue
      for (const budget of budgetsOf) left.set(budget, leftOf(budget) - 1)
      shares.set(sourceId, (shares.get(sourceId) ?? 0) + 1)
      free--
      dealt = true
    }
  }
  for (const { dueInMs } of due) if (dueInMs > 0) waits.push(dueInMs)
  return { shares, waitMs: waits.length === 0 ? null : Math.min(...waits) }
}

/**
 * The statement that locks what is due, exported so that its plan can be asserted. Nothing is waited for, and
 * what is looked at is locked with it: a worker that asks holds that first.
 */
export function lockDueStatement(s: string): string {
  return `select c.* from unnest($1::integer[], $2::integer[]) as a(source_id, most)
    cross join lateral (
      select f.order_id, f.source_id, f.kind, f.object_id, f.leased_until is not null as has_expired
      from ${s}fetches f join ${s}looked_at l on l.order_id = f.order_id and l.source_id = f.source_id
        and l.kind = f.kind and l.object_id = f.object_id
      where f.source_id = a.source_id and f.due_at <= statement_timestamp()
        and (f.leased_until is null or f.leased_until <= statement_timestamp())
        and f.workflow || ' ' || f.event_type = any ($3::text[])
      order by f.due_at limit a.most for update of f, l skip locked) c`
}

/** The same for what these events wait for, however long it is to be backed off. */
export function lockWaitedStatement(s: string): string {
  return `select f.order_id, f.source_id, f.kind, f.object_id, f.leased_until is not null as has_expired
    from ${s}fetches f join ${s}looked_at l on l.order_id = f.order_id and l.source_id = f.source_id
      and l.kind = f.kind and l.object_id = f.object_id
    where (f.order_id, f.source_id, f.kind, f.object_id) in (
        select g.order_id, g.source_id, g.kind, g.object_id from ${s}inbox_gathers g
        where g.event_key = any ($2::bigint[]) and g.waiting)
      and f.source_id = any ($1::integer[])
      and (f.leased_until is null or f.leased_until <= statement_timestamp())
      and f.workflow || ' ' || f.event_type = any ($3::text[])
    order by f.due_at for update of f, l skip locked`
}

/** A locked request, as its row names it. */
export interface LockedRow {
  readonly order_id: string
  readonly source_id: number
  readonly kind: string
  readonly object_id: string
  /** Whether somebody had it, and let its lease run out. */
  readonly has_expired: boolean
}

/** What a locked row is about. */
export function lookedAtOf(row: LockedRow): LookedAt {
  return {
    orderId: row.order_id,
    sourceId: row.source_id,
    kind: row.kind,
    objectId: row.object_id,
  }
}
