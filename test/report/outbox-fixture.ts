/** Operations and what was tried, written by SQL as the dispatcher would have left them. */
import { createHash, randomUUID } from 'node:crypto'
import type { Executor } from '../../src/postgres/executor.ts'
import type { LedgerFixture } from './ledger-fixture.ts'

/** An operation to be recorded; what is not given is that of a new one to `email`. */
export interface RecordedOperation {
  readonly id?: string
  readonly destination?: string
  readonly name?: string
  readonly effect?: readonly [type: string, reference: string] | null
  readonly decision?: string | null
  readonly order?: string | null
  readonly promise?: 'once' | 'at_least_once'
  readonly windowMs?: number
  readonly request?: string | null
  readonly state?: string
  readonly generation?: number
  /** What was tried: seconds from the recording to the start, and what came of it. */
  readonly tries?: readonly Tried[]
  /** Seconds from now; null for never. */
  readonly nextIn?: number | null
  readonly error?: string
  readonly receipt?: object
  readonly whileStates?: readonly string[]
}

/** One attempt. Without an outcome nobody knows, or it is under way. */
export interface Tried {
  readonly kind?: 'call' | 'lookup'
  readonly generation?: number
  readonly at?: number
  readonly outcome?: string
  readonly status?: number
  readonly error?: string
  readonly late?: boolean
  readonly answer?: string
}

const finished = ['sent', 'canceled', 'discarded']

/** Records an operation with its request and attempts; returns its id. */
export async function recordOperation(
  db: Pick<Executor, 'query'>,
  operation: RecordedOperation = {},
): Promise<string> {
  const id = operation.id ?? randomUUID()
  const request = operation.request === undefined ? `{"to":"${id}"}` : operation.request
  const state = operation.state ?? 'pending'
  const tries = operation.tries ?? []
  const effect = operation.effect ?? null
  const uncertain = state === 'uncertain' || state === 'sending'
  const due = state === 'pending' || state === 'uncertain' ? (operation.nextIn ?? 0) : null
  await db.query({
    text: `insert into hookledger.outbox_operations (operation_id, destination, order_id, effect_type, effect_reference, name,
        decision_id, request_sha256, request_bytes, while_states, promise, window_ms, state, key_generation, attempts,
        next_attempt_at, first_attempt_at, uncertain_since, lease, leased_until, leased_by, receipt, last_error, finished_at)
      values ($1, $2, $3, $4, $5, $6, $7, sha256(convert_to($8, 'UTF8')), octet_length($8), $9::text[], $10, $11, $12, $13, $14,
        now() + $15 * interval '1 second', now() + $16 * interval '1 second', case when $17 then now() end,
        case when $18 then 1 end, case when $18 then now() + interval '30 seconds' end, case when $18 then 'dispatcher:1' end,
        $19::text::jsonb, $20, case when $21 then now() end)`,
    values: [
      id,
      operation.destination ?? 'email',
      operation.order === undefined ? '1001' : operation.order,
      effect?.[0] ?? null,
      effect?.[1] ?? null,
      operation.name ?? effect?.[0] ?? 'receipt',
      operation.decision ?? null,
      request ?? '{}',
      operation.whileStates ?? null,
      operation.promise ?? 'once',
      operation.windowMs ?? (operation.promise === 'at_least_once' ? 0 : 82_800_000),
      state,
      operation.generation ?? 1,
      tries.length,
      operation.nextIn === null ? null : due,
      tries[0]?.at ?? (tries.length > 0 ? 0 : null),
      uncertain && tries.length > 0,
      state === 'sending',
      operation.receipt === undefined ? null : JSON.stringify(operation.receipt),
      operation.error ?? null,
      finished.includes(state),
    ],
  })
  if (request !== null) {
    await db.query({
      text: `insert into hookledger.outbox_requests (operation_id, request) values ($1, convert_to($2, 'UTF8'))`,
      values: [id, request],
    })
  }
  for (const [index, tried] of tries.entries()) await recordTry(db, id, index + 1, tried)
  return id
}

async function recordTry(
  db: Pick<Executor, 'query'>,
  id: string,
  number: number,
  tried: Tried,
): Promise<void> {
  const [row] = await db.query<{ attempt_id: string }>({
    text: `insert into hookledger.outbox_attempts (operation_id, number, kind, key_generation, lease, dispatcher, started_at)
      values ($1, $2, $3, $4, nextval('hookledger.outbox_lease_seq'), 'dispatcher:1', now() + $5 * interval '1 second')
      returning attempt_id`,
    values: [id, number, tried.kind ?? 'call', tried.generation ?? 1, tried.at ?? number - 1],
  })
  if (tried.outcome === undefined) return
  await db.query({
    text: `insert into hookledger.outbox_answers (attempt_id, outcome, status, error, answer, late, answered_at)
      values ($1, $2, $3, $4, convert_to($5, 'UTF8'), $6, now() + ($7 + 0.12) * interval '1 second')`,
    values: [
      row?.attempt_id ?? '',
      tried.outcome,
      tried.status ?? null,
      tried.error ?? null,
      tried.answer ?? null,
      tried.late === true,
      tried.at ?? number - 1,
    ],
  })
}

/** The operations of {@link outboxHistory}. */
export interface OutboxHistory {
  readonly decision: string
  readonly sent: string
  readonly renewed: string
  readonly uncertain: string
  readonly asking: string
  readonly dead: string
  readonly canceled: string
  readonly discarded: string
  readonly app: string
}

const ids = {
  sent: '5e000000-0000-5000-8000-000000000001',
  renewed: '5e000000-0000-5000-8000-000000000002',
  uncertain: '0c000000-0000-5000-8000-000000000003',
  asking: 'a5000000-0000-5000-8000-000000000004',
  dead: 'dead0000-0000-5000-8000-000000000005',
  canceled: 'ca000000-0000-5000-8000-000000000006',
  discarded: 'd1000000-0000-5000-8000-000000000007',
  app: 'ab000000-0000-5000-8000-000000000008',
}
const ofShipment = ['sent', 'renewed', 'uncertain', 'asking', 'dead', 'canceled'] as const

/** An effect of order 1001 with an operation in every state, as they may stand after a bad day. */
export async function outboxHistory(fixture: LedgerFixture): Promise<OutboxHistory> {
  const event = await fixture.event({ id: 'evt_ship', type: 'order.packed' })
  const write = (decision: string, tx: Executor): Promise<void> => writeShipment(tx, decision)
  const decision = await fixture.decide({
    event,
    kind: 'moved',
    order: '1001',
    from: 'paid',
    to: 'paid',
    reason: 'stays paid: shipment',
    effects: [{ type: 'shipment' }],
    evidence: { operations: ofShipment.map((name) => ids[name]) },
    together: write,
  })
  await fixture.decide({
    event: null,
    kind: 'canceled',
    order: '1001',
    from: 'paid',
    to: 'paid',
    final: false,
    reason: 'the order is paid, and no longer pending',
    evidence: { operation: ids.canceled },
  })
  for (const name of ['asking', 'dead'] as const) {
    await fixture.finding({
      kind: name === 'dead' ? 'operation_dead' : 'operation_uncertain',
      order: '1001',
      evidence: { operation: ids[name], destination: 'email' },
    })
  }
  await recordOperation(fixture.db, { id: ids.app, order: null, name: 'invoice 12', nextIn: 60 })
  await recordOperation(fixture.db, { id: ids.discarded, order: null, state: 'discarded' })
  await act(fixture, 'outbox discard', ids.discarded)
  return { ...ids, decision }
}

async function writeShipment(tx: Executor, decision: string): Promise<void> {
  const of = { decision, effect: ['shipment', ''] } as const
  await recordOperation(tx, {
    ...of,
    id: ids.sent,
    name: 'label',
    state: 'sent',
    receipt: { message: 'm_1' },
    tries: [
      { outcome: 'retry', status: 503, error: 'status 503' },
      { outcome: 'sent', status: 200, answer: '{"secret":"answer"}' },
    ],
  })
  await recordOperation(tx, {
    ...of,
    id: ids.renewed,
    name: 'pickup',
    state: 'sent',
    generation: 2,
    tries: [
      { outcome: 'uncertain', error: 'timeout' },
      { kind: 'lookup', at: 100_000, outcome: 'absent' },
      { generation: 2, at: 100_001, outcome: 'sent' },
    ],
  })
  await recordOperation(tx, {
    ...of,
    id: ids.uncertain,
    state: 'uncertain',
    error: 'timeout',
    nextIn: 90,
    tries: [{ outcome: 'uncertain', error: 'timeout' }, {}],
  })
  await recordOperation(tx, {
    ...of,
    id: ids.asking,
    name: 'parcel',
    state: 'uncertain',
    nextIn: null,
    error: 'no answer to a lookup',
    tries: [{}, { kind: 'lookup', outcome: 'no_answer', error: 'no answer to a lookup' }],
  })
  await recordOperation(tx, {
    ...of,
    id: ids.dead,
    name: 'gift',
    state: 'dead',
    error: 'status 422',
    tries: [{ outcome: 'refused', status: 422, error: 'status 422' }],
  })
  await recordOperation(tx, {
    ...of,
    id: ids.canceled,
    name: 'reminder',
    state: 'canceled',
    whileStates: ['pending'],
  })
}

/** Records what a person did about an operation. */
export async function act(
  fixture: LedgerFixture,
  name: string,
  id: string,
  details: object = {},
): Promise<void> {
  await fixture.sql(
    `insert into hookledger.operator_acts (act, target, reason, actor, details)
     values ($1, $2, 'the carrier said so', 'ada', $3::text::jsonb)`,
    [name, `operation:${id}`, JSON.stringify(details)],
  )
}

/** The hash that the database keeps of a request. */
export function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex')
}
