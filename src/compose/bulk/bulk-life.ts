/**
 * The life of a bulk act: planned, started, approved by another person where that is asked for, canceled. Each step
 * is taken once, under the row's lock, with its record; what was planned never changes on the way.
 */
import { HookledgerError } from '../../core/errors.ts'
import type { Database, Executor } from '../../postgres/executor.ts'
import { mostTargets, type BulkState, type BulkWork } from './bulk-acts.ts'
import { bulkTargets } from './bulk-targets.ts'
import { bulkConfirm, readBulk, type BulkView } from './bulk-views.ts'

/** Why, and who. */
export interface BulkBy {
  readonly reason: string
  readonly actor: string
}

/** A plan is started within so many hours: later it is likely not what somebody would plan now. */
const freshHours = 24

/** How long planning may take: it reads what fits, and writes it down. */
const planMs = 30_000

/**
 * Plans: writes down what is to be done with what, and does nothing of it. Asked twice under one id it is planned once.
 *
 * @throws HookledgerError HKL_BULK_INVALID where nothing fits or too much does, HKL_BULK_STATE where the id is taken
 */
export async function planBulk(
  db: Database,
  { bulkId, work, needsApproval }: BulkPlanRequest,
  by: BulkBy,
): Promise<BulkView> {
  const targets = await bulkTargets(db, work)
  const s = db.schema
  return db.transaction(async (tx) => {
    const known = await tx.query<{ actor: string }>({
      text: `select actor from ${s}bulk_acts where bulk_id = $1::uuid`,
      values: [bulkId],
    })
    if (known.length > 0) return planned(db, tx, bulkId, by)
    requireFitting(targets.length)
    const rows = await tx.query({
      text: `insert into ${s}bulk_acts (bulk_id, act, filter, details, targets, reason, actor, needs_approval)
        values ($1::uuid, $2, $3::text::jsonb, $4::text::jsonb, $5, $6, $7, $8) on conflict do nothing returning 1`,
      values: [
        bulkId,
        work.act,
        JSON.stringify(work.filter),
        JSON.stringify(work.details),
        targets.length,
        by.reason,
        by.actor,
        needsApproval(targets.length),
      ],
    })
    if (rows.length === 0) return planned(db, tx, bulkId, by)
    await tx.query({
      text: `insert into ${s}bulk_items (bulk_id, number, target, was)
        select $1::uuid, t.number, t.target, t.was from unnest($2::text[], $3::text[]) with ordinality as t(target, was, number)`,
      values: [bulkId, targets.map(({ target }) => target), targets.map(({ was }) => was)],
      withinMs: planMs,
    })
    const act = { name: 'bulk plan', bulkId, details: { act: work.act, targets: targets.length } }
    await record(s, tx, act, by)
    return readBulk(over(db, tx), bulkId)
  })
}

/** What is to be planned. */
export interface BulkPlanRequest {
  /** Chosen by whoever asks. */
  readonly bulkId: string
  readonly work: BulkWork
  /** Whether so many targets need a second person. */
  readonly needsApproval: (targets: number) => boolean
}

async function planned(db: Database, tx: Executor, bulkId: string, by: BulkBy): Promise<BulkView> {
  const bulk = await readBulk(over(db, tx), bulkId)
  if (bulk.actor === by.actor && bulk.state === 'planned') return bulk
  throw new HookledgerError('HKL_BULK_STATE', 'this id is taken by another bulk act: plan anew')
}

function requireFitting(targets: number): void {
  if (targets === 0)
    throw new HookledgerError(
      'HKL_BULK_INVALID',
      'nothing fits this filter: there is nothing to do',
    )
  if (targets > mostTargets)
    throw new HookledgerError(
      'HKL_BULK_INVALID',
      `more than ${mostTargets} fit this filter: narrow it, by time, type or order, and do it in parts`,
    )
}

/**
 * Starts what oneself has planned: it runs, or waits for a second person. Asked twice it is started once.
 *
 * @throws HookledgerError HKL_NOT_FOUND, HKL_BULK_STATE, HKL_API_CONFIRM
 */
export function startBulk(
  db: Database,
  bulkId: string,
  { confirm, ...by }: BulkBy & { readonly confirm: string },
): Promise<BulkView> {
  return step(db, bulkId, async (tx, bulk) => {
    if (bulk.actor !== by.actor)
      throw new HookledgerError(
        'HKL_BULK_STATE',
        `this was planned by ${bulk.actor}: whoever plans starts; plan your own`,
      )
    if (bulk.state === 'running' || bulk.state === 'waiting_approval') return null
    requireState(bulk, ['planned'], 'started')
    requireTyped(bulk, confirm)
    const [row] = await tx.query<{ is_old: boolean }>({
      text: `select planned_at < now() - interval '${freshHours} hours' as is_old from ${db.schema}bulk_acts where bulk_id = $1::uuid`,
      values: [bulkId],
    })
    if (row?.is_old === true)
      throw new HookledgerError(
        'HKL_BULK_STATE',
        `this was planned more than ${freshHours} hours ago: plan anew, and look at what fits now`,
      )
    const state = bulk.needs_approval ? 'waiting_approval' : 'running'
    return { name: 'bulk start', sets: `state = '${state}', started_at = now()`, by }
  })
}

/**
 * Approves what somebody else has planned and started: it runs from now on.
 *
 * @throws HookledgerError HKL_NOT_FOUND, HKL_BULK_STATE, HKL_API_CONFIRM, HKL_BULK_APPROVER for one's own
 */
export function approveBulk(
  db: Database,
  bulkId: string,
  { confirm, ...by }: BulkBy & { readonly confirm: string },
): Promise<BulkView> {
  return step(db, bulkId, (_, bulk) => {
    if (bulk.actor === by.actor)
      throw new HookledgerError(
        'HKL_BULK_APPROVER',
        'this is your own: a second person approves it, or rejects it',
      )
    if (bulk.state === 'running' && bulk.approved_by === by.actor) return null
    requireState(bulk, ['waiting_approval'], 'approved')
    requireTyped(bulk, confirm)
    const sets = `state = 'running', approved_by = $2, approved_at = now()`
    return { name: 'bulk approve', sets, by }
  })
}

/** Rejects what waits for a second person. @throws HookledgerError HKL_NOT_FOUND, HKL_BULK_STATE */
export function rejectBulk(db: Database, bulkId: string, by: BulkBy): Promise<BulkView> {
  return step(db, bulkId, (_, bulk) => {
    if (bulk.state === 'rejected') return null
    requireState(bulk, ['waiting_approval'], 'rejected')
    const sets = `state = 'rejected', ended_by = $2, finished_at = now()`
    return { name: 'bulk reject', sets, by }
  })
}

/** Cancels: what is done stays done, what is left is not begun. @throws HookledgerError HKL_NOT_FOUND, HKL_BULK_STATE */
export function cancelBulk(db: Database, bulkId: string, by: BulkBy): Promise<BulkView> {
  return step(db, bulkId, (_, bulk) => {
    if (bulk.state === 'canceled') return null
    requireState(bulk, ['planned', 'waiting_approval', 'running'], 'canceled')
    // exact: whatever answers a target holds the row that is locked here
    const counts = `done = ${bulk.done}, unchanged = ${bulk.unchanged}, failed = ${bulk.failed}`
    const sets = `state = 'canceled', ended_by = $2, finished_at = now(), ${counts}`
    return { name: 'bulk cancel', sets, by }
  })
}

/** A step that is to be taken; `$2` in what it sets is the actor. */
interface Step {
  readonly name: string
  readonly sets: string
  readonly by: BulkBy
}

/** Null: it was taken before. An item in hand ends first, since it holds the row as well. */
function step(
  db: Database,
  bulkId: string,
  decide: (tx: Executor, bulk: BulkView) => Promise<Step | null> | Step | null,
): Promise<BulkView> {
  return db.transaction(async (tx) => {
    await tx.query({
      text: `select 1 from ${db.schema}bulk_acts where bulk_id = $1::uuid for no key update`,
      values: [bulkId],
    })
    const bulk = await readBulk(over(db, tx), bulkId)
    const taken = await decide(tx, bulk)
    if (taken === null) return bulk
    const { name, sets, by } = taken
    await tx.query({
      text: `update ${db.schema}bulk_acts set ${sets} where bulk_id = $1::uuid and $2::text is not null`,
      values: [bulkId, by.actor],
    })
    const { done, failed, pending } = bulk
    await record(
      db.schema,
      tx,
      { name, bulkId, details: { from: bulk.state, done, failed, pending } },
      by,
    )
    return readBulk(over(db, tx), bulkId)
  })
}

function over(db: Database, tx: Executor): { readonly schema: string } & Pick<Executor, 'query'> {
  return { schema: db.schema, query: (statement) => tx.query(statement) }
}

function requireState(bulk: BulkView, states: readonly BulkState[], what: string): void {
  if (states.includes(bulk.state)) return
  throw new HookledgerError(
    'HKL_BULK_STATE',
    `nothing was changed: it is ${bulk.state.replace('_', ' for ')}, and cannot be ${what}`,
  )
}

function requireTyped(bulk: BulkView, typed: string): void {
  if (typed === bulkConfirm(bulk)) return
  throw new HookledgerError(
    'HKL_API_CONFIRM',
    `nothing was done: type ${bulkConfirm(bulk)} to confirm, the number of what it is about`,
  )
}

async function record(
  s: string,
  tx: Executor,
  act: {
    readonly name: string
    readonly bulkId: string
    readonly details: Readonly<Record<string, unknown>>
  },
  by: BulkBy,
): Promise<void> {
  await tx.query({
    text: `insert into ${s}operator_acts (act, target, reason, actor, details) values ($1, 'bulk:' || $2::text, $3, $4, $5::text::jsonb)`,
    values: [act.name, act.bulkId, by.reason, by.actor, JSON.stringify(act.details)],
  })
}
