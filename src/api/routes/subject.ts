/** One subject: what it may use now, and because of what. */
import { z } from 'zod'
import { HookledgerError } from '../../core/errors.ts'
import { readSubject } from '../../report/subject-record.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { idText } from '../schemas.ts'
import { subjectAnswer } from '../shapes/subject-shapes.ts'

/** The routes. */
export const subjectRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'GET',
    path: '/subjects/{subject}',
    permission: 'read',
    summary: 'What a subject may use now and because of what, its orders, customers and merges.',
    shape: { params: z.strictObject({ subject: idText }), answer: subjectAnswer },
    handle: async ({ db }, { params: { subject } }) => {
      const record = await readSubject(db, subject)
      if (record !== null) return record
      throw new HookledgerError(
        'HKL_NOT_FOUND',
        'no order, entitlement or link names this subject: look for an order or a customer in the search',
      )
    },
  }),
]
