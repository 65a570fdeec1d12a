/**
 * What is said about subjects: which one a provider's customer is, and which of them became one. Held to
 * what can be recorded before anything is written. Pure.
 */
import { HookledgerError } from '../core/errors.ts'
import { nameFlaw, reasonFlaw } from '../core/recorded-text.ts'
import { keyText, printable } from './checked-text.ts'

/** Why, and who: both are recorded. */
export interface SubjectActor {
  readonly reason: string
  readonly actor: string
}

/** A provider's customer, and the subject that it is from now on. */
export interface CustomerLink extends SubjectActor {
  /** The source's name in the configuration. */
  readonly source: string
  /** The provider account that knows the customer; default: the source's own. */
  readonly account?: string | undefined
  /** The provider's id: `cus_1`. */
  readonly customer: string
  /** `user:42`, `org:7`. */
  readonly subject: string
  /** Also where the customer is linked with another subject: decided from with the next event. Default false. */
  readonly replace?: boolean | undefined
}

/** `existed`: it was linked with this subject before, and nothing changed. */
export type LinkAnswer = 'linked' | 'existed'

/** A subject that is another one from now on. */
export interface SubjectMerge extends SubjectActor {
  readonly from: string
  readonly into: string
}

/** `existed`: they were one before, and nothing changed. */
export type MergeAnswer = 'merged' | 'existed'

/**
 * The link, checked.
 *
 * @throws HookledgerError HKL_SUBJECT_INVALID saying what is wrong
 */
export function checkedLink(link: CustomerLink): CustomerLink & { readonly replace: boolean } {
  const { source, account, customer, subject, replace = false } = given(link, 'linkCustomer')
  if (typeof replace !== 'boolean') throw invalid('replace must be true or false')
  return {
    source: key(source, 'source'),
    account: account === undefined ? undefined : key(account, 'account'),
    customer: key(customer, 'customer'),
    subject: key(subject, 'subject'),
    replace,
    ...checkedActor(link),
  }
}

/**
 * The merge, checked.
 *
 * @throws HookledgerError HKL_SUBJECT_INVALID saying what is wrong
 */
export function checkedMerge(merge: SubjectMerge): SubjectMerge {
  const from = key(given(merge, 'mergeSubjects').from, 'subject that is merged (from)')
  const into = key(merge.into, 'subject that it is merged into (into)')
  if (from === into) throw invalid(`${printable(from)} cannot be merged into itself`)
  return { from, into, ...checkedActor(merge) }
}

function given<T extends object>(value: T, what: string): T {
  if (typeof value === 'object' && value !== null) return value
  throw invalid(`${what} takes the transaction and an object`)
}

function checkedActor({ reason, actor }: SubjectActor): SubjectActor {
  return { reason: said(reason, 'reason'), actor: said(actor, 'actor') }
}

function said(value: unknown, what: 'reason' | 'actor'): string {
  if (typeof value !== 'string' || value.trim() === '')
    throw invalid(`${what === 'actor' ? 'an actor' : 'a reason'} is missing: it is recorded`)
  const flaw = what === 'reason' ? reasonFlaw(value) : nameFlaw(value)
  if (flaw !== null) throw invalid(`the ${what} ${flaw}`)
  return printable(value)
}

function key(value: unknown, what: string): string {
  try {
    return keyText(value, what)
  } catch (error) {
    throw invalid(error instanceof Error ? error.message : `the ${what} is not valid`)
  }
}

function invalid(message: string): HookledgerError {
  return new HookledgerError('HKL_SUBJECT_INVALID', message)
}
