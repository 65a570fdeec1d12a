/**
 * What is given away, held to what an entitlement can be, before anything is written. Pure.
 */
import { HookledgerError } from '../core/errors.ts'
import { nameFlaw, reasonFlaw } from '../core/recorded-text.ts'
import { keyText, printable } from './checked-text.ts'

/** One thing that is given away: its name, or its name with a quantity. */
export type GrantedEntitlement =
  string | { readonly entitlement: string; readonly quantity?: number | undefined }

/** Why, and who: both are recorded. */
export interface GrantReason {
  readonly reason: string
  readonly actor: string
}

/** What is given away. */
export interface GrantRequest extends GrantReason {
  /** Who gets it: `user:42`. */
  readonly subject: string
  /** At least one. */
  readonly entitlements: readonly GrantedEntitlement[]
  /** Until when; without it until somebody ends it. */
  readonly until?: Date | null | undefined
  /**
   * The id of the grant's order, at most 255 bytes. The same grant under the same id is given once, however
   * often it is asked for. Default: a new id.
   */
  readonly id?: string | undefined
}

/** A grant to be ended. */
export interface GrantEnd extends GrantReason {
  readonly id: string
}

/** A grant that can be written. */
export interface CheckedGrant {
  readonly id: string
  readonly subject: string
  /** Sorted by name. */
  readonly entitlements: readonly { readonly entitlement: string; readonly quantity: number }[]
  readonly until: Date | null
  readonly reason: string
  readonly actor: string
}

const firstMs = Date.parse('0001-01-01T00:00:00Z')
const endMs = Date.parse('+010000-01-01T00:00:00Z')

/**
 * The grant, checked. `newId` names it where the request does not.
 *
 * @throws HookledgerError HKL_GRANT_INVALID saying what is wrong
 */
export function checkedGrant(given: GrantRequest, newId: () => string): CheckedGrant {
  const { subject, entitlements, until = null, id } = given
  if (!Array.isArray(entitlements) || entitlements.length === 0)
    throw invalid('a grant names at least one entitlement')
  const quantities = new Map<string, number>()
  for (const each of entitlements as readonly GrantedEntitlement[]) {
    const { entitlement, quantity = 1 } = typeof each === 'string' ? { entitlement: each } : each
    const name = key(entitlement, 'entitlement')
    if (!Number.isSafeInteger(quantity) || quantity < 1)
      throw invalid('the quantity of an entitlement must be a positive integer')
    if (quantities.has(name)) throw invalid(`the entitlement "${printable(name)}" is named twice`)
    quantities.set(name, quantity)
  }
  if (until !== null && !isDate(until)) throw invalid('until must be a Date of the years 1 to 9999')
  return {
    id: id === undefined ? newId() : key(id, 'id of the grant'),
    subject: key(subject, 'subject of the grant'),
    entitlements: [...quantities]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([entitlement, quantity]) => ({ entitlement, quantity })),
    until,
    ...checkedReason(given),
  }
}

/**
 * Why and who, as they are recorded.
 *
 * @throws HookledgerError HKL_GRANT_INVALID where one of them is empty or too long, or the actor has control characters
 */
export function checkedReason({ reason, actor }: GrantReason): GrantReason {
  return { reason: said(reason, 'reason'), actor: said(actor, 'actor') }
}

function said(value: unknown, what: 'reason' | 'actor'): string {
  if (typeof value === 'string' && value.trim() !== '') {
    const flaw = what === 'reason' ? reasonFlaw(value) : nameFlaw(value)
    if (flaw !== null) throw invalid(`the ${what} ${flaw}`)
    return printable(value)
  }
  throw invalid(
    `a grant needs ${what === 'actor' ? 'an actor' : 'a reason'}: it is recorded with it`,
  )
}

function key(value: unknown, what: string): string {
  try {
    return keyText(value, what)
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : `the ${what} is not valid`)
  }
}

function isDate(value: unknown): boolean {
  return value instanceof Date && value.getTime() >= firstMs && value.getTime() < endMs
}

function invalid(message: string): HookledgerError {
  return new HookledgerError('HKL_GRANT_INVALID', message)
}
