/**
 * The outbox's part of a batch's one statement: operations and their exact requests become visible with
 * the effect that asks for them, or not at all. Their orders are locked, so that nobody else can insert the
 * same; they keep the order in which the decisions name them, which is the sequence in which they are sent.
 */
import { hash } from 'node:crypto'
import type { TraceContext } from '../core/tracing.ts'
import type { Executor, Value } from '../postgres/executor.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import type { OperationDraft } from '../workflow/outbox-port.ts'
import type { OperationPromise } from './promise.ts'

/** An operation of an effect, as its commit records it. */
export interface RecordedOperation extends OperationDraft {
  readonly decisionId: bigint
  readonly promise: OperationPromise
  readonly windowMs: number
  /** Of the span that decided it; null or absent where traces are off. */
  readonly trace?: TraceContext | null
}

/** The hash of a request as it is recorded, in hexadecimal digits. */
export function requestHash(request: Uint8Array): string {
  return hash('sha256', request, 'hex')
}

/** The writes of a batch's operations; none where it has none. */
export function operationsParts(
  schema: string,
  operations: readonly RecordedOperation[],
): WritePart[] {
  if (operations.length === 0) return []
  const column = (of: (each: RecordedOperation) => string | number | null): Value =>
    operations.map(of)
  const ids = column((each) => each.operationId)
  const isTraced = operations.some(({ trace }) => trace != null)
  const trace = isTraced ? ', trace' : ''
  return [
    {
      name: 'operations',
      sql: `operations as (
        insert into ${schema}outbox_operations (operation_id, destination, order_id, effect_type, effect_reference, name,
          decision_id, request_sha256, request_bytes, while_states, promise, window_ms${trace})
        select operation_id, destination, order_id, effect_type, effect_reference, name,
          decision_id, decode(request_sha256, 'hex'), request_bytes,
          (select array_agg(s.state) from jsonb_array_elements_text(while_states::jsonb) as s(state)), promise, window_ms${trace}
        from unnest(:1::uuid[], :2::text[], :3::text[], :4::text[], :5::text[], :6::text[], :7::bigint[], :8::text[],
          :9::integer[], :10::text[], :11::text[], :12::bigint[]${isTraced ? ', :13::text[]' : ''})
          with ordinality as n(operation_id, destination, order_id, effect_type, effect_reference, name, decision_id,
            request_sha256, request_bytes, while_states, promise, window_ms${trace}, place)
        order by place
        returning 1)`,
      values: [
        ids,
        column((each) => each.destination),
        column((each) => each.orderId),
        column((each) => each.effectType),
        column((each) => each.effectReference),
        column((each) => each.name),
        column((each) => each.decisionId.toString()),
        column((each) => requestHash(each.request)),
        column((each) => each.request.byteLength),
        column((each) => (each.whileStates === null ? null : JSON.stringify(each.whileStates))),
        column((each) => each.promise),
        column((each) => each.windowMs),
        ...(isTraced ? [column((each) => each.trace ?? null)] : []),
      ],
      expected: operations.length,
    },
    {
      name: 'requests',
      sql: `requests as (
        insert into ${schema}outbox_requests (operation_id, request)
        select operation_id, decode(request, 'hex') from unnest(:1::uuid[], :2::text[]) as n(operation_id, request)
        returning 1)`,
      values: [ids, column((each) => Buffer.from(each.request).toString('hex'))],
      expected: operations.length,
    },
  ]
}

/** An operation that the app asks for in its own transaction. */
export interface AppDraft {
  readonly operationId: string
  readonly destination: string
  readonly name: string
  readonly orderId: string | null
  readonly request: Uint8Array
  readonly promise: OperationPromise
  readonly windowMs: number
  /** Of what is active where the app asks for it; null where traces are off. */
  readonly trace: TraceContext | null
}

/**
 * Records one operation in the app's own transaction: only text, so that every client can bind it. Waits
 * for another transaction that records the same at this moment.
 */
export async function addOperation(
  schema: string,
  tx: Executor,
  draft: AppDraft,
): Promise<'added' | 'existed' | 'changed'> {
  const sha256 = requestHash(draft.request)
  const isTraced = draft.trace !== null
  const [row] = await tx.query<{ added: boolean }>({
    text: `with added as (
        insert into ${schema}outbox_operations (operation_id, destination, name, order_id, request_sha256, request_bytes, promise, window_ms${isTraced ? ', trace' : ''})
        values ($1::uuid, $2, $3, $4, decode($5, 'hex'), $6::integer, $7, $8::bigint${isTraced ? ', $10' : ''})
        on conflict (operation_id) do nothing returning operation_id),
      requests as (
        insert into ${schema}outbox_requests (operation_id, request)
        select operation_id, decode($9, 'hex') from added)
      select exists (select 1 from added) as added`,
    values: [
      draft.operationId,
      draft.destination,
      draft.name,
      draft.orderId,
      sha256,
      String(draft.request.byteLength),
      draft.promise,
      String(draft.windowMs),
      Buffer.from(draft.request).toString('hex'),
      ...(isTraced ? [draft.trace] : []),
    ],
  })
  if (row?.added === true) return 'added'
  const [known] = await tx.query<{ same: boolean }>({
    text: `select encode(request_sha256, 'hex') = $2 as same from ${schema}outbox_operations where operation_id = $1::uuid`,
    values: [draft.operationId, sha256],
  })
  return known?.same === true ? 'existed' : 'changed'
}
