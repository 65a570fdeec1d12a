/**
 * What the success page saw of an object that a mirror follows is only a hint, too: the event that it makes says
 * "look again", and what is decided is decided from an answer of its own.
 */
import type { Database } from '../postgres/executor.ts'
import {
  isToldAlready,
  lookEvent,
  readKnowledge,
  type Knowledge,
  type LookedObject,
} from '../postgres/look-events.ts'
import { lookedObject } from '../workflow/looked-object.ts'
import type { MadeEvent } from '../workflow/records.ts'
import type { Claim } from '../workflow/resolve-event.ts'

/** An event that was made of a record, and whose it is. */
export interface ClaimedRecord {
  readonly claim: Claim
  readonly event: MadeEvent
}

/** The events, looks under ids of their own, without those looks that this very record led to already. */
export async function withLooks(
  db: Database,
  mine: readonly ClaimedRecord[],
): Promise<readonly MadeEvent[]> {
  const plain: MadeEvent[] = []
  const looks: { readonly event: MadeEvent; readonly at: LookedObject }[] = []
  for (const { claim, event } of mine) {
    const { mirror } = claim.candidate.handler
    try {
      if (mirror === undefined) plain.push(event)
      else {
        const object = lookedObject(mirror.object({ event: claim.body }))
        const { orderId, event: of } = claim
        looks.push({ event, at: { orderId, sourceId: of.sourceId, object } })
      }
    } catch {
      plain.push(event) // it ends dead, and says why
    }
  }
  const known = await readKnowledge(
    db,
    db.schema,
    looks.map(({ at }) => at),
  )
  const fresh = looks.flatMap(({ event, at }, index) => {
    const knowledge = known[index]
    if (knowledge === undefined || isAnswered(event, knowledge)) return []
    return [lookEvent(event, at, knowledge)]
  })
  return [...plain, ...fresh]
}

/** This very record led to the newest answer, and that was decided from. */
function isAnswered(event: MadeEvent, knowledge: Knowledge): boolean {
  return knowledge.applied === knowledge.answered && isToldAlready(event, knowledge)
}
