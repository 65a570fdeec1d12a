/**
 * Writes what came of requests. The fence: an answer becomes the newest only while none with a higher number
 * is there. One that comes too late is kept as evidence and changes nothing.
 */
import { createHash } from 'node:crypto'
import { backoffMs } from '../../core/backoff.ts'
import { reach } from '../../core/failpoints.ts'
import type { Executor } from '../../postgres/executor.ts'
import { storable } from '../../postgres/storable-text.ts'
import { runParts, type WritePart } from '../../postgres/write-parts.ts'
import { lookKey } from '../answers.ts'
import { accountResult, afterResult, sourceResult, type BudgetFigures } from './budget.ts'
import {
  accountBudget,
  lockBudgets,
  rulesOf,
  sourceBudget,
  writeBudgets,
  type BudgetChange,
} from './budget-rows.ts'
import type { FinishedFetch, GatherContext, GatherSettings, LeasedFetch } from './gather-context.ts'
import { lookedAtOf, type LockedRow } from './due.ts'
import { gatherSetup, keyValues } from './lease.ts'

/** A request that failed, and when it is made again. */
export interface FailedFetch {
  readonly fetch: LeasedFetch
  readonly kind: 'later' | 'refused' | 'unknown'
  readonly text: string
  readonly nextInMs: number
}

/** A budget whose breaker opened or shut. */
export interface BreakerChange {
  readonly budget: string
  readonly source: string
  /** Null: the source as a whole. */
  readonly account: string | null
  readonly failures: number
  /** Null: it answers again. */
  readonly forMs: number | null
}

/** What settling came to. */
export interface SettleReport {
  /** Events that are ready to be decided. */
  readonly readied: number
  readonly answered: number
  readonly failed: readonly FailedFetch[]
  readonly breakers: readonly BreakerChange[]
}

type Answered = FinishedFetch & { readonly outcome: { readonly kind: 'answered' } }

/** Writes finished requests, at most one of each object, in one transaction. */
export async function settleFetches(
  ctx: GatherContext,
  finished: readonly FinishedFetch[],
): Promise<SettleReport> {
  return ctx.db.transaction((tx) => settleIn(ctx, tx, finished), {
    setup: gatherSetup(ctx.lockTimeoutMs),
    beforeCommit: async () => reach('G4'),
    afterCommit: async () => reach('G5'),
  })
}

/** Parts finished requests into what can be written at once and what names an object a second time. */
export function oneOfEach(
  finished: readonly FinishedFetch[],
  most: number,
): readonly [now: FinishedFetch[], later: FinishedFetch[]] {
  const seen = new Set<string>()
  const now: FinishedFetch[] = []
  const rest: FinishedFetch[] = []
  for (const each of finished) {
    const key = lookKey(each.fetch)
    if (now.length < most && !seen.has(key)) now.push(each)
    else rest.push(each)
    seen.add(key)
  }
  return [now, rest]
}

async function settleIn(
  ctx: GatherContext,
  tx: Executor,
  finished: readonly FinishedFetch[],
): Promise<SettleReport> {
  const s = ctx.db.schema
  const breakers = await settleBudgets(ctx, tx, finished)
  // before anything of the fetches' rows: a worker that asks holds these first
  const fetches = finished.map((each) => each.fetch)
  const locked = await tx.query<LockedRow & { readonly sent: string }>({
    text: lockLookedAtStatement(s),
    repeated: true,
    values: keyValues(fetches),
  })
  const sent = new Map(locked.map((row) => [lookKey(lookedAtOf(row)), BigInt(row.sent)]))
  const answered = finished.filter((each): each is Answered => each.outcome.kind === 'answered')
  const failed = finished.flatMap((each) => failedFetch(each, ctx))
  const released = finished.flatMap(({ fetch, outcome }) =>
    outcome.kind === 'released' ? [fetch] : [],
  )
  // what a request was refused that somebody has made again meanwhile is not news
  const refused = failed.filter(
    ({ kind, fetch }) => kind === 'refused' && sent.get(lookKey(fetch)) === fetch.number,
  )
  const counts = await runParts(
    tx,
    [
      ...(answered.length === 0 ? [] : answeredParts(s, answered)),
      ...(failed.length + released.length === 0 ? [] : [failedPart(s, failed, released)]),
      ...ctx.findings.parts(
        refused.map(({ fetch, text }) => ({
          about: fetch,
          source: fetch.source,
          attempts: fetch.attempts + 1,
          waitingSince: fetch.askedAt,
          error: text,
        })),
        answered.flatMap(({ fetch }) => (mayBeTold(fetch, ctx.settings) ? [fetch] : [])),
      ),
    ],
    finished.length <= 4,
  )
  return { readied: counts.get('readied') ?? 0, answered: answered.length, failed, breakers }
}

/** Whether a person may have been told of it, however long its outcome could not be written. */
function mayBeTold({ attempts, ageMs, leasedAt }: LeasedFetch, settings: GatherSettings): boolean {
  const heldMs = performance.now() - leasedAt
  return attempts > 0 || ageMs + heldMs + settings.leaseMs >= settings.overdueMs
}

/** The statement that locks what answers are about, exported so that its plan can be asserted. */
export function lockLookedAtStatement(s: string): string {
  return `select l.order_id, l.source_id, l.kind, l.object_id, l.sent from unnest($1::text[], $2::integer[], $3::text[], $4::text[]) as k(order_id, source_id, kind, object_id)
    join ${s}looked_at l on l.order_id = k.order_id and l.source_id = k.source_id and l.kind = k.kind and l.object_id = k.object_id
    order by l.order_id, l.source_id, l.kind, l.object_id for update of l`
}

const sameObject = (a: string, b: string): string =>
  `${a}.order_id = ${b}.order_id and ${a}.source_id = ${b}.source_id and ${a}.kind = ${b}.kind and ${a}.object_id = ${b}.object_id`

/**
 * The writes of answers, judged under the lock of what they are about. The row of the request goes where
 * nobody asked later than it was sent; else it is due at once, if no other request is under way.
 */
function answeredParts(s: string, answered: readonly Answered[]): WritePart[] {
  const fetches = answered.map((each) => each.fetch)
  const bodies = answered.map(({ outcome }) => Buffer.from(outcome.body))
  return [
    {
      name: 'readied',
      sql: `answers as materialized (
        select * from unnest(:1::text[], :2::integer[], :3::text[], :4::text[], :5::bigint[], :6::text[], :7::bigint[], :8::bigint[],
          :9::boolean[], :10::timestamptz[], :11::text[], :12::integer[], :13::text[])
          as n(order_id, source_id, kind, object_id, number, workflow, event_key, order_version, is_found, requested_at, sha256, bytes, body)),
      stored as (
        insert into ${s}evidence (order_id, source_id, kind, object_id, number, workflow, event_key, order_version, is_found, is_late,
          requested_at, body_sha256, body_bytes, body)
        select n.order_id, n.source_id, n.kind, n.object_id, n.number, n.workflow, n.event_key, n.order_version, n.is_found,
          coalesce(l.answered >= n.number, true), n.requested_at, decode(n.sha256, 'hex'), n.bytes, decode(n.body, 'base64')
        from answers n left join ${s}looked_at l on ${sameObject('l', 'n')}
        order by n.order_id, n.source_id, n.kind, n.object_id, n.number
        on conflict on constraint evidence_number_key do nothing
        returning evidence_id, order_id, source_id, kind, object_id, number, fetched_at),
      fenced as (
        update ${s}looked_at l set answered = s.number, evidence_id = s.evidence_id, answered_at = s.fetched_at
        from stored s where ${sameObject('l', 's')} and l.answered < s.number
        returning 1),
      fetched as (
        delete from ${s}fetches f using answers n where ${sameObject('f', 'n')} and f.wanted <= n.number returning 1),
      again as (
        update ${s}fetches f set asked_at = statement_timestamp(), attempts = 0, last_error = null, told = false,
          leased_until = case when l.sent = n.number then null else f.leased_until end,
          due_at = case when l.sent = n.number then statement_timestamp() else f.due_at end
        from answers n join ${s}looked_at l on ${sameObject('l', 'n')}
        where ${sameObject('f', 'n')} and f.wanted > n.number
        returning 1),
      answered_waits as (
        update ${s}inbox_gathers g set waiting = false from answers n
        where ${sameObject('g', 'n')} and g.waiting and g.wanted <= n.number
        returning g.event_key, g.received_on, g.attempts, g.deadline_at, g.waits_for, g.overdue),
      readied as (
        insert into ${s}inbox_ready (event_key, received_on, attempts, deadline_at, waits_for, overdue)
        select event_key, received_on, attempts, deadline_at, waits_for, overdue from answered_waits order by event_key
        on conflict (event_key) do nothing returning 1)`,
      values: [
        ...keyValues(fetches),
        fetches.map(({ number }) => number.toString()),
        fetches.map(({ workflow }) => workflow),
        fetches.map(({ eventKey }) => eventKey),
        fetches.map(({ orderVersion }) => orderVersion),
        answered.map(({ outcome }) => outcome.isFound),
        fetches.map(({ requestedAt }) => requestedAt),
        bodies.map((body) => createHash('sha256').update(body).digest('hex')),
        bodies.map((body) => body.length),
        bodies.map((body) => body.toString('base64')),
      ],
    },
  ]
}

/** Only whoever made the newest request says when it is made again: a lease that passed is somebody else's. */
function failedPart(
  s: string,
  failed: readonly FailedFetch[],
  released: readonly LeasedFetch[],
): WritePart {
  const rows = [
    ...failed.map(({ fetch, kind, text, nextInMs }) => {
      return { fetch, isFailure: true, text, nextInMs, tells: kind === 'refused' }
    }),
    ...released.map((fetch) => {
      return { fetch, isFailure: false, text: null, nextInMs: 0, tells: false }
    }),
  ]
  return {
    name: 'failed_fetches',
    sql: `failed_fetches as (
      update ${s}fetches f set leased_until = null, attempts = f.attempts + case when n.is_failure then 1 else 0 end,
        due_at = statement_timestamp() + n.next_ms * interval '1 millisecond', last_error = coalesce(n.error, f.last_error),
        told = f.told or n.tells
      from unnest(:1::text[], :2::integer[], :3::text[], :4::text[], :5::bigint[], :6::boolean[], :7::double precision[], :8::text[], :9::boolean[])
        as n(order_id, source_id, kind, object_id, number, is_failure, next_ms, error, tells)
      join ${s}looked_at l on ${sameObject('l', 'n')}
      where ${sameObject('f', 'n')} and l.sent = n.number
      returning 1)`,
    values: [
      ...keyValues(rows.map(({ fetch }) => fetch)),
      rows.map(({ fetch }) => fetch.number.toString()),
      rows.map(({ isFailure }) => isFailure),
      rows.map(({ nextInMs }) => nextInMs),
      rows.map(({ text }) => (text === null ? null : storable(text))),
      rows.map(({ tells }) => tells),
    ],
  }
}

function failedFetch(
  { fetch, outcome }: FinishedFetch,
  { settings, random }: GatherContext,
): FailedFetch[] {
  if (outcome.kind !== 'failed') return []
  const { failure, text } = outcome
  const pauses = { firstMs: settings.firstRetryMs, maxMs: settings.maxRetryMs }
  const pauseMs = backoffMs(fetch.attempts + 1, random(), pauses)
  const asked = failure.kind === 'later' ? (failure.retryAfterMs ?? 0) : 0
  // a provider that asks for more than the longest pause is asked again then
  const nextInMs = Math.max(pauseMs, Math.min(asked, settings.maxRetryMs))
  return [{ fetch, kind: failure.kind, text, nextInMs }]
}

async function settleBudgets(
  { db, settings }: GatherContext,
  tx: Executor,
  finished: readonly FinishedFetch[],
): Promise<BreakerChange[]> {
  const budgets = finished.flatMap(({ fetch }) => [
    sourceBudget(fetch.source.name),
    accountBudget(fetch.sourceId),
  ])
  const before = await lockBudgets(db.schema, tx, budgets, settings)
  const after = new Map(before)
  const errors = new Map<string, string>()
  const owners = new Map<string, LeasedFetch>()
  const apply = (budget: string, next: BudgetFigures, { fetch, outcome }: FinishedFetch): void => {
    after.set(budget, next)
    owners.set(budget, fetch)
    if (outcome.kind === 'failed') errors.set(budget, outcome.text)
  }
  for (const each of finished) {
    const { fetch, outcome } = each
    const source = sourceBudget(fetch.source.name)
    const account = accountBudget(fetch.sourceId)
    const [ofSource, ofAccount] = [after.get(source), after.get(account)]
    if (ofSource === undefined || ofAccount === undefined) continue
    const rules = { source: rulesOf(source, settings), account: rulesOf(account, settings) }
    const isAccountTroubled = ofAccount.failures >= rules.account.breakerFailures
    const result = sourceResult(outcome, { isProbe: fetch.probes.source, isAccountTroubled })
    apply(source, afterResult(ofSource, result, rules.source), each)
    const own = accountResult(outcome, fetch.probes.account)
    apply(account, afterResult(ofAccount, own, rules.account), each)
  }
  const changes = [...after].flatMap(([budget, figures]): BudgetChange[] =>
    figures === before.get(budget) ? [] : [{ budget, figures, error: errors.get(budget) ?? null }],
  )
  await writeBudgets(
    db.schema,
    tx,
    changes.filter(({ budget, figures }) => {
      const was = before.get(budget)
      return was?.failures !== figures.failures || was.closedForMs !== figures.closedForMs
    }),
  )
  return changes.flatMap(({ budget, figures }) => {
    const was = before.get(budget)
    const fetch = owners.get(budget)
    const rules = rulesOf(budget, settings)
    if (was === undefined || fetch === undefined) return []
    const isOpen = figures.failures >= rules.breakerFailures
    const wasOpen = was.failures >= rules.breakerFailures
    if (isOpen === wasOpen) return []
    const { name, account } = fetch.source
    return {
      budget,
      source: name,
      account: budget === sourceBudget(name) ? null : account,
      failures: figures.failures,
      forMs: isOpen ? (figures.closedForMs ?? 0) : null,
    }
  })
}
