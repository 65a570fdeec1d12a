/**
 * Results, under the lease that they belong to: one statement for all that came in meanwhile. A result
 * whose lease is lost is recorded as late and moves nothing, except that the proof of a call having been
 * done ends an operation of which nobody knew.
 */
import type { Executor } from '../postgres/executor.ts'
import { storable } from '../postgres/storable-text.ts'
import { runParts } from '../postgres/write-parts.ts'
import type { Receipt } from './destination.ts'
import { traitsOf, type DispatchContext, type FinishedAttempt } from './dispatch-context.ts'
import { lateProofs, settleLate } from './late.ts'
import { stepAfter, type AttemptOutcome, type Step } from './next-step.ts'
import type { OperationFinding } from './ports.ts'
import { receiptJson } from './receipt-json.ts'
import { unparkOrders } from './unpark.ts'

/** An attempt, and what follows from it. */
export interface SettledAttempt extends FinishedAttempt {
  readonly step: Step
  /** Whether its lease held, so that the step was written. */
  readonly held: boolean
  /** Its answer came after its lease, and ended the operation nevertheless. */
  readonly lateProof: boolean
}

/** Most of an answer that is kept, in bytes. */
const answerBytes = 4096
/** Most of an error that is kept, in characters. */
const errorLength = 500

/** Writes what attempts came to. Runs under the destination's lock. */
export async function settleAttempts(
  ctx: DispatchContext,
  tx: Executor,
  finished: readonly FinishedAttempt[],
): Promise<readonly SettledAttempt[]> {
  if (finished.length === 0) return []
  const traits = traitsOf(ctx.destination)
  const steps = finished.map(({ operation, outcome, finishedAt }) => {
    const { keyAgeMs } = operation.standing
    const aged = keyAgeMs === null ? null : keyAgeMs + (finishedAt - operation.leasedAt)
    return stepAfter({ ...operation.standing, keyAgeMs: aged }, outcome, traits, Math.random())
  })
  const proofs = await lateProofs(
    ctx.db.schema,
    tx,
    finished.flatMap(({ operation }, index) => {
      const state = steps[index]?.state
      // a proof of an earlier call weighs more than a later refusal
      const open = state !== 'sent'
      return open && operation.number > 1 ? [operation] : []
    }),
  )
  const attempts = finished.map((attempt, index) => {
    const receipt = proofs.get(attempt.operation.operationId)
    const step = steps[index] as Step
    return { ...attempt, step: receipt === undefined ? step : sentStep(receipt) }
  })
  const held = await writeSteps(ctx, tx, attempts)
  const settled: SettledAttempt[] = []
  for (const attempt of attempts) {
    const isHeld = held.has(attempt.operation.lease)
    const lateProof = !isHeld && (await settleLate(ctx, tx, attempt))
    settled.push({ ...attempt, held: isHeld, lateProof })
  }
  await writeFindings(ctx, tx, settled)
  if (ctx.destination.contract.sequence === 'order')
    await unparkOrders(ctx.db.schema, tx, ctx.name, endedOrders(settled))
  return settled
}

function endedOrders(settled: readonly SettledAttempt[]): string[] {
  return settled.flatMap(({ operation: { orderId }, step, held, lateProof }) =>
    orderId !== null && ((held && step.state === 'sent') || lateProof) ? [orderId] : [],
  )
}

/** The step of an operation that was done. */
export function sentStep(receipt: Receipt): Step {
  return {
    state: 'sent',
    receipt,
    nextInMs: null,
    error: null,
    newWindow: false,
    newGeneration: false,
    lookups: 0,
    uncalled: 0,
    finding: null,
  }
}

interface SteppedAttempt extends FinishedAttempt {
  readonly step: Step
}

/**
 * One statement: where each operation goes on, the answers, and the orders to be looked at. Answers with the
 * leases that held; an operation may come twice, with the result of a lease that is lost and of its own.
 */
async function writeSteps(
  { db: { schema: s } }: DispatchContext,
  tx: Executor,
  attempts: readonly SteppedAttempt[],
): Promise<ReadonlySet<string>> {
  const answered = attempts.filter(({ outcome }) => outcome.kind !== 'died')
  const rows = await tx.query<{ lease: string }>({
    // the steps are read once: a cast inside of the update would read all of them for each row
    text: `with steps as materialized (select $1::text::jsonb as all_steps),
      held as materialized (
        select operation_id, lease from ${s}outbox_operations
        where operation_id = any ($2::uuid[]) and lease = any ($3::bigint[])),
      settled as (
        update ${s}outbox_operations o set
          (state, next_attempt_at, receipt, last_error, first_attempt_at, key_generation, lookups, flagged, finished_at,
            uncertain_since, calls) = (
            select n.state, clock_timestamp() + n.next_ms * interval '1 millisecond', n.receipt, n.error,
              case when n.new_window then null else o.first_attempt_at end,
              o.key_generation + case when n.new_generation then 1 else 0 end, n.lookups, n.flagged,
              case when n.state = 'sent' then now() end,
              case when n.state = 'uncertain' then coalesce(o.uncertain_since, clock_timestamp()) end,
              greatest(0, o.calls - coalesce(n.uncalled, 0))
            from jsonb_to_record((select all_steps from steps) -> o.lease::text) as n(state text, next_ms double precision,
              receipt jsonb, error text, new_window boolean, new_generation boolean, lookups integer, flagged boolean, uncalled integer)),
          lease = null, leased_until = null, leased_by = null
        where o.operation_id = any (array(select operation_id from held)) and o.lease = any ($3::bigint[])
        returning o.order_id, o.state),
      answered as (
        insert into ${s}outbox_answers (attempt_id, outcome, status, error, answer, late, receipt)
        select attempt_id, outcome, status, error, decode(answer, 'hex'), late, case when late then receipt::jsonb end
        from (select n.*, n.lease <> all (array(select lease from held)) as late
          from unnest($4::bigint[], $5::bigint[], $6::text[], $7::integer[], $8::text[], $9::text[], $10::text[])
            as n(attempt_id, lease, outcome, status, error, answer, receipt) offset 0) n
        order by attempt_id on conflict (attempt_id) do nothing),
      woken as (
        insert into ${s}outbox_wakes (order_id)
        select order_id from settled where order_id is not null and state in ('sent', 'dead'))
      select lease::text as lease from held`,
    repeated: true,
    values: [
      JSON.stringify(Object.fromEntries(attempts.map(stepEntry))),
      attempts.map(({ operation }) => operation.operationId),
      attempts.map(({ operation }) => operation.lease),
      answered.map(({ operation }) => operation.attemptId),
      answered.map(({ operation }) => operation.lease),
      answered.map(({ outcome }) => outcome.kind),
      answered.map(({ outcome }) => statusOf(outcome)),
      answered.map(({ outcome }) => errorOf(outcome)),
      answered.map(({ outcome }) => answerOf(outcome)),
      answered.map(({ outcome }) => ('receipt' in outcome ? receiptJson(outcome.receipt) : null)),
    ],
  })
  return new Set(rows.map((row) => row.lease))
}

function stepEntry({ operation, step }: SteppedAttempt): [string, Record<string, unknown>] {
  return [
    operation.lease,
    {
      state: step.state,
      next_ms: step.nextInMs,
      receipt: step.receipt === null ? null : JSON.parse(receiptJson(step.receipt)),
      error: step.error === null ? null : storable(step.error.slice(0, errorLength)),
      new_window: step.newWindow,
      new_generation: step.newGeneration,
      lookups: step.lookups,
      uncalled: step.uncalled,
      flagged: step.finding !== null || (operation.flagged && step.state === 'uncertain'),
    },
  ]
}

/** The HTTP status that an outcome came with. */
export function statusOf(outcome: AttemptOutcome): number | null {
  return 'status' in outcome && Number.isSafeInteger(outcome.status)
    ? (outcome.status ?? null)
    : null
}

/** What an outcome says went wrong, short enough to be kept. */
export function errorOf(outcome: AttemptOutcome): string | null {
  return 'error' in outcome ? storable(String(outcome.error).slice(0, errorLength)) : null
}

/** What is kept of the answer, in hexadecimal digits. */
export function answerOf(outcome: AttemptOutcome): string | null {
  if (!('answer' in outcome) || outcome.answer === undefined) return null
  return Buffer.from(outcome.answer.subarray(0, answerBytes)).toString('hex')
}

async function writeFindings(
  ctx: DispatchContext,
  tx: Executor,
  settled: readonly SettledAttempt[],
): Promise<void> {
  const found: OperationFinding[] = []
  const over: string[] = []
  for (const { operation, outcome, step, held } of settled) {
    if (!held) continue
    if (operation.flagged && step.state !== 'uncertain') over.push(operation.operationId)
    if (step.finding === null) continue
    const { operationId, orderId, number } = operation
    found.push({
      kind: step.finding,
      operationId,
      orderId,
      figures: {
        operation: operationId,
        destination: ctx.name,
        status: statusOf(outcome),
        attempts: number,
      },
    })
  }
  // closed first, in a statement of its own: one that was uncertain and is dead now has both kinds
  if (over.length > 0) await runParts(tx, ctx.findings.parts([], over))
  if (found.length > 0) await runParts(tx, ctx.findings.parts(found, []))
}
