/**
 * What a person decides about an operation that cannot go on by itself. The act, who and why are recorded
 * in the commit of what it changes; an operation in a dispatcher's hands is never touched.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import { runParts } from '../postgres/write-parts.ts'
import type { Destination, Receipt } from './destination.ts'
import { dispatchSetup, lockFigures } from './destination-row.ts'
import { traitsOf } from './dispatch-context.ts'
import { planOf } from './next-step.ts'
import type { Destinations } from './outbox-port.ts'
import type { FindingsPort } from './ports.ts'
import { receiptJson } from './receipt-json.ts'
import { unparkOrders } from './unpark.ts'

/** Why, and who: both are recorded. */
export interface ActReason {
  readonly reason: string
  readonly actor: string
}

/** What acts need. */
export interface ActsContext {
  readonly db: Database
  readonly destinations: Destinations
  readonly findings: FindingsPort
  readonly lockTimeoutMs: number
}

/** What an act did. */
export interface ActReport {
  readonly operationId: string
  readonly destination: string
  readonly orderId: string | null
  /** `pending` and `sending` only of what was discarded since nothing here sends it any more. */
  readonly from: 'dead' | 'uncertain' | 'pending' | 'sending'
  readonly to: 'pending' | 'uncertain' | 'sent' | 'discarded'
  /** A new key, where the destination would answer the old one with what it stored. */
  readonly keyGeneration: number
  readonly attempts: number
}

interface Standing {
  readonly operation_id: string
  readonly destination: string
  readonly order_id: string | null
  readonly state: string
  readonly key_generation: number
  readonly attempts: number
  readonly key_age_ms: number | null
}

/** How the operation's row changes. */
interface Change {
  readonly to: ActReport['to']
  readonly newWindow: boolean
  readonly newGeneration: boolean
  readonly receipt: Receipt | null
}

/**
 * Sends it again as it is: a dead one anew, under a new key where the destination would only repeat its stored
 * refusal; an uncertain one under the same key, or by a lookup.
 *
 * @throws HookledgerError HKL_OUTBOX_OPERATION_UNKNOWN, HKL_OUTBOX_NOT_OPEN, HKL_CONFIG_UNKNOWN_NAME for a
 * destination that is not configured, HKL_OUTBOX_UNDECIDED where the key is forgotten and nothing can be looked up
 */
export function retryOperation(
  context: ActsContext,
  operationId: string,
  by: ActReason,
): Promise<ActReport> {
  return act(context, operationId, 'outbox retry', by, (standing, destination) => {
    const traits = traitsOf(destination)
    if (standing.state === 'dead') {
      const { idempotency, replaysFailures } = traits.contract
      const newGeneration = idempotency === 'key' && replaysFailures && standing.key_age_ms !== null
      return { to: 'pending', newWindow: true, newGeneration, receipt: null }
    }
    const plan = planOf(
      {
        uncertain: true,
        generation: standing.key_generation,
        keyAgeMs: standing.key_age_ms,
        calls: 0,
        lookups: 0,
      },
      traits,
    )
    if (plan.act === 'ask') {
      throw new HookledgerError(
        'HKL_OUTBOX_UNDECIDED',
        `operation ${standing.operation_id} may have been done, and "${standing.destination}" can no longer tell: find out, then resolve it as sent or as not done`,
      )
    }
    return { to: 'uncertain', newWindow: false, newGeneration: false, receipt: null }
  })
}

/** What a person found out about an operation. */
export type Resolution =
  | { readonly as: 'sent'; readonly receipt?: Receipt | undefined }
  /** It was not done: it is sent again. */
  | { readonly as: 'not_done' }

/**
 * Records what a person found out.
 *
 * @throws HookledgerError HKL_OUTBOX_OPERATION_UNKNOWN, HKL_OUTBOX_NOT_OPEN, HKL_CONFIG_UNKNOWN_NAME
 */
export function resolveOperation(
  context: ActsContext,
  operationId: string,
  resolution: Resolution,
  by: ActReason,
): Promise<ActReport> {
  const details = { as: resolution.as }
  const decide = (standing: Standing, destination: Destination): Change => {
    if (resolution.as === 'sent') {
      const receipt = resolution.receipt ?? { resolved_by: by.actor }
      return { to: 'sent', newWindow: false, newGeneration: false, receipt }
    }
    const { idempotency, replaysFailures } = destination.contract
    const newGeneration = idempotency === 'key' && replaysFailures && standing.attempts > 0
    return { to: 'pending', newWindow: true, newGeneration, receipt: null }
  }
  return act(context, operationId, 'outbox resolve', by, decide, details)
}

/**
 * Ends it without sending it. Where its destination is not configured any more nothing else would ever end
 * it: then one that is pending, or that its dispatcher left behind, is ended too.
 *
 * @throws HookledgerError HKL_OUTBOX_OPERATION_UNKNOWN, HKL_OUTBOX_NOT_OPEN
 */
export function discardOperation(
  context: ActsContext,
  operationId: string,
  by: ActReason,
): Promise<ActReport> {
  return act(context, operationId, discard, by, () => ({
    to: 'discarded',
    newWindow: false,
    newGeneration: false,
    receipt: null,
  }))
}

const discard = 'outbox discard'

async function act(
  context: ActsContext,
  operationId: string,
  name: string,
  by: ActReason,
  decide: (standing: Standing, destination: Destination) => Change,
  details: Readonly<Record<string, string>> = {},
): Promise<ActReport> {
  const { db, lockTimeoutMs } = context
  const destinationName = await destinationOf(db, operationId)
  return db.transaction(
    async (tx) => {
      const isLeft = name === discard && !context.destinations.has(destinationName)
      if (!isLeft) await lockFigures(db.schema, tx, destinationName)
      const standing = await lockOperation(db.schema, tx, operationId, isLeft)
      const change = decide(standing, configured(context, destinationName, name))
      const generation = standing.key_generation + (change.newGeneration ? 1 : 0)
      await writeChange(context, tx, standing, change)
      await tx.query({
        text: `insert into ${db.schema}operator_acts (act, target, reason, actor, details)
          values ($1, 'operation:' || $2::text, $3, $4, $5::text::jsonb)`,
        values: [
          name,
          operationId,
          by.reason,
          by.actor,
          JSON.stringify({
            ...details,
            from: standing.state,
            to: change.to,
            key_generation: generation,
          }),
        ],
      })
      return {
        operationId,
        destination: destinationName,
        orderId: standing.order_id,
        from: standing.state as ActReport['from'],
        to: change.to,
        keyGeneration: generation,
        attempts: standing.attempts,
      }
    },
    { setup: dispatchSetup(lockTimeoutMs) },
  )
}

/** A discarded operation needs no destination any more; whatever is sent does. */
function configured({ destinations }: ActsContext, name: string, act: string): Destination {
  const destination = destinations.get(name)
  if (destination !== undefined || act === discard) return destination as Destination
  throw new HookledgerError(
    'HKL_CONFIG_UNKNOWN_NAME',
    `destination "${name}" is not in this configuration: add it, or discard the operation`,
  )
}

async function destinationOf(db: Database, operationId: string): Promise<string> {
  const [row] = await db.query<{ destination: string }>({
    text: `select destination from ${db.schema}outbox_operations where operation_id = $1::uuid`,
    values: [operationId],
  })
  if (row !== undefined) return row.destination
  throw new HookledgerError(
    'HKL_OUTBOX_OPERATION_UNKNOWN',
    `there is no operation ${operationId}: see "hookledger outbox list"`,
  )
}

/**
 * `isLeft`: nothing that is configured here sends it. Its destination's row is locked first then, too: somebody
 * else may still send it.
 */
async function lockOperation(
  s: string,
  tx: Executor,
  operationId: string,
  isLeft: boolean,
): Promise<Standing> {
  if (isLeft) {
    await tx.query({
      text: `select 1 from ${s}outbox_destinations where destination =
          (select destination from ${s}outbox_operations where operation_id = $1::uuid) for no key update`,
      values: [operationId],
    })
  }
  const [row] = await tx.query<Standing & { is_free: boolean }>({
    text: `select operation_id::text as operation_id, destination, order_id, state, key_generation, attempts,
        (state = 'pending' or (state = 'sending' and leased_until < statement_timestamp())) as is_free,
        extract(epoch from statement_timestamp() - first_attempt_at)::double precision * 1000 as key_age_ms
      from ${s}outbox_operations where operation_id = $1::uuid for no key update`,
    values: [operationId],
  })
  if (row?.state === 'dead' || row?.state === 'uncertain' || (isLeft && row?.is_free === true))
    return row
  throw new HookledgerError(
    'HKL_OUTBOX_NOT_OPEN',
    `operation ${operationId} is ${row?.state ?? 'gone'}: only one that is dead or uncertain needs a person`,
  )
}

async function writeChange(
  { db: { schema: s }, findings }: ActsContext,
  tx: Executor,
  standing: Standing,
  change: Change,
): Promise<void> {
  const { to, newWindow, newGeneration, receipt } = change
  const ends = to === 'sent' || to === 'discarded'
  await tx.query({
    text: `update ${s}outbox_operations set state = $2, next_attempt_at = case when $3::boolean then null else now() end,
        finished_at = case when $3::boolean then now() end, calls = 0, lookups = 0, flagged = false,
        receipt = coalesce($4::text::jsonb, receipt),
        uncertain_since = case when $2 = 'uncertain' then uncertain_since end,
        first_attempt_at = case when $5::boolean then null else first_attempt_at end,
        key_generation = key_generation + $6::integer, lease = null, leased_until = null, leased_by = null
      where operation_id = $1::uuid`,
    values: [
      standing.operation_id,
      to,
      ends,
      receipt === null ? null : receiptJson(receipt),
      newWindow,
      newGeneration ? 1 : 0,
    ],
  })
  if (standing.state === 'sending') {
    await tx.query({
      text: `update ${s}outbox_destinations set under_way = greatest(0, under_way - 1) where destination = $1`,
      values: [standing.destination],
    })
  }
  await runParts(tx, findings.parts([], [standing.operation_id]))
  if (!ends || standing.order_id === null) return
  await tx.query({
    text: `insert into ${s}outbox_wakes (order_id) values ($1)`,
    values: [standing.order_id],
  })
  await unparkOrders(s, tx, standing.destination, [standing.order_id])
}
