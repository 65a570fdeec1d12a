/**
 * Erasing a subject: the plan, which changes nothing, and the act, which nobody can take back. What is to be
 * typed is the subject itself.
 */
import { z } from 'zod'
import { applyErasure, planErasure, type ErasureReport } from '../../compose/erase.ts'
import { requireConfirmed } from '../confirm.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { idText, reasonText } from '../schemas.ts'

const params = z.strictObject({ subject: idText })

/** Other texts that stand for the same person: an email address. They are replaced as the subject is. */
const alsoTexts = z.array(z.string().min(4).max(512)).max(20).default([])

const count = z.number().int()

const report = z.strictObject({
  /** True once it is done. */
  applied: z.boolean(),
  /** What the subject is called from now on; null in a plan. */
  pseudonym: z.string().nullable(),
  /** Number of the record among the acts; null in a plan. */
  act_id: z.string().nullable(),
  /** The subject, and what was merged into it; pseudonyms once it is done. */
  subjects: z.array(z.string()),
  order_ids: z.array(z.string()),
  /** How many orders there are; the list above ends at 100. */
  orders: count,
  events: count,
  bodies: count,
  evidence: count,
  requests: count,
  answers: count,
  decisions: count,
  /** Entitlements that are active: from then on nobody asks for them under the old name. */
  active: z.array(z.strictObject({ order_id: z.string(), entitlement: z.string() })),
  /** Ids that hold the subject themselves, and stay. */
  kept_ids: z.array(z.string()),
  /** What has to come to its end first; empty once it is done. */
  unfinished: z.array(
    z.strictObject({
      kind: z.enum(['event', 'operation', 'change']),
      id: z.string(),
      state: z.string(),
      /** Whether `give_up` ends it. */
      can_give_up: z.boolean(),
    }),
  ),
  /** What is to be typed. */
  confirm: z.string(),
})

function answerOf(erasure: ErasureReport): z.input<typeof report> {
  return {
    ...erasure,
    subjects: [...erasure.subjects],
    order_ids: [...erasure.order_ids],
    active: [...erasure.active],
    kept_ids: [...erasure.kept_ids],
    unfinished: [...erasure.unfinished],
  }
}

/** The routes. */
export const eraseRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'POST',
    path: '/subjects/{subject}/erase/plan',
    permission: 'erase',
    summary: 'What erasing a subject would do; changes nothing.',
    shape: { params, body: z.strictObject({ also: alsoTexts }), answer: report },
    handle: async ({ db }, { params: { subject }, body: { also } }) =>
      answerOf(await planErasure(db, { subject, also })),
  }),
  defineRoute({
    method: 'POST',
    path: '/subjects/{subject}/erase',
    permission: 'erase',
    summary: 'Erases a subject for good; `confirm` is the subject, typed again.',
    shape: {
      params,
      body: z.strictObject({
        reason: reasonText,
        confirm: z.string(),
        also: alsoTexts,
        /** Gives up what waits or is dead, and would need its body. */
        give_up: z.boolean().default(false),
      }),
      answer: report,
    },
    handle: async ({ db, identity }, { params: { subject }, body }) => {
      const { also, reason, confirm, give_up: giveUp } = body
      requireConfirmed(confirm, subject)
      const by = { reason, actor: identity.actor }
      return answerOf(await applyErasure(db, { subject, also, giveUp, confirm, ...by }))
    },
  }),
]
