/**
 * Deciding anew what was skipped or contradicted: a plan that a person reads, and the act that does exactly that. Of
 * a plan only its id comes back: it is made again, and where anything differs nothing is done.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { createRedecider, type Redecider } from '../../compose/redecide.ts'
import { HookledgerError } from '../../core/errors.ts'
import type { RedecisionPlan } from '../../inbox/redecide-plan.ts'
import { stableText } from '../../workflow/difference.ts'
import { requireConfirmed } from '../confirm.ts'
import { requireEvent } from '../event-named.ts'
import { defineRoute, type ApiContext, type ApiRoute } from '../route.ts'
import { exactNumber, idText, reasonText } from '../schemas.ts'
import { amount } from '../shapes/repair-shapes.ts'
import { by, decisionOf, decisionShape } from './acts.ts'

const text = z.string()

const redecision = z.strictObject({
  plan_id: text,
  event: z.strictObject({ id: text, type: text, source: text }),
  supersedes: z.strictObject({ decision_id: text, kind: text, reason: text }),
  /** What the present code decides, and why. */
  kind: text,
  because: text,
  workflow_version: text.nullable(),
  order: z.strictObject({
    id: text,
    workflow: text.nullable(),
    from: text.nullable(),
    to: text.nullable(),
    version: exactNumber,
  }),
  payment: amount.extend({ id: text, applied: z.boolean() }).nullable(),
  effects: z.array(
    z.strictObject({
      type: text,
      reference: text,
      amount: exactNumber.nullable(),
      currency: text.nullable(),
    }),
  ),
  granted: z.array(text),
  revoked: z.array(text),
  operations: z.array(z.strictObject({ operation_id: text, destination: text, name: text })),
  /** Kinds of finding that it makes, and ids of findings that it closes. */
  findings: z.array(text),
  closes: z.array(text),
})

/** A plan's id is what it says. */
function redecisionId(plan: RedecisionPlan): string {
  return createHash('sha256').update(stableText(plan)).digest('hex')
}

function redecisionAnswer(plan: RedecisionPlan): z.input<typeof redecision> {
  const { payment } = plan
  return {
    ...plan,
    plan_id: redecisionId(plan),
    payment: payment === null ? null : { ...payment, amount: payment.amount.toString() },
    effects: plan.effects.map((each) => ({ ...each, amount: each.amount?.toString() ?? null })),
    granted: [...plan.granted],
    revoked: [...plan.revoked],
    operations: [...plan.operations],
    findings: [...plan.findings],
    closes: [...plan.closes],
  }
}

async function redeciderOf({ parts }: ApiContext): Promise<Redecider> {
  const { work } = await parts.contexts()
  return createRedecider(work, parts.signals, (keys, ms) => parts.gatherNow(keys, ms))
}

const redecided = z.strictObject({
  outcome: z.enum(['redecided', 'recorded']),
  decision_id: text,
  order_id: text.nullable(),
})

const eventParams = z.strictObject({ source: idText, event_id: idText })

/** The routes. */
export const redecideRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'POST',
    path: '/events/{source}/{event_id}/redecide/plan',
    permission: 'operate',
    summary:
      'What deciding an event anew would change; reads its body, which is recorded, and changes nothing.',
    shape: {
      params: eventParams,
      body: z.strictObject({ reason: reasonText }),
      answer: z.strictObject({
        /** `recorded`: it was decided anew already. */
        outcome: z.enum(['plan', 'recorded']),
        plan: redecision.nullable(),
        decision: decisionShape.nullable(),
        /** What is to be typed; null where there is nothing to be done. */
        confirm: text.nullable(),
      }),
    },
    handle: async (context, { params, body }) => {
      const { event_key: key } = await requireEvent(context.db, params)
      const redecider = await redeciderOf(context)
      const planned = await redecider.plan({ id: `event:${key}` }, by(context, body))
      if (planned.kind === 'recorded') {
        const decision = decisionOf(planned.decision)
        return { outcome: 'recorded', plan: null, decision, confirm: null }
      }
      const plan = redecisionAnswer(planned.plan)
      return { outcome: 'plan', plan, decision: null, confirm: planned.plan.order.id }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/events/{source}/{event_id}/redecide',
    permission: 'operate',
    summary:
      'Decides an event anew exactly as the plan of this id says, or not at all; `confirm` is the order.',
    shape: {
      params: eventParams,
      body: z.strictObject({
        plan_id: z.string().regex(/^[0-9a-f]{64}$/),
        reason: reasonText,
        confirm: z.string().max(512),
      }),
      answer: redecided,
    },
    handle: async (context, { params, body }) => {
      const { event_key: key } = await requireEvent(context.db, params)
      const redecider = await redeciderOf(context)
      const request = { event: { id: `event:${key}` }, by: by(context, body), body }
      try {
        return await redecide(redecider, request)
      } catch (error) {
        const first = await firstOne(redecider, request, error)
        if (first === null) throw error
        return recorded(first)
      }
    },
  }),
]

interface RedecideRequest {
  readonly event: { readonly id: string }
  readonly by: { readonly reason: string; readonly actor: string }
  readonly body: { readonly plan_id: string; readonly confirm: string }
}

async function redecide(
  redecider: Redecider,
  { event, by: why, body }: RedecideRequest,
): Promise<z.input<typeof redecided>> {
  const planned = await redecider.plan(event, why)
  if (planned.kind === 'recorded') return recorded(planned.decision)
  const { plan } = planned
  requireConfirmed(body.confirm, plan.order.id)
  if (redecisionId(plan) !== body.plan_id)
    throw new HookledgerError(
      'HKL_REPAIR_CHANGED',
      'something changed since the plan was made, and nothing was done: look at a new plan',
    )
  const applied = await redecider.apply(planned, why)
  if (applied.kind === 'recorded') return recorded(applied.decision)
  return { outcome: 'redecided', decision_id: applied.decisionId, order_id: plan.order.id }
}

/** What differs may be what somebody else has just done by the very same plan: then that is the answer. */
async function firstOne(
  redecider: Redecider,
  { event, by: why }: RedecideRequest,
  error: unknown,
): Promise<{ readonly decision_id: string; readonly order_id: string | null } | null> {
  const code = error instanceof HookledgerError ? error.code : null
  if (code !== 'HKL_REPAIR_CHANGED' && code !== 'HKL_REPAIR_IMPOSSIBLE') return null
  const again = await redecider.plan(event, why).catch(() => null)
  return again?.kind === 'recorded' ? again.decision : null
}

function recorded(decision: { readonly decision_id: string; readonly order_id: string | null }): {
  readonly outcome: 'recorded'
  readonly decision_id: string
  readonly order_id: string | null
} {
  return { outcome: 'recorded', decision_id: decision.decision_id, order_id: decision.order_id }
}
