/**
 * Repairs: a plan that a person reads, and the act that does exactly that. Of a plan only its id comes back: it is
 * made again, and where anything differs nothing is done.
 */
import { z } from 'zod'
import { applyPlanned, planRepair } from '../../compose/repair-plans.ts'
import { HookledgerError } from '../../core/errors.ts'
import type { Database } from '../../postgres/executor.ts'
import { findFindings } from '../../report/findings.ts'
import { repairConfirm, requireConfirmed } from '../confirm.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { idText, reasonText } from '../schemas.ts'
import {
  planAnswer,
  repairChoice,
  repairPlan,
  repairReport,
  reportAnswer,
} from '../shapes/repair-shapes.ts'
import { by } from './acts.ts'

const text = z.string()

async function requireFinding(
  db: Database,
  id: string,
): Promise<{ readonly id: string; readonly kind: string; readonly order_id: string | null }> {
  const [finding] = await findFindings(db, id)
  if (finding === undefined)
    throw new HookledgerError('HKL_FINDING_UNKNOWN', 'there is no finding with this id')
  return { id: finding.finding_id, kind: finding.kind, order_id: finding.order_id }
}

const findingParams = z.strictObject({ finding_id: z.uuid() })

/** The routes. */
export const repairRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'GET',
    path: '/findings/{finding_id}/plan',
    permission: 'operate',
    summary: 'What a repair of a finding would change; asks the provider, and changes nothing.',
    shape: {
      params: findingParams,
      query: z.strictObject({
        /** `provider`, `refund:pi_1`; without it what the kind of finding suggests. */
        choice: idText.optional(),
        /** The state that the order is to be in, in the place of a choice. */
        to: idText.optional(),
      }),
      answer: z.strictObject({
        finding_id: text,
        /** `agreed`: both sides do by now, and applying closes the finding; `choose`: one of the choices first. */
        outcome: z.enum(['plan', 'agreed', 'choose']),
        plan: repairPlan.nullable(),
        why: text.nullable(),
        /** `target` is asked for by `to`. */
        choices: z.array(repairChoice),
        /** What is to be typed. */
        confirm: text,
      }),
    },
    handle: async ({ db, parts }, { params, query }) => {
      const finding = await requireFinding(db, params.finding_id)
      const planned = await planRepair(await parts.repairs(), finding.id, query)
      const choices = planned.kind === 'plan' ? planned.plan.choices : []
      return {
        finding_id: finding.id,
        outcome: planned.kind,
        plan: planned.kind === 'plan' ? planAnswer(planned.plan) : null,
        why: planned.kind === 'choose' ? planned.why : null,
        choices: [...(planned.kind === 'choose' ? planned.choices : choices)],
        confirm: repairConfirm(finding),
      }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/findings/{finding_id}/apply',
    permission: 'operate',
    summary:
      'Does exactly what the plan of this id says, or nothing; asked twice it is done once. `confirm` is the order, or the kind of the finding where it has none.',
    shape: {
      params: findingParams,
      body: z.strictObject({
        /** Null: what was read is that both sides agree. */
        plan_id: z.uuid().nullable(),
        /** The plan's own; null with a plan that nobody had to choose. */
        choice: idText.nullable().default(null),
        reason: reasonText,
        confirm: z.string().max(512),
      }),
      answer: repairReport,
    },
    handle: async (context, { params, body }) => {
      const finding = await requireFinding(context.db, params.finding_id)
      requireConfirmed(body.confirm, repairConfirm(finding))
      const given = { planId: body.plan_id, choice: body.choice }
      const repairs = await context.parts.repairs()
      return reportAnswer(await applyPlanned(repairs, finding, given, by(context, body)))
    },
  }),
]
