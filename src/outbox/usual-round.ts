/**
 * The usual round in one round trip: first calls that were sent go in, operations that were never called
 * go out. It says no, with nothing written, where anything else is at hand: a failure, a breaker, a rate, a
 * lookup, a lease that is lost, a look for leases that ran out. Then the longer way does all of it.
 */
import { areStepsPlanned, reach } from '../core/failpoints.ts'
import type { Statement } from '../postgres/executor.ts'
import { sqlstateOf } from '../postgres/sqlstate.ts'
import { dispatchSetup } from './destination-row.ts'
import type { DispatchContext, FinishedAttempt, LeasedOperation } from './dispatch-context.ts'
import { receiptJson } from './receipt-json.ts'
import type { RoundReport, RoundRequest } from './round-report.ts'
import { answerOf, sentStep, statusOf, type SettledAttempt } from './settle.ts'

/** What `dispatch_round` answers: all of it text beside the bytes, since it comes in binary form. */
interface RoundRow {
  readonly kind: 'slow' | 'leased' | 'round'
  /** Of the round: where the next one goes on. */
  readonly operation_id: string | null
  /** Of the round: how many were due. */
  readonly attempt_id: string | null
  /** Of the round: whether some of them were not new. */
  readonly lease: string | null
  readonly order_id: string | null
  readonly age_ms: string | null
  readonly request: Uint8Array | null
}

/** The lease of a result was lost: nothing was written. */
const leaseLost = 'HL001'

/** The statement of a usual round, exported so that its plans can be asserted. */
export function usualRoundText(schema: string): string {
  return `select * from ${schema}dispatch_round($1, $2, $3::integer, $4::double precision, $5::integer, $6::integer,
    $7::timestamptz, $8::boolean, $9::uuid[], $10::bigint[], $11::bigint[], $12::integer[], $13::text[], $14::text[], $15::text[])`
}

/** Runs a usual round; null where it is none. */
export async function runUsualRound(
  ctx: DispatchContext,
  request: RoundRequest,
): Promise<RoundReport | null> {
  const { contract } = ctx.destination
  if (request.sweeps || request.others || contract.ratePerSecond !== null) return null
  if (!request.finished.every(isFirstSent)) return null
  const leasedAt = performance.now()
  let rows: RoundRow[]
  try {
    rows = await ask(ctx, statementOf(ctx, request), request.finished.length > 0)
  } catch (error) {
    if (sqlstateOf(error) === leaseLost) return null
    throw error
  }
  const round = rows.find((row) => row.kind === 'round')
  if (round === undefined) return null
  const others = round.lease === 'true'
  return {
    settled: request.finished.map(settledOf),
    leased: (
      await Promise.all(
        rows.filter((row) => row.kind === 'leased').map((row) => leasedOf(ctx, row, leasedAt)),
      )
    ).filter((each) => each !== null),
    sorted: null,
    more: round.operation_id !== null,
    until: others ? null : round.operation_id,
    waitMs: null,
    breaker: null,
    failures: 0,
    others,
  }
}

/** A call of an operation that was never called before, and it was done. */
function isFirstSent({ operation, outcome }: FinishedAttempt): boolean {
  const { number, kind, flagged, standing } = operation
  return (
    outcome.kind === 'sent' && kind === 'call' && number === 1 && !flagged && !standing.uncertain
  )
}

function statementOf(ctx: DispatchContext, request: RoundRequest): Statement {
  const { contract } = ctx.destination
  const { finished } = request
  return {
    text: usualRoundText(ctx.db.schema),
    repeated: true,
    binary: true,
    values: [
      ctx.name,
      ctx.dispatcher,
      Math.ceil(ctx.lockTimeoutMs),
      contract.leaseMs,
      contract.concurrency,
      Math.min(request.wanted, ctx.batch),
      request.from,
      contract.sequence === 'order',
      finished.map(({ operation }) => operation.operationId),
      finished.map(({ operation }) => operation.lease),
      finished.map(({ operation }) => operation.attemptId),
      finished.map(({ outcome }) => statusOf(outcome)),
      finished.map(({ outcome }) => ('receipt' in outcome ? receiptJson(outcome.receipt) : null)),
      finished.map(({ outcome }) => answerOf(outcome)),
      finished.map(({ operation }) => operation.orderId),
    ],
  }
}

/** One statement is one transaction; steps need to stand around its COMMIT. */
async function ask(
  { db, lockTimeoutMs }: DispatchContext,
  statement: Statement,
  hasResults: boolean,
): Promise<RoundRow[]> {
  if (!areStepsPlanned()) return db.query<RoundRow>(statement)
  return db.transaction((tx) => tx.query<RoundRow>(statement), {
    setup: dispatchSetup(lockTimeoutMs),
    ...(hasResults
      ? { beforeCommit: async () => reach('D5'), afterCommit: async () => reach('D6') }
      : {}),
  })
}

function settledOf(attempt: FinishedAttempt): SettledAttempt {
  const { outcome } = attempt
  const step = sentStep('receipt' in outcome ? (outcome.receipt ?? {}) : {})
  return { ...attempt, step, held: true, lateProof: false }
}

/** Null where its bytes could not be read now: its lease runs out, and then it is due again. */
async function leasedOf(
  ctx: DispatchContext,
  row: RoundRow,
  leasedAt: number,
): Promise<LeasedOperation | null> {
  const attemptId = row.attempt_id ?? ''
  let { request } = row
  try {
    request ??= await exactRequest(ctx, attemptId)
  } catch {
    return null
  }
  return {
    operationId: row.operation_id ?? '',
    kind: 'call',
    attemptId,
    lease: row.lease ?? '',
    number: 1,
    request,
    standing: { uncertain: false, generation: 1, keyAgeMs: 0, calls: 1, lookups: 0 },
    orderId: row.order_id,
    flagged: false,
    ageMs: Number(row.age_ms),
    recordedAt: null,
    leasedAt,
  }
}

/** Bytes that the driver may not have carried exactly in binary form come as text; null where there are none. */
async function exactRequest(
  { db }: DispatchContext,
  attemptId: string,
): Promise<Uint8Array | null> {
  const [row] = await db.query<{ request: Uint8Array | null }>({
    text: `select request from ${db.schema}leased_requests($1::bigint[])`,
    values: [[attemptId]],
  })
  return row?.request ?? null
}
