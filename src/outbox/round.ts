/**
 * One round of a destination: results in, operations out, in one transaction under the destination's lock.
 * It holds no connection while a call is under way.
 */
import { reach } from '../core/failpoints.ts'
import type { Executor } from '../postgres/executor.ts'
import { keyedPlans } from '../postgres/keyed-plans.ts'
import { breakerAfter, budgetOf, type Budget } from './budget.ts'
import { lockDue, sortCandidates } from './candidates.ts'
import {
  dispatchSetup,
  figuresUpdate,
  figuresValues,
  lockFigures,
  type FiguresAfter,
} from './destination-row.ts'
import type { DispatchContext } from './dispatch-context.ts'
import { countSending, lockExpired } from './expired.ts'
import { leaseOperations, writeUncalled } from './lease.ts'
import { settleAttempts } from './settle.ts'
import { unparkOrders } from './unpark.ts'
import type { RoundReport, RoundRequest } from './round-report.ts'
import { runUsualRound } from './usual-round.ts'

/** Runs a round. An error means that nothing of it stands, but for a COMMIT of which nobody knows. */
export async function runRound(ctx: DispatchContext, request: RoundRequest): Promise<RoundReport> {
  return (await runUsualRound(ctx, request)) ?? runAnyRound(ctx, request)
}

/** The longer way, for whatever came in and whatever is due. */
function runAnyRound(ctx: DispatchContext, request: RoundRequest): Promise<RoundReport> {
  const { db, lockTimeoutMs } = ctx
  const hasResults = request.finished.length > 0
  return db.transaction((tx) => roundIn(ctx, tx, request), {
    setup: dispatchSetup(lockTimeoutMs),
    ...(hasResults
      ? { beforeCommit: async () => reach('D5'), afterCommit: async () => reach('D6') }
      : {}),
  })
}

async function roundIn(
  ctx: DispatchContext,
  tx: Executor,
  { finished, wanted, sweeps, from }: RoundRequest,
): Promise<RoundReport> {
  const { db, name, destination } = ctx
  const { contract } = destination
  const figures = await lockFigures(db.schema, tx, name)
  // whose result is here at last is not given up: nobody else has taken the lease
  const here = new Set(finished.map(({ operation }) => operation.lease))
  const lost = sweeps ? await lockExpired(ctx, tx) : []
  const expired = lost.filter(({ operation }) => !here.has(operation.lease))
  const underWayBefore = sweeps ? await countSending(db.schema, tx, name) : figures.underWay
  const settled = await settleAttempts(ctx, tx, [...finished, ...expired])
  const held = settled.filter((each) => each.held).length
  const underWay = Math.max(0, underWayBefore - held)
  const breaker = breakerAfter(
    figures,
    finished.map((each) => each.outcome),
    contract,
  )
  const budget = budgetOf({ ...figures, ...breaker, underWay }, contract)
  const after = (leased: number): FiguresAfter => ({
    underWay: underWay + leased,
    ...breaker,
    tokens: Math.max(0, budget.tokens - (contract.ratePerSecond === null ? 0 : leased)),
  })
  const lease = await leaseWithin(ctx, tx, { budget, wanted, from, after })
  if (lease.leased.length === 0) {
    const text = figuresUpdate(db.schema, 0)
    await tx.query({ text, repeated: true, values: figuresValues(name, after(0)) })
  }
  const opens = isAhead(breaker.closedForMs) && !isAhead(figures.closedForMs)
  const shuts = breaker.closedForMs === null && figures.closedForMs !== null
  return {
    settled,
    ...lease,
    more: lease.more || lost.length === ctx.batch,
    waitMs: budget.most === 0 ? budget.waitMs : null,
    breaker: opens ? 'opened' : shuts ? 'shut' : null,
    failures: breaker.failures,
    others: false,
  }
}

function isAhead(ms: number | null): boolean {
  return ms !== null && ms > 0
}

type Lease = Pick<RoundReport, 'leased' | 'sorted' | 'more' | 'until'>

async function leaseWithin(
  ctx: DispatchContext,
  tx: Executor,
  {
    budget,
    wanted,
    from,
    after,
  }: {
    readonly budget: Budget
    readonly wanted: number
    readonly from: string
    readonly after: (leased: number) => FiguresAfter
  },
): Promise<Lease> {
  const most = Math.min(wanted, budget.most, ctx.batch)
  if (most <= 0) return { leased: [], sorted: null, more: false, until: null }
  const due = await lockDue(ctx, tx, most, from)
  if (due.length === 0) return { leased: [], sorted: null, more: false, until: null }
  const sorted = await sortCandidates(ctx, tx, due)
  await writeUncalled(ctx, tx, sorted)
  if (ctx.destination.contract.sequence === 'order' && sorted.outlived.length > 0) {
    const orders = sorted.outlived.flatMap(({ candidate: { orderId } }) =>
      orderId === null ? [] : [orderId],
    )
    await unparkOrders(ctx.db.schema, tx, ctx.name, orders)
  }
  const leased = await leaseOperations(ctx, tx, sorted, after)
  const isFull = due.length === most
  return { leased, sorted, more: isFull, until: isFull ? (due.at(-1)?.dueAt ?? null) : null }
}

/** Whether there is anything for a round to do: read without a lock, for a dispatcher that is idle. */
export async function isAnythingDue({ db, name }: DispatchContext): Promise<boolean> {
  const s = db.schema
  const [row] = await db.transaction(
    (tx) =>
      tx.query<{ due: boolean }>({
        text: `select exists (select 1 from ${s}outbox_operations o where o.destination = $1
              and o.next_attempt_at is not null and o.next_attempt_at <= statement_timestamp())
            or exists (select 1 from ${s}outbox_operations o where o.destination = $1
              and o.state = 'sending' and o.leased_until < statement_timestamp()) as due`,
        repeated: true,
        values: [name],
      }),
    { setup: keyedPlans },
  )
  return row?.due === true
}
