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

/** Everything of a kind in one account, as a list walks over it. */
export interface ListSource<T> {
  url: string
  kind: string
  /** Oldest first. */
  records: readonly StoredRecord<T>[]
  /** Where a record stands among these; undefined when it is none of them. */
  positionOf(id: string): number | undefined
  /** Whether lists show the record at this moment. */
  shows(record: StoredRecord<T>): boolean
  /** The filter of the kind. */
  matches(object: T): boolean
}

/** Whether lists show a record at `nowMs` (milliseconds of the double's clock). */
export function isListed(record: StoredRecord, lag: ListLag, nowMs: number): boolean {
  return record.createdMs + (typeof lag === 'number' ? lag : lag(record.object)) <= nowMs
}

/**
 * One page. It costs as much as it reads, not as much as there is: reconciliation pages through
 * hundreds of thousands.
 *
 * @throws StripeApiError 400 for a limit out of range or a cursor that the list does not contain.
 */
export function page<T extends StoredObject & { created?: number }>(
  source: ListSource<T>,
  parameters: Parameters,
): Page<T> {
  const limit = integer(parameters, 'limit') ?? 10
  if (limit < 1 || limit > 100) {
    throw invalidRequest('This value must be between 1 and 100.', {
      code: 'parameter_invalid_integer',
      param: 'limit',
    })
  }
  const created = createdFilter(parameters)
  const { start, step } = startOf(source, parameters)
  const found: T[] = []
  for (let at = start; at >= 0 && at < source.records.length && found.length <= limit; at += step) {
    const record = source.records[at]!
    if (!source.shows(record)) continue
    if (source.matches(record.object) && created(record.object.created ?? 0))
      found.push(record.object)
  }
  const data = found.slice(0, limit)
  // Walking toward newer ones, the page is the one right before the cursor, still newest first.
  if (step === 1) data.reverse()
  return { object: 'list', data, has_more: found.length > limit, url: source.url }
}

/** Where the page begins and whether it walks toward older (-1) or newer (1) records. */
function startOf<T extends StoredObject>(
  source: ListSource<T>,
  parameters: Parameters,
): { start: number; step: 1 | -1 } {
  const after = text(parameters, 'starting_after')
  const before = text(parameters, 'ending_before')
  if (after !== undefined && before !== undefined) {
    throw invalidRequest(
      'You cannot parameterize starting_after and ending_before at the same time.',
    )
  }
  if (after !== undefined) return { start: cursor(source, after, 'starting_after') - 1, step: -1 }
  if (before !== undefined) return { start: cursor(source, before, 'ending_before') + 1, step: 1 }
  return { start: source.records.length - 1, step: -1 }
}

function cursor<T extends StoredObject>(source: ListSource<T>, id: string, param: string): number {
  const at = source.positionOf(id)
  if (at === undefined || !source.shows(source.records[at]!)) throw missing(source.kind, id, param)
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
