/**
 * Operations as people read them: where each stands, what was tried, what comes next. Never a request
 * or an answer: those are read through `read_operation`, which records who and why.
 */
import type { Database } from '../postgres/executor.ts'
import { appOperationId } from '../postgres/permanent-id.ts'
import { blockedBy, noneInSequence, type Sequenced } from './operation-blocked.ts'
import type { AttemptView, OperationRecord, OperationView } from './record-views.ts'
import { counted, exactJson, isoTime, requiredTime } from './row-values.ts'

/** Which operations to list. */
export interface OperationFilter {
  /** States; empty means all of them. */
  readonly states: readonly string[]
  readonly destination?: string | undefined
  readonly orderId?: string | undefined
  /** Continues after the operation with this sequence number, toward older ones. */
  readonly after?: string | undefined
  readonly limit: number
}

/** States in which an operation is not finished. */
export const openStates: readonly string[] = ['pending', 'sending', 'uncertain', 'dead']

/** How many operations of one order are read, the newest; and how many attempts of each. */
export const shownOperations = 500
const shownAttempts = 200

/** The operations that fit, the newest first. */
export async function listOperations(
  db: Database,
  filter: OperationFilter,
  sequenced: Sequenced = noneInSequence,
): Promise<OperationView[]> {
  const rows = await db.query<OperationRow>({
    text: `${selectOperations(db.schema)}
      where ${stateCondition(filter.states)} and ($2::text is null or o.destination = $2)
        and ($3::text is null or o.order_id = $3) and ($4::bigint is null or o.sequence < $4::bigint)
      order by o.sequence desc limit $5`,
    values: [
      filter.states,
      filter.destination ?? null,
      filter.orderId ?? null,
      filter.after ?? null,
      filter.limit,
    ],
  })
  return viewsOf(db, rows, sequenced)
}

/** The operations with these ids, in no order. */
export async function operationsWith(
  db: Database,
  ids: readonly string[],
  sequenced: Sequenced = noneInSequence,
): Promise<OperationView[]> {
  if (ids.length === 0) return []
  const rows = await db.query<OperationRow>({
    text: `${selectOperations(db.schema)} where o.operation_id = any ($1::uuid[])`,
    values: [ids],
  })
  return viewsOf(db, rows, sequenced)
}

/** What is not finished is little, and each part of it has an index of its own. */
function stateCondition(states: readonly string[]): string {
  const named = '(cardinality($1::text[]) = 0 or o.state = any ($1::text[]))'
  const isOpen = states.length > 0 && states.every((state) => openStates.includes(state))
  if (!isOpen) return named
  return `${named} and (o.next_attempt_at is not null or o.state = 'sending' or o.state in ('dead', 'uncertain'))`
}

/**
 * The operations whose id begins so (six digits or more): several where that is the beginning of
 * several. The key that the destination saw (`id:2`), `operation:id`, and the key of `outbox.add` are
 * understood, too.
 */
export async function findOperations(
  db: Database,
  id: string,
  sequenced: Sequenced = noneInSequence,
): Promise<OperationView[]> {
  const bounds = idBounds(id)
  const named =
    bounds === null
      ? []
      : await db.query<OperationRow>({
          text: `${selectOperations(db.schema)} where o.operation_id between $1::uuid and $2::uuid order by o.operation_id limit 10`,
          values: bounds,
        })
  return viewsOf(db, named.length > 0 ? named : await findByKey(db, id), sequenced)
}

/** What the app recorded under this key: its id follows from it, for each destination that there is. */
async function findByKey(db: Database, key: string): Promise<OperationRow[]> {
  const s = db.schema
  const destinations = await db.query<{ destination: string; installation_id: string }>({
    text: `select d.destination, i.installation_id::text as installation_id
      from ${s}outbox_destinations d cross join ${s}installation i order by 1`,
  })
  if (destinations.length === 0) return []
  const ids = destinations.map((each) =>
    appOperationId(each.installation_id, each.destination, key),
  )
  return db.query<OperationRow>({
    text: `${selectOperations(s)} where o.operation_id = any ($1::uuid[]) and o.effect_type is null order by o.operation_id`,
    values: [ids],
  })
}

/** The first and the last id that begin so; null for what is no beginning of an id. */
function idBounds(id: string): [string, string] | null {
  const [, start = ''] = /^(?:operation:)?([0-9a-f-]{6,36})(?::\d{1,9})?$/i.exec(id) ?? []
  const digits = start.replaceAll('-', '').toLowerCase()
  if (digits.length < 6 || digits.length > 32) return null
  const whole = digits.padEnd(32, '0').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
  const isWritten = whole.startsWith(start.toLowerCase()) || digits === start.toLowerCase()
  if (!isWritten) return null
  return [digits.padEnd(32, '0'), digits.padEnd(32, 'f')]
}

/** The operations of an order, and further ones by their ids, in the order in which they were recorded. */
export async function operationsAbout(
  db: Database,
  about: { readonly orderId: string | null; readonly ids: readonly string[] },
  sequenced: Sequenced = noneInSequence,
): Promise<OperationRecord[]> {
  if (about.orderId === null && about.ids.length === 0) return []
  const rows = await db.query<OperationRow>({
    text: `select * from (
        (${selectOperations(db.schema)} where o.order_id = $1 order by o.sequence desc limit ${shownOperations})
        union all
        (${selectOperations(db.schema)} where o.operation_id = any ($2::uuid[])
          and ($1::text is null or o.order_id is distinct from $1))
      ) c order by c.sequence`,
    values: [about.orderId, about.ids],
  })
  const tries = await readAttempts(
    db,
    rows.map((row) => row.operation_id),
  )
  const views = await viewsOf(db, rows, sequenced)
  return views.map((view) => ({ ...view, tries: tries.get(view.operation_id) ?? [] }))
}

interface AttemptRow {
  operation_id: string
  number: number
  kind: string
  key_generation: number
  dispatcher: string
  started_at: Date | string
  outcome: string | null
  status: number | null
  error: string | null
  late: boolean | null
  answered_at: Date | string | null
}

async function readAttempts(
  db: Database,
  ids: readonly string[],
): Promise<Map<string, AttemptView[]>> {
  const s = db.schema
  const found = new Map<string, AttemptView[]>()
  if (ids.length === 0) return found
  const rows = await db.query<AttemptRow>({
    text: `select a.operation_id, a.number, a.kind, a.key_generation, a.dispatcher, a.started_at,
        w.outcome, w.status, w.error, w.late, w.answered_at
      from unnest($1::uuid[]) as k(id)
      cross join lateral (
        select * from ${s}outbox_attempts t where t.operation_id = k.id order by t.number desc limit ${shownAttempts}) a
      left join ${s}outbox_answers w on w.attempt_id = a.attempt_id
      order by a.operation_id, a.number`,
    values: [ids],
  })
  for (const { operation_id: id, ...row } of rows) {
    const attempts = found.get(id) ?? []
    found.set(id, attempts)
    attempts.push({
      ...row,
      number: counted(row.number),
      key_generation: counted(row.key_generation),
      late: row.late === true,
      started_at: requiredTime(row.started_at),
      answered_at: isoTime(row.answered_at),
    })
  }
  return found
}

type Times =
  | 'next_attempt_at'
  | 'first_attempt_at'
  | 'key_until'
  | 'uncertain_since'
  | 'leased_until'
  | 'finished_at'

type OperationRow = Omit<OperationView, Times | 'created_at' | 'receipt' | 'key' | 'blocked_by'> &
  Record<Times, Date | string | null> & { created_at: Date | string; receipt: string | null }

function selectOperations(s: string): string {
  return `select o.operation_id::text as operation_id, o.sequence, o.destination, o.name, o.order_id, o.effect_type, o.effect_reference,
    o.decision_id, o.state, o.promise, o.key_generation, o.attempts, o.created_at, o.next_attempt_at, o.first_attempt_at,
    case when o.promise = 'once' then o.first_attempt_at + o.window_ms * interval '1 millisecond' end as key_until,
    o.uncertain_since, o.leased_until, o.leased_by, o.last_error, o.receipt::text as receipt, o.while_states,
    encode(o.request_sha256, 'hex') as request_sha256, o.request_bytes, o.finished_at,
    exists (select 1 from ${s}outbox_requests r where r.operation_id = o.operation_id) as has_request
    from ${s}outbox_operations o`
}

async function viewsOf(
  db: Database,
  rows: readonly OperationRow[],
  sequenced: Sequenced,
): Promise<OperationView[]> {
  const blocking = await blockedBy(db, rows, sequenced)
  return rows.map((row) => ({
    ...operationView(row),
    blocked_by: blocking.get(row.operation_id) ?? null,
  }))
}

function operationView(row: OperationRow): Omit<OperationView, 'blocked_by'> {
  const generation = counted(row.key_generation)
  return {
    ...row,
    key: generation > 1 ? `${row.operation_id}:${generation}` : row.operation_id,
    key_generation: generation,
    attempts: counted(row.attempts),
    request_bytes: counted(row.request_bytes),
    receipt: exactJson(row.receipt),
    created_at: requiredTime(row.created_at),
    next_attempt_at: isoTime(row.next_attempt_at),
    first_attempt_at: isoTime(row.first_attempt_at),
    key_until: isoTime(row.key_until),
    uncertain_since: isoTime(row.uncertain_since),
    leased_until: isoTime(row.leased_until),
    finished_at: isoTime(row.finished_at),
  }
}
