/** One finding: what differs, who answers for it, what was done about it, what may be done. */
import { z } from 'zod'
import { HookledgerError } from '../../core/errors.ts'
import { findFindings } from '../../report/findings.ts'
import { findingStory } from '../../report/finding-story.ts'
import { defineRoute, type ApiRoute } from '../route.ts'
import { findingAnswer } from '../shapes/detail-shapes.ts'
import { toWire } from '../wire.ts'

type Allowed = 'repair' | 'assign' | 'dismiss'

/** A finding that is dismissed may still be repaired, or be somebody else's; one that is closed is over. */
function allowedIn(state: string): Allowed[] {
  if (state === 'closed') return []
  return state === 'dismissed' ? ['repair', 'assign'] : ['repair', 'assign', 'dismiss']
}

/** The routes. */
export const findingRoutes: readonly ApiRoute[] = [
  defineRoute({
    method: 'GET',
    path: '/findings/{finding_id}',
    permission: 'read',
    summary: 'Everything about a finding, with what may be done about it.',
    shape: { params: z.strictObject({ finding_id: z.uuid() }), answer: findingAnswer },
    handle: async ({ db }, { params: { finding_id: id } }) => {
      const [finding] = await findFindings(db, id)
      if (finding === undefined)
        throw new HookledgerError(
          'HKL_FINDING_UNKNOWN',
          'there is no finding with this id: look for it in the list',
        )
      const story = await findingStory(db, finding)
      return toWire({ finding, ...story, allowed: allowedIn(finding.state) })
    },
  }),
]
