/**
 * Lists as Stripe serves them: newest first, pages by the id of a neighbor, and late: a record shows
 * only after the lag, while retrieving it by its id answers at once.
 */
import { invalidRequest, missing } from './api-error.ts'
import type { Parameters } from './form-parameters.ts'
import type { StoredObject } from './object-kinds.ts'
import { integer, nested, text } from './parameter-readers.ts'
import type { StoredRecord } from './object-state.ts'

/** A page of a list. */
export interface Page<T> {
  object: 'list'
  data: T[]
  has_more: boolean
  url: string
}

/** The parameters that every list knows. */
export const pageParameters = ['limit', 'starting_after', 'ending_before', 'created'] as const

/** How long, in milliseconds, a record takes to show in lists; the same for all, or for each its own. */
export type ListLag = number | ((object: StoredObject) => number)

/** The records, oldest first, that lists show at `nowMs`. */
export function visibleRecords<T extends StoredObject>(
  records: readonly StoredRecord<T>[],
  lag: ListLag,
  nowMs: number,
): StoredRecord<T>[] {
  const lagOf = typeof lag === 'number' ? () => lag : lag
  return records.filter((record) => record.createdMs + lagOf(record.object) <= nowMs)
}

/**
 * One page. `records` are all that lists show, oldest first; `matches` is the filter of the kind.
 *
 * @throws StripeApiError 400 for a limit out of range or a cursor that the list does not contain.
 */
export function page<T extends StoredObject & { created?: number }>(
  list: { url: string; kind: string },
  records: readonly StoredRecord<T>[],
  parameters: Parameters,
  matches: (object: T) => boolean,
): Page<T> {
  const limit = integer(parameters, 'limit') ?? 10
  if (limit < 1 || limit > 100) {
    throw invalidRequest('This value must be between 1 and 100.', {
      code: 'parameter_invalid_integer',
      param: 'limit',
    })
  }
  const created = createdFilter(parameters)
  const newestFirst = [...records].reverse().map((record) => record.object)
  const [from, to] = window(list.kind, newestFirst, parameters)
  const found = newestFirst
    .slice(from, to)
    .filter((object) => matches(object) && created(object.created ?? 0))
  // Paging backward, the page is the one right before the cursor: the last ones of what is left.
  const backward = text(parameters, 'ending_before') !== undefined
  const data = backward ? found.slice(-limit) : found.slice(0, limit)
  return { object: 'list', data, has_more: found.length > data.length, url: list.url }
}

function window(
  kind: string,
  objects: readonly { id: string }[],
  parameters: Parameters,
): [number, number] {
  const after = text(parameters, 'starting_after')
  const before = text(parameters, 'ending_before')
  if (after !== undefined && before !== undefined) {
    throw invalidRequest(
      'You cannot parameterize starting_after and ending_before at the same time.',
    )
  }
  if (after !== undefined)
    return [cursor(kind, objects, after, 'starting_after') + 1, objects.length]
  if (before !== undefined) return [0, cursor(kind, objects, before, 'ending_before')]
  return [0, objects.length]
}

function cursor(
  kind: string,
  objects: readonly { id: string }[],
  id: string,
  param: string,
): number {
  const at = objects.findIndex((object) => object.id === id)
  if (at === -1) throw missing(kind, id, param)
  return at
}

/** `created=5` or `created[gte]=5`, in seconds since 1970. */
function createdFilter(parameters: Parameters): (created: number) => boolean {
  if (typeof parameters['created'] === 'string') {
    const exact = integer(parameters, 'created')
    return (created) => created === exact
  }
  const range = nested(parameters, 'created')
  for (const name of Object.keys(range)) {
    if (!['gt', 'gte', 'lt', 'lte'].includes(name)) {
      throw invalidRequest(`Received unknown parameter: created[${name}]`, {
        code: 'parameter_unknown',
        param: `created[${name}]`,
      })
    }
  }
  const gt = integer(range, 'gt') ?? -Infinity
  const gte = integer(range, 'gte') ?? -Infinity
  const lt = integer(range, 'lt') ?? Infinity
  const lte = integer(range, 'lte') ?? Infinity
  return (created) => created > gt && created >= gte && created < lt && created <= lte
}
