/**
 * Which order an event belongs to, as a workflow's `order` function answers it.
 */
import { PermanentError } from '../core/errors.ts'
import { keyText, printable } from './checked-text.ts'
import type { Name } from './order.ts'

/** The answer of `order`: the app's own id, names to wait for, or "not ours". */
export type Resolution =
  | { readonly kind: 'order'; readonly id: string }
  | { readonly kind: 'wait'; readonly names: readonly Name[] }
  | { readonly kind: 'not_ours'; readonly reason: string }

/**
 * Another identifier of the order. A field that holds none gives null, which `learn` and `waitFor` drop.
 *
 * @throws PermanentError for a value that cannot be a key: empty, over 255 bytes, with NUL.
 */
export function name(kind: string, value: string): Name
export function name(kind: string, value: Expandable): Name | null
export function name(kind: string, value: Expandable): Name | null {
  const id = typeof value === 'string' ? value : idOf(value)
  return id === null ? null : checkedName({ kind, value: id })
}

/**
 * The names that a body really holds. Expandable fields (`string | { id } | null`) are read as their id.
 *
 * @example names({ payment_intent: event.data.object.payment_intent })
 */
export function names(values: Readonly<Record<string, Expandable>>): Name[] {
  return present(
    Object.entries(values).map(([kind, value]) => name(kind, value === '' ? null : value)),
  )
}

/** A field that providers send as an id, as the whole object, or not at all. */
export type Expandable = string | { readonly id?: string } | null | undefined

/** The id of an expandable field, or null. */
export function idOf(value: Expandable): string | null {
  const id = typeof value === 'object' && value !== null ? value.id : value
  if (id === undefined || id === null || id === '') return null
  return keyText(id, 'id')
}

/** The order has this id; a missing one says that the event is not ours. */
export function orderId(id: string | null | undefined): Resolution {
  if (id === null || id === undefined || id === '') return notOurs('it carries no order id')
  return { kind: 'order', id: keyText(id, 'order id') }
}

/** The order is the one that any of these names leads to; until one does, the event waits. */
export function waitFor(waited: readonly (Name | null)[]): Resolution {
  const found = present(waited)
  return found.length === 0
    ? notOurs('it carries no name of an order')
    : { kind: 'wait', names: found }
}

/** The order is the one that this name leads to; a missing value is not ours. */
export function byName(kind: string, value: Expandable): Resolution {
  return waitFor(names({ [kind]: value }))
}

/** The event concerns no order of this workflow. */
export function notOurs(reason: string): Resolution {
  return { kind: 'not_ours', reason }
}

/**
 * A name whose parts can be keys, frozen.
 *
 * @throws PermanentError when one of them cannot.
 */
export function checkedName(value: Name): Name {
  return Object.freeze({
    kind: keyText(value.kind, 'kind of a name'),
    value: keyText(value.value, `name of kind ${value.kind}`),
  })
}

/** The names that are there, without repetitions. */
export function present(values: readonly (Name | null)[]): Name[] {
  const found: Name[] = []
  for (const value of values) {
    if (
      value === null ||
      found.some((each) => each.kind === value.kind && each.value === value.value)
    )
      continue
    found.push(value)
  }
  return found
}

/**
 * What an `order` function returned, held to what it can be; a text is the order's id.
 *
 * @throws PermanentError saying what is wrong.
 */
export function checkedResolution(answer: unknown): Resolution {
  if (typeof answer === 'string' || answer === null || answer === undefined) return orderId(answer)
  const resolution = answer as Resolution
  switch (resolution.kind) {
    case 'order':
      return orderId(resolution.id)
    case 'wait':
      return waitFor(checkedNames(resolution.names))
    case 'not_ours':
      return notOurs(printable(resolution.reason))
    default:
      throw new PermanentError(
        'order must return an order id, waitFor(…), byName(…) or notOurs(…), synchronously',
      )
  }
}

/**
 * What a `learn` function returned, without what is missing in it.
 *
 * @throws PermanentError saying what is wrong.
 */
export function checkedNames(values: unknown): Name[] {
  if (!Array.isArray(values))
    throw new PermanentError('names must be a list of name(…), made synchronously')
  return present(
    values.map((value: Name | null | undefined) =>
      value === null || value === undefined ? null : checkedName(value),
    ),
  )
}
