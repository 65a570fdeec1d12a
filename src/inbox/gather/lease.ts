/**
 * Takes requests: each gets its number in a commit of its own before anything is sent, so that whatever is
 * answered can be told from what was asked before and after it. At most one of an object is under way.
 */
import { reach } from '../../core/failpoints.ts'
import type { Executor, Value } from '../../postgres/executor.ts'
import { keyedPlans } from '../../postgres/keyed-plans.ts'
import { gatheredEvent } from '../../workflow/gathering.ts'
import type { Order } from '../../workflow/order.ts'
import type { LookedAt } from '../answers.ts'
import { afterTaking, allowanceOf, type Allowance } from './budget.ts'
import {
  accountBudget,
  lockBudgets,
  readBudgets,
  rulesOf,
  sourceBudget,
  writeBudgets,
  type BudgetChange,
} from './budget-rows.ts'
import {
  dealShares,
  lockDueStatement,
  lockWaitedStatement,
  lookedAtOf,
  readDue,
  type DueAccount,
  type LockedRow,
} from './due.ts'
import { readEvents } from './gathered-events.ts'
import { lookedForTypes, type GatherContext, type LeasedFetch } from './gather-context.ts'

/** What to take. */
export interface LeaseRequest {
  /** At most so many. */
  readonly most: number
  /** Only what these events wait for, due or not. */
  readonly only?: readonly bigint[] | undefined
  /** Accounts after this one come first. */
  readonly after?: number | undefined
}

/** What was taken. */
export interface Lease {
  readonly leased: readonly LeasedFetch[]
  /** Milliseconds until it is worth looking again; null: nobody knows, 0: at once. */
  readonly waitMs: number | null
  /** Of those, the ones that somebody had and did not answer in time. */
  readonly expired: number
}

/** Settings of a gatherer's transaction, sent together with BEGIN. */
export function gatherSetup(lockTimeoutMs: number): string {
  return `set local lock_timeout = ${Math.trunc(lockTimeoutMs)}; ${keyedPlans}`
}

/** Whether anything is due here: read without a lock, for a gatherer that is idle. */
export async function dueAccounts(ctx: GatherContext): Promise<readonly DueAccount[]> {
  return ctx.db.transaction((tx) => readDue(ctx, tx), { setup: keyedPlans })
}

/** Takes what is due, as far as the budgets go. */
export async function leaseFetches(ctx: GatherContext, request: LeaseRequest): Promise<Lease> {
  await reach('G0')
  const leasedAt = performance.now()
  const lease = await ctx.db.transaction((tx) => leaseIn(ctx, tx, request, leasedAt), {
    setup: gatherSetup(ctx.lockTimeoutMs),
    beforeCommit: async () => reach('G1'),
  })
  if (lease.expired > 0)
    ctx.signals.emit('worker.leases.expired', { role: 'gather', leases: lease.expired })
  return lease
}

async function leaseIn(
  ctx: GatherContext,
  tx: Executor,
  request: LeaseRequest,
  leasedAt: number,
): Promise<Lease> {
  const { db, settings } = ctx
  const s = db.schema
  const all = await readDue(ctx, tx)
  const due =
    request.only === undefined
      ? rotated(all, request.after)
      : await waitedFor(ctx, tx, all, request.only)
  if (due.length === 0) return { leased: [], waitMs: null, expired: 0 }
  const names = due.flatMap(budgetsOf)
  const guess = dealShares(due, await readBudgets(s, tx, names, settings), settings, request.most)
  const dealtTo = due.filter(({ sourceId }) => guess.shares.has(sourceId))
  if (dealtTo.length === 0) return { leased: [], waitMs: guess.waitMs, expired: 0 }
  const figures = await lockBudgets(s, tx, dealtTo.flatMap(budgetsOf), settings)
  const { shares } = dealShares(dealtTo, figures, settings, request.most)
  if (shares.size === 0) return { leased: [], waitMs: guess.waitMs, expired: 0 }
  const rows = await tx.query<LockedRow>({
    text: request.only === undefined ? lockDueStatement(s) : lockWaitedStatement(s),
    repeated: true,
    values: [
      [...shares.keys()],
      request.only === undefined ? [...shares.values()] : request.only.map(String),
      lookedForTypes(ctx.workflows),
    ],
  })
  const within = withinShares(rows, shares)
  if (within.length === 0) return { leased: [], waitMs: guess.waitMs, expired: 0 }
  const identities = new Map(due.map((each) => [each.sourceId, each]))
  const taken = new Map<string, number>()
  for (const { source_id: sourceId } of within) {
    const account = identities.get(sourceId)
    for (const budget of account === undefined ? [] : budgetsOf(account))
      taken.set(budget, (taken.get(budget) ?? 0) + 1)
  }
  const allowances = new Map<string, Allowance>()
  const changes: BudgetChange[] = [...taken].flatMap(([budget, count]) => {
    const before = figures.get(budget)
    if (before === undefined) return []
    const rules = rulesOf(budget, settings)
    const allowance = allowanceOf(before, rules)
    allowances.set(budget, allowance)
    return [{ budget, figures: afterTaking(before, allowance, count, rules), error: null }]
  })
  await writeBudgets(s, tx, changes)
  const leased = await takeNumbers(ctx, tx, within.map(lookedAtOf), {
    leasedAt,
    identities,
    allowances,
  })
  // an account may have had less than its share: whoever looks again deals out what was left
  const expired = within.filter((row) => row.has_expired).length
  return { leased, waitMs: leased.length > 0 ? 0 : guess.waitMs, expired }
}

function budgetsOf({ sourceId, identity }: DueAccount): string[] {
  return [sourceBudget(identity.name), accountBudget(sourceId)]
}

function rotated(due: readonly DueAccount[], after: number | undefined): readonly DueAccount[] {
  if (after === undefined) return due
  return [
    ...due.filter(({ sourceId }) => sourceId > after),
    ...due.filter(({ sourceId }) => sourceId <= after),
  ]
}

function withinShares(
  rows: readonly LockedRow[],
  shares: ReadonlyMap<number, number>,
): LockedRow[] {
  const left = new Map(shares)
  return rows.filter(({ source_id: id }) => {
    const most = left.get(id) ?? 0
    left.set(id, most - 1)
    return most > 0
  })
}

/** The accounts of what these events wait for: who asks for certain events does not wait for their time. */
async function waitedFor(
  { db }: GatherContext,
  tx: Executor,
  all: readonly DueAccount[],
  keys: readonly bigint[],
): Promise<readonly DueAccount[]> {
  const rows = await tx.query<{ source_id: number }>({
    text: `select distinct source_id from ${db.schema}inbox_gathers where event_key = any ($1::bigint[]) and waiting`,
    values: [keys.map(String)],
  })
  const accounts = new Set(rows.map((row) => row.source_id))
  return all.flatMap((each) => (accounts.has(each.sourceId) ? [{ ...each, dueInMs: 0 }] : []))
}

interface TakenRow extends LockedRow {
  readonly number: string
  readonly workflow: string
  readonly event_type: string
  readonly event_key: string
  readonly attempts: number
  readonly age_ms: number
  readonly asked_at: Date | string
  readonly requested_at: Date | string
  readonly order_version: string | null
  readonly order_workflow: string | null
  readonly state: string | null
  readonly subject: string | null
  readonly expected_amount: string | null
  readonly currency: string | null
}

/** The statement that gives numbers, exported so that its plan can be asserted. */
export function takeStatement(s: string): string {
  const key = (a: string, b: string): string =>
    `${a}.order_id = ${b}.order_id and ${a}.source_id = ${b}.source_id and ${a}.kind = ${b}.kind and ${a}.object_id = ${b}.object_id`
  return `with k as materialized (
      select * from unnest($1::text[], $2::integer[], $3::text[], $4::text[]) as n(order_id, source_id, kind, object_id)),
    numbered as (
      update ${s}looked_at l set sent = l.sent + 1 from k where ${key('l', 'k')}
      returning l.order_id, l.source_id, l.kind, l.object_id, l.sent),
    leased as (
      update ${s}fetches f set leased_until = statement_timestamp() + $5::double precision * interval '1 millisecond',
        due_at = statement_timestamp() + $5::double precision * interval '1 millisecond'
      from k where ${key('f', 'k')}
      returning f.order_id, f.source_id, f.kind, f.object_id, f.workflow, f.event_type, f.event_key, f.attempts, f.asked_at)
    select n.order_id, n.source_id, n.kind, n.object_id, n.sent as number, f.workflow, f.event_type, f.event_key, f.attempts,
      (extract(epoch from statement_timestamp() - f.asked_at) * 1000)::double precision as age_ms, f.asked_at,
      statement_timestamp() as requested_at, o.version as order_version, o.workflow as order_workflow, o.state, o.subject,
      o.expected_amount, o.currency
    from numbered n join leased f on ${key('f', 'n')}
    left join ${s}orders o on o.order_id = n.order_id`
}

interface LeaseFacts {
  readonly leasedAt: number
  readonly identities: ReadonlyMap<number, DueAccount>
  readonly allowances: ReadonlyMap<string, Allowance>
}

async function takeNumbers(
  ctx: GatherContext,
  tx: Executor,
  looked: readonly LookedAt[],
  { leasedAt, identities, allowances }: LeaseFacts,
): Promise<LeasedFetch[]> {
  const rows = await tx.query<TakenRow>({
    text: takeStatement(ctx.db.schema),
    repeated: true,
    values: [...keyValues(looked), ctx.settings.leaseMs],
  })
  const keys = rows.flatMap(({ kind, event_key: key }) => (kind === gatheredEvent ? [key] : []))
  const events = await readEvents(ctx, tx, keys)
  return rows.flatMap((row) => {
    const source = identities.get(row.source_id)?.identity
    const handler = ctx.workflows.get(row.workflow)?.handlers.get(row.event_type)
    if (source === undefined || handler === undefined) return []
    const { order_version: orderVersion } = row
    return {
      ...lookedAtOf(row),
      number: BigInt(row.number),
      workflow: row.workflow,
      eventType: row.event_type,
      eventKey: row.event_key,
      source,
      handler,
      attempts: row.attempts,
      ageMs: Number(row.age_ms),
      askedAt: new Date(row.asked_at).toISOString(),
      requestedAt: new Date(row.requested_at).toISOString(),
      orderVersion,
      order: orderOf(row),
      event: events.get(row.event_key) ?? null,
      probes: {
        source: allowances.get(sourceBudget(source.name))?.isProbe === true,
        account: allowances.get(accountBudget(row.source_id))?.isProbe === true,
      },
      leasedAt,
    }
  })
}

/** What is looked at as four columns of values. */
export function keyValues(looked: readonly LookedAt[]): Value[] {
  return [
    looked.map((each) => each.orderId),
    looked.map((each) => each.sourceId),
    looked.map((each) => each.kind),
    looked.map((each) => each.objectId),
  ]
}

function orderOf(row: TakenRow): Order | null {
  const { order_workflow: workflow, state, subject, expected_amount: amount, currency } = row
  if (workflow === null || state === null) return null
  return Object.freeze({
    id: row.order_id,
    workflow,
    state,
    subject,
    expected:
      amount === null || currency === null
        ? null
        : Object.freeze({ amount: BigInt(amount), currency }),
  })
}
