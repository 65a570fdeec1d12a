/**
 * What a person says about subjects: what is given away, and who is who. Each calls what the command line calls, and
 * asked twice it is done once.
 */
import { z } from 'zod'
import { endGiven, giveAway } from '../../compose/doors.ts'
import { linkCustomer, mergeSubjects } from '../../compose/subjects.ts'
import { requireConfirmed } from '../confirm.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { idText, reasonText } from '../schemas.ts'
import { by } from './acts.ts'

/** What a person typed; compared by the server. */
const confirm = z.string().max(512)

/** The routes. */
export const grantRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'POST',
    path: '/grants',
    permission: 'operate',
    summary:
      'Gives something away; under the same id it is given once. `confirm` is the subject, typed again.',
    shape: {
      body: z.strictObject({
        /** Chosen by whoever asks, a new one for a new grant: what is asked twice is given once. */
        id: z.string().min(8).max(255),
        subject: idText,
        entitlements: z
          .array(
            z.strictObject({
              entitlement: z.string().min(1).max(255),
              quantity: z.number().int().min(1).default(1),
            }),
          )
          .min(1)
          .max(50),
        until: z.iso.datetime({ offset: true }).nullable().default(null),
        reason: reasonText,
        confirm,
      }),
      answer: z.strictObject({ order_id: z.string(), subject: z.string() }),
    },
    handle: async (context, { body }) => {
      const { id, subject, entitlements } = body
      requireConfirmed(body.confirm, subject)
      const until = body.until === null ? null : new Date(body.until)
      const request = { id, subject, entitlements, until, ...by(context, body) }
      const given = await context.db.transaction((tx) => giveAway(context.db, tx, request))
      return { order_id: given, subject }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/grants/{order_id}/end',
    permission: 'operate',
    summary: 'Ends what was given away; `confirm` is the id of its order, typed again.',
    shape: {
      params: z.strictObject({ order_id: idText }),
      body: z.strictObject({ reason: reasonText, confirm }),
      answer: z.strictObject({
        order_id: z.string(),
        outcome: z.enum(['ended', 'already_ended']),
      }),
    },
    handle: async (context, { params: { order_id: id }, body }) => {
      requireConfirmed(body.confirm, id)
      const outcome = await context.db.transaction((tx) =>
        endGiven(context.db, tx, { id, ...by(context, body) }),
      )
      return { order_id: id, outcome }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/subjects/{subject}/merge',
    permission: 'operate',
    summary: 'Makes a subject another one, for good; `confirm` is the subject, typed again.',
    shape: {
      params: z.strictObject({ subject: idText }),
      body: z.strictObject({ into: idText, reason: reasonText, confirm }),
      answer: z.strictObject({ outcome: z.enum(['merged', 'existed']) }),
    },
    handle: async (context, { params: { subject: from }, body }) => {
      requireConfirmed(body.confirm, from)
      const merge = { from, into: body.into, ...by(context, body) }
      const outcome = await context.db.transaction((tx) => mergeSubjects(context.db, tx, merge))
      return { outcome }
    },
  }),
  defineRoute({
    method: 'POST',
    path: '/customers/link',
    permission: 'operate',
    summary: "Says whose a provider's customer is; `confirm` is the subject, typed again.",
    shape: {
      body: z.strictObject({
        /** The source's name in the configuration. */
        source: idText,
        account: idText.optional(),
        customer: idText,
        subject: idText,
        /** Also where the customer is linked with another subject. */
        replace: z.boolean().default(false),
        reason: reasonText,
        confirm,
      }),
      answer: z.strictObject({ outcome: z.enum(['linked', 'existed']) }),
    },
    handle: async (context, { body }) => {
      const { db, parts } = context
      const { reason: _, confirm: typed, ...link } = body
      requireConfirmed(typed, link.subject)
      const outcome = await db.transaction((tx) =>
        linkCustomer({ db, config: parts.config }, tx, { ...link, ...by(context, body) }),
      )
      return { outcome }
    },
  }),
]
