/**
 * What a mirror's `object` returned, held to what it can be: it becomes a key, and must not be mistaken for
 * a gathering.
 */
import { PermanentError } from '../core/errors.ts'
import { gatheredEvent } from './gathering.ts'
import type { Name } from './order.ts'
import { checkedName } from './resolution.ts'

/**
 * The object to look at, as a name that can be a key.
 *
 * @throws PermanentError saying what is wrong.
 */
export function lookedObject(answer: unknown): Name {
  if (typeof answer !== 'object' || answer === null || 'then' in answer)
    throw new PermanentError('object must return name(…), synchronously')
  const object = checkedName(answer as Name)
  if (object.kind === gatheredEvent)
    throw new PermanentError(`object must not be of kind "${gatheredEvent}": choose another kind`)
  return object
}
