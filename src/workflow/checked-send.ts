/**
 * What the effects of a decision send, held to what can be recorded. A typo in a destination or a state would
 * be a call that is never made, or made for nobody: the event ends dead instead, with the nearest known name.
 */
import { PermanentError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import { declared, keyText, printable } from './checked-text.ts'
import type { AnyEffectClaim, Send } from './decision.ts'
import type { OutboxPort } from './outbox-port.ts'
import type { Workflow } from './workflow.ts'

/**
 * Checks the sends of one effect.
 *
 * @throws PermanentError naming the workflow, the effect and what is wrong.
 */
export function checkSends(
  effect: AnyEffectClaim,
  workflow: Workflow,
  where: string,
  outbox: Pick<OutboxPort, 'known' | 'names'>,
): void {
  const at = `${where}: send of effect ${effect.type}`
  const sends: unknown = effect.send
  if (!Array.isArray(sends)) throw new PermanentError(`${at} must be a list`)
  const seen = new Set<string>()
  for (const send of sends as readonly (Send | null | undefined)[]) {
    if (typeof send !== 'object' || send === null)
      throw new PermanentError(`${at}: each must be an object with to and body`)
    checkDestination(send.to, workflow, at, outbox)
    if (send.name !== undefined) keyText(send.name, 'name of the operation')
    if (!('body' in send) || send.body === undefined)
      throw new PermanentError(`${at} to ${send.to} has no body`)
    if (send.while !== undefined) checkStates(send.while, workflow, `${at} to ${send.to}`)
    const name = send.name ?? effect.type
    const key = JSON.stringify([send.to, name])
    if (seen.has(key)) {
      throw new PermanentError(
        `${at}: two operations to ${send.to} are named "${printable(name)}"; give each a name of its own`,
      )
    }
    seen.add(key)
  }
}

function checkDestination(
  to: unknown,
  workflow: Workflow,
  at: string,
  outbox: Pick<OutboxPort, 'known' | 'names'>,
): void {
  const isDeclared = workflow.destinations?.includes(to as string) ?? true
  if (typeof to === 'string' && isDeclared && outbox.known(to)) return
  const shown = printable(String(to).slice(0, 80))
  const whose = isDeclared ? 'no destination is named' : 'the workflow declares no destination'
  const near = nearest(shown, isDeclared ? outbox.names() : (workflow.destinations ?? []))
  throw new PermanentError(
    `${at}: ${whose} "${shown}"${near === null ? '' : `, did it mean "${near}"?`}`,
  )
}

function checkStates(states: unknown, workflow: Workflow, at: string): void {
  if (!Array.isArray(states) || states.length === 0)
    throw new PermanentError(`${at}: while must name the states in which it still makes sense`)
  for (const state of states) declared(workflow.name, 'state', state, workflow.states)
}
