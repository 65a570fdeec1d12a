/**
 * The fenced lease: an operation is handed to one dispatcher under a number that is used once, and the row
 * of its attempt is written in the same commit, before anything is sent. Whoever lost a lease can never
 * write its result.
 */
import type { Executor, Value } from '../postgres/executor.ts'
import { storable } from '../postgres/storable-text.ts'
import { runParts, type WritePart } from '../postgres/write-parts.ts'
import type { Candidate, Outlived, Postponed, SortedCandidates } from './candidates.ts'
import { figuresUpdate, figuresValues, type FiguresAfter } from './destination-row.ts'
import type { DispatchContext, LeasedOperation } from './dispatch-context.ts'
import type { OperationFinding } from './ports.ts'

interface LeaseRow {
  readonly operation_id: string
  readonly attempt_id: string
  readonly lease: string
  readonly request: Uint8Array | null
}

/**
 * Leases what is to be called or looked up, and writes with it what `after` says of the destination. Nothing
 * of it is written where there is nothing to lease.
 */
export async function leaseOperations(
  ctx: DispatchContext,
  tx: Executor,
  { calls, lookups, newWindows }: SortedCandidates,
  after: (leased: number) => FiguresAfter,
): Promise<LeasedOperation[]> {
  const chosen = [...calls, ...lookups]
  if (chosen.length === 0) return []
  const leasedAt = performance.now()
  const figures = figuresValues(ctx.name, after(chosen.length))
  const leases = await writeLeases(ctx, tx, { chosen, lookups, newWindows, figures })
  const restarted = new Set(newWindows)
  const looked = new Set(lookups)
  return chosen.flatMap((candidate) => {
    const { operationId, standing, attempts, orderId, flagged, ageMs, recordedMs } = candidate
    const row = leases.get(operationId)
    if (row === undefined) return []
    const isLookup = looked.has(candidate)
    return {
      operationId,
      kind: isLookup ? ('lookup' as const) : ('call' as const),
      attemptId: row.attempt_id,
      lease: row.lease,
      number: attempts + 1,
      request: row.request,
      standing: {
        ...standing,
        keyAgeMs: isLookup
          ? standing.keyAgeMs
          : restarted.has(candidate)
            ? 0
            : (standing.keyAgeMs ?? 0),
        calls: standing.calls + (isLookup ? 0 : 1),
        lookups: standing.lookups + (isLookup ? 1 : 0),
      },
      orderId,
      flagged,
      ageMs,
      recordedAt: new Date(recordedMs),
      leasedAt,
    }
  })
}

/** The bytes come by a function that gives them to the holder of a lease alone; it sees what was just written. */
async function writeLeases(
  { db: { schema: s }, destination, dispatcher }: DispatchContext,
  tx: Executor,
  of: {
    readonly chosen: readonly Candidate[]
    readonly lookups: readonly Candidate[]
    readonly newWindows: readonly Candidate[]
    readonly figures: readonly Value[]
  },
): Promise<ReadonlyMap<string, LeaseRow>> {
  const ids = (candidates: readonly Candidate[]): string[] =>
    candidates.map((each) => each.operationId)
  const rows = await tx.query<LeaseRow>({
    text: `with taken as (
        update ${s}outbox_operations o set state = 'sending', next_attempt_at = null, attempts = o.attempts + 1,
          calls = o.calls + case when o.operation_id = any ($2::uuid[]) then 0 else 1 end,
          lookups = o.lookups + case when o.operation_id = any ($2::uuid[]) then 1 else 0 end,
          first_attempt_at = case
            when o.operation_id = any ($2::uuid[]) then o.first_attempt_at
            when o.operation_id = any ($3::uuid[]) then clock_timestamp()
            else coalesce(o.first_attempt_at, clock_timestamp()) end,
          lease = nextval('${s}outbox_lease_seq'), leased_by = $5,
          leased_until = clock_timestamp() + $4::double precision * interval '1 millisecond'
        where o.operation_id = any ($1::uuid[])
        returning o.operation_id, o.attempts, o.key_generation, o.lease),
      made as (
        insert into ${s}outbox_attempts (operation_id, number, kind, key_generation, lease, dispatcher)
        select operation_id, attempts, case when operation_id = any ($2::uuid[]) then 'lookup' else 'call' end,
          key_generation, lease, $5 from taken
        returning operation_id, attempt_id, lease),
      counted as (${figuresUpdate(s, 5)})
      select operation_id, attempt_id::text as attempt_id, lease::text as lease, request
      from ${s}leased_requests(array(select attempt_id from made))`,
    repeated: true,
    values: [
      ids(of.chosen),
      ids(of.lookups),
      ids(of.newWindows),
      destination.contract.leaseMs,
      dispatcher,
      ...of.figures,
    ],
  })
  return new Map(rows.map((row) => [row.operation_id, row]))
}

/** Writes what became of the candidates that are not called: canceled, put off, left to a person. */
export async function writeUncalled(
  ctx: DispatchContext,
  tx: Executor,
  { outlived, postponed }: SortedCandidates,
): Promise<void> {
  if (outlived.length === 0 && postponed.length === 0) return
  const asked = postponed.filter((each) => each.nextInMs === null)
  const found: OperationFinding[] = asked.map(({ candidate, reason }) => ({
    kind: 'operation_uncertain',
    operationId: candidate.operationId,
    orderId: candidate.orderId,
    figures: {
      operation: candidate.operationId,
      destination: ctx.name,
      attempts: candidate.attempts,
      reason,
    },
  }))
  const settled = outlived.flatMap(({ candidate }) =>
    candidate.flagged ? [candidate.operationId] : [],
  )
  await runParts(tx, [
    ...postponedParts(ctx.db.schema, postponed),
    ...canceledParts(ctx, outlived),
    ...ctx.findings.parts(found, settled),
  ])
}

function postponedParts(s: string, postponed: readonly Postponed[]): WritePart[] {
  if (postponed.length === 0) return []
  const byId = Object.fromEntries(
    postponed.map(({ candidate, nextInMs, reason }) => [
      candidate.operationId,
      { next_ms: nextInMs, reason: reason === null ? null : storable(reason) },
    ]),
  )
  return [
    {
      name: 'postponed',
      sql: `postponed_steps as materialized (select :1::text::jsonb as all_steps),
      postponed as (
        update ${s}outbox_operations o set (next_attempt_at, last_error, flagged) = (
          select clock_timestamp() + n.next_ms * interval '1 millisecond', coalesce(n.reason, o.last_error),
            o.flagged or n.next_ms is null
          from jsonb_to_record((select all_steps from postponed_steps) -> o.operation_id::text) as n(next_ms double precision, reason text))
        where o.operation_id = any (:2::uuid[]) returning 1)`,
      values: [JSON.stringify(byId), Object.keys(byId)],
    },
  ]
}

function canceledParts(
  { db, dispatcher }: DispatchContext,
  outlived: readonly Outlived[],
): WritePart[] {
  if (outlived.length === 0) return []
  const s = db.schema
  const ids = outlived.map(({ candidate }) => candidate.operationId)
  return [
    {
      name: 'canceled',
      sql: `canceled as (
        update ${s}outbox_operations o set state = 'canceled', next_attempt_at = null, finished_at = now(), flagged = false
        where o.operation_id = any (:1::uuid[]) returning 1)`,
      values: [ids],
    },
    {
      name: 'canceled_decisions',
      sql: `canceled_decisions as (
        insert into ${s}ledger_decisions (order_id, workflow, kind, final, from_state, to_state, reason, evidence, actor)
        select order_id, workflow, 'canceled', false, state, state,
          'operation canceled: it makes sense only while the order is ' || meant || ', and it is ' || state,
          jsonb_build_object('operation', operation_id), :6
        from unnest(:1::text[], :2::text[], :3::text[], :4::text[], :5::text[]) as n(operation_id, order_id, workflow, state, meant)
        order by operation_id returning 1)`,
      values: [
        ids,
        outlived.map(({ candidate }) => candidate.orderId),
        outlived.map(({ workflow }) => workflow),
        outlived.map(({ orderState }) => orderState),
        outlived.map(({ candidate }) => (candidate.whileStates ?? []).join(' or ')),
        dispatcher,
      ],
    },
    {
      name: 'canceled_wakes',
      sql: `canceled_wakes as (insert into ${s}outbox_wakes (order_id) select unnest(:1::text[]) returning 1)`,
      values: [outlived.map(({ candidate }) => candidate.orderId)],
    },
  ]
}
