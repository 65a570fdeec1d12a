/** Every promise as queries, asked of the database at this moment. */
import { z } from 'zod'
import { promiseNames } from '../../report/audit-check.ts'
import { audit, defaultAuditLimits, type AuditResult } from '../../report/audit.ts'
import { requiredTime } from '../../report/row-values.ts'
import { cached } from '../cached.ts'
import { defineRoute, type ApiContext, type ApiRoute } from '../route.ts'
import { moment } from '../schemas.ts'
import type { Shape } from '../wire.ts'

const count = z.number().int()

const check: Shape<AuditResult> = z.strictObject({
  promise: z.enum(['P1', 'P2', 'P3', 'P4', 'P5', 'P6', 'P7', 'P8']),
  check: z.string(),
  holds: z.boolean(),
  says: z.string(),
  violations: count,
  known: count,
  examples: z.array(z.strictObject({ key: z.string(), detail: z.string() })),
  skipped: z.string().nullable(),
  duration_ms: count,
})

const answer = z.strictObject({
  /** When these answers began to be read: they are kept for a minute. */
  asked_at: moment,
  holds: z.boolean(),
  promises: z.array(
    z.strictObject({
      promise: z.string(),
      name: z.string(),
      holds: z.boolean(),
      checks: z.array(check),
    }),
  ),
})

/** Whole tables are read: whoever asks while an answer is made, or within a minute, gets that one. */
const answers = new WeakMap<object, ReturnType<typeof cached<z.input<typeof answer>>>>()

function askPromises({ db, parts }: ApiContext): Promise<z.input<typeof answer>> {
  const known = answers.get(parts)
  const ask =
    known ??
    cached(60_000, async (asked) => {
      const now = await asked.query<{ at: Date }>({ text: 'select now() as at', values: [] })
      const limits = { ...defaultAuditLimits, pendingMs: parts.config.limits.deferralMs }
      const { holds, checks } = await audit(asked, limits)
      const promises = Object.entries(promiseNames).map(([promise, name]) => {
        const own = checks.filter((each) => each.promise === promise)
        return { promise, name, holds: own.every((each) => each.holds), checks: own }
      })
      return { asked_at: requiredTime(now[0]?.at ?? new Date()), holds, promises }
    })
  answers.set(parts, ask)
  return ask(db)
}

/** The routes. */
export const promiseRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'GET',
    path: '/promises',
    permission: 'read',
    summary:
      'Checks every promise by a query, as `hookledger audit` does. Reads whole tables: an answer is kept for a minute.',
    shape: { answer },
    handle: askPromises,
  }),
]
