/**
 * The door of a console inside somebody's app: the app says who asks. Whatever goes wrong there is a no. The
 * token of an act is made from the installation's secret, so that any process of the app knows it.
 */
import { createHmac } from 'node:crypto'
import { roles } from '../../api/access.ts'
import type { Door, Visitor } from '../../api/door.ts'
import type { Authorize, Identity } from '../../compose/console-options.ts'
import type { Signals } from '../../core/signals.ts'
import { unknownVisitor } from './sessions.ts'

/** What the door is made of. */
export interface AppDoorOptions {
  readonly authorize: Authorize
  readonly publicUrl: string | null
  readonly secret: () => Promise<Uint8Array>
  readonly signals: Signals
}

/** Creates the door. */
export function appDoor({ authorize, publicUrl, secret, signals }: AppDoorOptions): Door {
  return {
    kind: 'app',
    signInPath: null,
    origins: publicUrl === null ? [] : [publicUrl],
    async visitor(request): Promise<Visitor> {
      const identity = await asked(authorize, request, signals)
      if (identity === null) return unknownVisitor
      const mac = createHmac('sha256', await secret())
      const csrf = mac.update(`hookledger console csrf\n${identity.actor}`).digest('base64url')
      return { identity, csrf, session: null }
    },
    signOut: () => Promise.resolve(new Headers()),
    sessions: null,
  }
}

async function asked(
  authorize: Authorize,
  request: Request,
  signals: Signals,
): Promise<Identity | null> {
  let answer: unknown
  try {
    // a body that authorize reads must not be gone for whoever comes after it
    answer = await authorize(new Request(request.url, { headers: request.headers }))
  } catch (error) {
    tell(signals, `console.authorize threw a ${error instanceof Error ? error.name : 'value'}`)
    return null
  }
  if (answer === null || answer === undefined) return null
  const problem = identityProblem(answer)
  if (problem === null) return answer as Identity
  tell(signals, `console.authorize must answer { actor, roles } or null: ${problem}`)
  return null
}

function tell(signals: Signals, reason: string): void {
  signals.emit('console.sign_in.ended', { actor: null, outcome: 'failed', reason })
}

/** What is wrong with an identity; null where nothing is. */
export function identityProblem(value: unknown): string | null {
  const { actor, roles: given } = (value ?? {}) as Readonly<Record<string, unknown>>
  if (typeof actor !== 'string' || actor.trim() === '' || actor.length > 200)
    return 'actor must be a text of 1 to 200 characters'
  if (/[\p{Cc}\u2028\u2029]/u.test(actor)) return 'actor contains a control character'
  if (!Array.isArray(given) || given.some((role: unknown) => !roles.some((each) => each === role)))
    return `roles must be a list of ${roles.join(', ')}`
  return null
}
