/**
 * Acts on one thing. Each calls what the command line calls, with the reason that was typed and the name of whoever
 * is signed in; asked twice it is done once.
 */
import { z } from 'zod'
import { actsOver, assignOnce, dismissOnce, retryOnce } from '../../compose/single-acts.ts'
import { HookledgerError } from '../../core/errors.ts'
import { replayEvent } from '../../inbox/replay.ts'
import type { ActReport } from '../../outbox/acts.ts'
import type { Database } from '../../postgres/executor.ts'
import { operationConfirm, requireConfirmed } from '../confirm.ts'
import { requireEvent } from '../event-named.ts'
import { defineRoute, type ApiContext, type ApiRoute } from '../route.ts'
import { idText, moment, reasonText } from '../schemas.ts'
import type { Shape } from '../wire.ts'

const eventParams = z.strictObject({ source: idText, event_id: idText })
const operationParams = z.strictObject({ operation_id: z.uuid() })
const findingParams = z.strictObject({ finding_id: z.uuid() })
/** What a person typed; compared by the server. */
const confirm = z.string().max(512)
const justReason = z.strictObject({ reason: reasonText })

/** A decision as it is answered. */
export interface DecisionAnswer {
  readonly decision_id: string
  readonly kind: string
  readonly order_id: string | null
  readonly from_state: string | null
  readonly to_state: string | null
  readonly reason: string
  readonly decided_at: string
}

/** A recorded decision as the API sends it. */
export const decisionShape: Shape<DecisionAnswer> = z.strictObject({
  decision_id: z.string(),
  kind: z.string(),
  order_id: z.string().nullable(),
  from_state: z.string().nullable(),
  to_state: z.string().nullable(),
  reason: z.string(),
  decided_at: moment,
})

/** A recorded decision, with its moment as text. */
export function decisionOf(
  recorded: Omit<DecisionAnswer, 'decided_at'> & { readonly decided_at: Date | string },
): DecisionAnswer {
  const { decision_id, kind, order_id, from_state, to_state, reason, decided_at } = recorded
  const at = new Date(decided_at).toISOString()
  return { decision_id, kind, order_id, from_state, to_state, reason, decided_at: at }
}

const operationAct = z.strictObject({
  operation_id: z.string(),
  destination: z.string(),
  order_id: z.string().nullable(),
  /** `unchanged`: it was asked for before and is due; nothing was recorded. */
  outcome: z.enum(['done', 'unchanged']),
  from: z.string(),
  to: z.string(),
  key_generation: z.number().int(),
  attempts: z.number().int(),
})

const findingAct = z.strictObject({
  finding_id: z.string(),
  outcome: z.enum(['done', 'unchanged']),
  state: z.string(),
  owner: z.string(),
  dismissed_until: moment.nullable(),
})

/** Why, and who: never anybody else than whoever asks. */
export function by(
  { identity }: Pick<ApiContext, 'identity'>,
  { reason }: { readonly reason: string },
): { readonly reason: string; readonly actor: string } {
  return { reason, actor: identity.actor }
}

interface Standing {
  readonly operation_id: string
  readonly destination: string
  readonly order_id: string | null
  readonly state: string
  readonly key_generation: number
  readonly attempts: number
}

async function requireOperation(db: Database, id: string): Promise<Standing> {
  const [row] = await db.query<Standing>({
    text: `select operation_id::text as operation_id, destination, order_id, state, key_generation, attempts
      from ${db.schema}outbox_operations where operation_id = $1::uuid`,
    values: [id],
  })
  if (row !== undefined) return row
  throw new HookledgerError('HKL_OUTBOX_OPERATION_UNKNOWN', 'there is no operation with this id')
}

function actAnswer(report: ActReport): z.input<typeof operationAct> {
  return {
    operation_id: report.operationId,
    destination: report.destination,
    order_id: report.orderId,
    outcome: 'done',
    from: report.from,
    to: report.to,
    key_generation: report.keyGeneration,
    attempts: report.attempts,
  }
}

async function findingAnswer(
  db: Database,
  id: string,
  outcome: 'done' | 'unchanged',
): Promise<z.input<typeof findingAct>> {
  const [row] = await db.query<{ state: string; owner: string; until: Date | string | null }>({
    text: `select state, owner, case when state = 'dismissed' then dismissed_until end as until
      from ${db.schema}findings where finding_id = $1::uuid`,
    values: [id],
  })
  if (row === undefined)
    throw new HookledgerError('HKL_FINDING_UNKNOWN', 'there is no finding with this id')
  const until = row.until === null ? null : new Date(row.until).toISOString()
  return { finding_id: id, outcome, state: row.state, owner: row.owner, dismissed_until: until }
}

const ofEvents: readonly ApiRoute[] = [
  defineRoute({
    method: 'POST',
    path: '/events/{source}/{event_id}/replay',
    permission: 'operate',
    summary: 'Sends an event down the same path again; one with a final decision answers with it.',
    shape: {
      params: eventParams,
      body: justReason,
      answer: z.strictObject({
        source: z.string(),
        event_id: z.string(),
        outcome: z.enum(['replayed', 'recorded', 'pending']),
        /** The state that it was in; of `replayed` only. */
        from: z.string().nullable(),
        decision: decisionShape.nullable(),
      }),
    },
    handle: async (context, { params, body }) => {
      const { event_key: key, source, event_id } = await requireEvent(context.db, params)
      const answer = await replayEvent(context.db, { id: `event:${key}` }, by(context, body))
      return {
        source,
        event_id,
        outcome: answer.outcome,
        from: answer.outcome === 'replayed' ? answer.from : null,
        decision: answer.outcome === 'recorded' ? decisionOf(answer.decision) : null,
      }
    },
  }),
]

const ofOperations: readonly ApiRoute[] = [
  defineRoute({
    method: 'POST',
    path: '/operations/{operation_id}/retry',
    permission: 'operate',
    summary: 'Sends a dead or uncertain operation again.',
    shape: { params: operationParams, body: justReason, answer: operationAct },
    handle: async (context, { params: { operation_id: id }, body }) => {
      const report = await retryOnce(context.parts, id, by(context, body))
      if (report !== null) return actAnswer(report)
      const { state, ...standing } = await requireOperation(context.db, id)
      return { ...standing, outcome: 'unchanged', from: state, to: state }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/operations/{operation_id}/resolve',
    permission: 'operate',
    summary:
      'Records whether an operation was done; `confirm` is its order, or its destination where it has none.',
    shape: {
      params: operationParams,
      body: z.strictObject({ as: z.enum(['sent', 'not_done']), reason: reasonText, confirm }),
      answer: operationAct,
    },
    handle: async (context, { params: { operation_id: id }, body }) => {
      requireConfirmed(body.confirm, operationConfirm(await requireOperation(context.db, id)))
      const acts = await actsOver(context.parts, context.db)
      return actAnswer(await acts.resolve(id, { as: body.as }, by(context, body)))
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/operations/{operation_id}/discard',
    permission: 'operate',
    summary:
      'Ends an operation without sending it; `confirm` is its order, or its destination where it has none.',
    shape: {
      params: operationParams,
      body: z.strictObject({ reason: reasonText, confirm }),
      answer: operationAct,
    },
    handle: async (context, { params: { operation_id: id }, body }) => {
      requireConfirmed(body.confirm, operationConfirm(await requireOperation(context.db, id)))
      const acts = await actsOver(context.parts, context.db)
      return actAnswer(await acts.discard(id, by(context, body)))
    },
  }),
]

const ofFindings: readonly ApiRoute[] = [
  defineRoute({
    method: 'POST',
    path: '/findings/{finding_id}/assign',
    permission: 'operate',
    summary: 'Gives a finding to somebody.',
    shape: {
      params: findingParams,
      body: z.strictObject({ owner: z.string().trim().min(1).max(200), reason: reasonText }),
      answer: findingAct,
    },
    handle: async (context, { params: { finding_id: id }, body }) => {
      const done = await assignOnce(context.db, id, body.owner, by(context, body))
      return findingAnswer(context.db, id, done === null ? 'unchanged' : 'done')
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/findings/{finding_id}/dismiss',
    permission: 'operate',
    summary: 'Says that a finding is fine as it is, until a day; other figures open it again.',
    shape: {
      params: findingParams,
      body: z.strictObject({ until: z.iso.datetime({ offset: true }), reason: reasonText }),
      answer: findingAct,
    },
    handle: async (context, { params: { finding_id: id }, body }) => {
      const done = await dismissOnce(context.db, id, new Date(body.until), by(context, body))
      return findingAnswer(context.db, id, done === null ? 'unchanged' : 'done')
    },
  }),
]

/** The routes. */
export const actRoutes: readonly ApiRoute[] = [...ofEvents, ...ofOperations, ...ofFindings]
