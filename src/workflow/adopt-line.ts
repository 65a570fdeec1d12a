/**
 * One line of a file to be adopted, held to what the engine itself would have recorded: declared states and
 * effects, configured sources, exact money. What fails is told by line, before anything is written. Pure.
 */
import { money, type Money } from '../core/money.ts'
import { nearest } from '../core/nearest.ts'
import { repeatedKey } from '../core/repeated-key.ts'
import { exampleTime, strictTime } from '../core/strict-time.ts'
import { declared, keyText, printable } from './checked-text.ts'
import type { EntitlementClaim } from './decision.ts'
import type { Environment } from './event.ts'
import { grantWorkflow } from './grant-workflow.ts'
import { reversedSuffix, type LedgerEffect } from './order.ts'
import { plainData } from './plain-data.ts'
import type { Workflow } from './workflow.ts'

/** A namespace of ids, as the inbox knows it. */
export interface AdoptNamespace {
  readonly provider: string
  readonly account: string
  readonly environment: Environment
}

/** A configured source, as far as adopting needs it. */
export interface AdoptSource extends AdoptNamespace {
  readonly allowsAccount: (account: string) => boolean
}

/** What a line may refer to. */
export interface AdoptKnown {
  readonly workflows: ReadonlyMap<string, Workflow>
  readonly sources: ReadonlyMap<string, AdoptSource>
}

/** A payment or name under the ids of one source. */
interface Sourced {
  readonly source: AdoptNamespace
}

/** An order as the app knows it. */
export interface OrderLine {
  readonly kind: 'order'
  readonly line: number
  readonly id: string
  readonly workflow: Workflow
  readonly state: string
  readonly subject: string | null
  readonly expected: Money | null
  /** The account that it belongs to; null: that of the first event about it. */
  readonly account: AdoptNamespace | null
  readonly names: readonly (Sourced & { readonly kind: string; readonly value: string })[]
  readonly payments: readonly (Sourced & Money & { readonly id: string })[]
  readonly effects: readonly LedgerEffect[]
  /** The whole set; null: none is stated. */
  readonly entitlements: readonly EntitlementClaim[] | null
}

/** An event that the app has handled. */
export interface EventLine extends Sourced {
  readonly kind: 'event'
  readonly line: number
  readonly id: string
  readonly type: string
  readonly occurredAt: Date | null
}

/** What a line says. */
export type AdoptLine = OrderLine | EventLine

/** Thrown for a line that cannot be adopted; the message does not name the line. */
export class LineError extends Error {}

const maxAmount = 2n ** 63n - 1n

/**
 * Reads one line.
 *
 * @throws LineError saying what is wrong, and never a value that could be secret
 */
export function readAdoptLine(text: string, line: number, known: AdoptKnown): AdoptLine {
  try {
    const value = objectOf(parsed(text), 'the line')
    if ('order' in value) return orderLine(value, line, known)
    if ('event' in value) return eventLine(value, line, known)
  } catch (error) {
    throw error instanceof LineError ? error : new LineError(messageOf(error))
  }
  throw new LineError('it names neither an "order" nor an "event"')
}

function parsed(text: string): unknown {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new LineError('it is not JSON: one object a line')
  }
  const twice = repeatedKey(text)
  if (twice === null) return value
  throw new LineError(`the field "${printable(twice).slice(0, 80)}" stands there twice`)
}

const orderKeys = [
  'order',
  'workflow',
  'state',
  'subject',
  'expected',
  'source',
  'account',
  'names',
  'payments',
  'effects',
  'entitlements',
] as const

function orderLine(value: Fields, line: number, known: AdoptKnown): OrderLine {
  checkKeys(value, orderKeys, 'an order')
  const workflow = workflowOf(value['workflow'], known)
  const state = value['state']
  declared(workflow.name, 'state', state, workflow.states)
  const source = (each: Fields): AdoptNamespace => sourceOf(each, value, workflow, known)
  const names = listOf(value['names'], 'names').map((each) => {
    checkKeys(each, ['kind', 'value', 'source', 'account'], 'a name')
    const kind = keyText(each['kind'], 'kind of a name')
    if (kind === 'order') throw new LineError('the kind of name "order" is the order id itself')
    return { kind, value: keyText(each['value'], `name of kind ${kind}`), source: source(each) }
  })
  const payments = listOf(value['payments'], 'payments').map((each) => {
    checkKeys(each, ['id', 'amount', 'currency', 'source', 'account'], 'a payment')
    const id = keyText(each['id'], 'id of a payment')
    return { id, ...moneyOf(each, `payment ${id}`), source: source(each) }
  })
  const effects = listOf(value['effects'], 'effects').flatMap((each) => effectRows(each, workflow))
  requireDistinct(effects.map(({ type, reference }) => `effect ${type} ${reference}`.trim()))
  checkRefunds(effects, payments)
  const isBound = names.length + payments.length > 0 || given(value, 'source', 'account')
  return {
    kind: 'order',
    line,
    id: keyText(value['order'], 'order id'),
    workflow,
    state: state as string,
    subject: optional(value['subject'], (each) => keyText(each, 'subject')),
    expected: optional(value['expected'], (each) => expectedOf(each)),
    account: isBound ? source(value) : null,
    names,
    payments,
    effects,
    entitlements: optional(value['entitlements'], (each) => entitlementsOf(each)),
  }
}

function eventLine(value: Fields, line: number, known: AdoptKnown): EventLine {
  checkKeys(value, ['event', 'type', 'source', 'account', 'occurredAt'], 'an event')
  return {
    kind: 'event',
    line,
    id: keyText(value['event'], 'event id'),
    type: optional(value['type'], (each) => keyText(each, 'type of the event')) ?? 'unknown',
    source: namespaceOf(value, sourceNamed(value['source'], [...known.sources.keys()], known)),
    occurredAt: optional(value['occurredAt'], (each) => timeOf(each, 'occurredAt')),
  }
}

function workflowOf(name: unknown, { workflows }: AdoptKnown): Workflow {
  if (name === grantWorkflow.name) return grantWorkflow
  const found = typeof name === 'string' ? workflows.get(name) : undefined
  if (found !== undefined) return found
  if (name === undefined) throw new LineError('it names no workflow')
  throw unknownName('workflow', name, [...workflows.keys(), grantWorkflow.name])
}

/** A payment or name has the order's source where it names none of its own. */
function sourceOf(
  each: Fields,
  order: Fields,
  workflow: Workflow,
  known: AdoptKnown,
): AdoptNamespace {
  if (workflow.sources.length === 0)
    throw new LineError(
      `workflow ${workflow.name} takes nothing from a source: its orders have no names, payments, source or account`,
    )
  const named = each['source'] ?? order['source']
  const source = sourceNamed(named, workflow.sources, known)
  const isOfOrder = each['source'] === undefined || each['source'] === order['source']
  const account = each['account'] ?? (isOfOrder ? order['account'] : undefined)
  return namespaceOf({ account }, source)
}

function sourceNamed(
  name: unknown,
  possible: readonly string[],
  { sources }: AdoptKnown,
): AdoptSource {
  if (name === undefined || name === null) {
    const [only] = possible
    const source = only === undefined || possible.length > 1 ? undefined : sources.get(only)
    if (source !== undefined) return source
    throw new LineError(`it must name its source: ${possible.join(' or ') || 'none is possible'}`)
  }
  const source = typeof name === 'string' ? sources.get(name) : undefined
  if (source === undefined) throw unknownName('source', name, sources.keys())
  if (possible.includes(name as string)) return source
  throw new LineError(`source "${String(name)}" is none of its workflow's: ${possible.join(', ')}`)
}

function namespaceOf(value: Fields, source: AdoptSource): AdoptNamespace {
  const { provider, environment } = source
  const account = optional(value['account'], (each) => keyText(each, 'account')) ?? source.account
  if (account !== source.account && !source.allowsAccount(account))
    throw new LineError(`the source does not allow account "${printable(account).slice(0, 80)}"`)
  return { provider, account, environment }
}

function effectRows(value: Fields, workflow: Workflow): LedgerEffect[] {
  const keys = ['type', 'reference', 'amount', 'currency', 'payment', 'data', 'reversed']
  checkKeys(value, keys, 'an effect')
  const { type, reference = '', reversed = false } = value
  declared(workflow.name, 'effect', type, workflow.effects)
  if (reference !== '') keyText(reference, 'reference of an effect')
  if (typeof reversed !== 'boolean') throw new LineError('reversed must be true or false')
  const amount = given(value, 'amount', 'currency')
    ? moneyOf(value, `effect ${String(type)}`)
    : null
  const row: LedgerEffect = {
    type: type as string,
    reference: reference as string,
    amount: amount?.amount ?? null,
    currency: amount?.currency ?? null,
    payment: optional(value['payment'], (each) => keyText(each, 'payment of an effect')),
    data: plainData(
      optional(value['data'], (each) => objectOf(each, 'data of an effect')) ?? undefined,
      `data of effect ${String(type)}`,
    ),
  }
  if (!reversed) return [row]
  const reversal = { ...row, type: `${row.type}${reversedSuffix}`, amount: null, currency: null }
  return [row, { ...reversal, payment: null, data: {} }]
}

/** Refunds count against the payment that they name: it is of this order, and never exceeded. */
function checkRefunds(effects: readonly LedgerEffect[], payments: OrderLine['payments']): void {
  const reversed = new Set(
    effects
      .filter(({ type }) => type.endsWith(reversedSuffix))
      .map(({ type, reference }) => `${type.slice(0, -reversedSuffix.length)}\n${reference}`),
  )
  const sums = new Map<string, bigint>()
  for (const { type, reference, payment, amount, currency } of effects) {
    if (payment === null) continue
    const captured = payments.find((each) => each.id === payment)
    if (captured === undefined)
      throw new LineError(
        `effect ${type} names payment ${payment}, which is not among its payments`,
      )
    if (amount === null || reversed.has(`${type}\n${reference}`)) continue
    if (currency !== captured.currency)
      throw new LineError(`effect ${type} has another currency than payment ${payment}`)
    const sum = (sums.get(payment) ?? 0n) + amount
    sums.set(payment, sum)
    if (amount < 0n || sum > captured.amount)
      throw new LineError(`its effects come to more than payment ${payment} captured`)
  }
}

function entitlementsOf(value: unknown): EntitlementClaim[] {
  const claims = listOf(value, 'entitlements').map((each) => {
    checkKeys(each, ['subject', 'entitlement', 'quantity', 'validUntil'], 'an entitlement')
    const { quantity = 1 } = each
    if (!Number.isSafeInteger(quantity) || (quantity as number) < 1)
      throw new LineError('the quantity of an entitlement must be a positive integer')
    return {
      subject: keyText(each['subject'], 'subject of an entitlement'),
      entitlement: keyText(each['entitlement'], 'entitlement'),
      quantity: quantity as number,
      validUntil: optional(each['validUntil'], (until) => timeOf(until, 'validUntil')),
    }
  })
  requireDistinct(claims.map((each) => `entitlement ${each.entitlement} of ${each.subject}`))
  return claims
}

function expectedOf(value: unknown): Money {
  const expected = objectOf(value, 'expected')
  checkKeys(expected, ['amount', 'currency'], 'expected')
  return moneyOf(expected, 'expected')
}

function moneyOf(value: Fields, what: string): Money {
  const { amount, currency } = value
  if (typeof amount === 'number' && !Number.isSafeInteger(amount))
    throw new LineError(`the amount of ${what} is not an exact integer: write it as a text`)
  const exact = money(amount as string | number, currency as string)
  if (exact.amount < 0n || exact.amount > maxAmount)
    throw new LineError(`the amount of ${what} must not be negative, and must fit 64 bits`)
  return exact
}

function timeOf(value: unknown, what: string): Date {
  const time = typeof value === 'string' ? strictTime(value) : null
  if (time !== null) return time
  throw new LineError(`${what} must be a time such as ${exampleTime}, of the years 2000 to 9999`)
}

type Fields = Readonly<Record<string, unknown>>

function objectOf(value: unknown, what: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw new LineError(`${what} must be an object`)
}

function listOf(value: unknown, what: string): Fields[] {
  if (value === undefined || value === null) return []
  if (!Array.isArray(value)) throw new LineError(`${what} must be a list`)
  return value.map((each) => objectOf(each, `each of the ${what}`))
}

function optional<T>(value: unknown, read: (value: unknown) => T): T | null {
  return value === undefined || value === null ? null : read(value)
}

function given(value: Fields, ...keys: readonly string[]): boolean {
  return keys.some((key) => value[key] !== undefined && value[key] !== null)
}

/** A misspelled key would be silence: `entitlement`, and nobody is entitled. */
function checkKeys(value: Fields, known: readonly string[], what: string): void {
  for (const key of Object.keys(value))
    if (!known.includes(key)) throw unknownName(`field of ${what}`, key, known)
}

function requireDistinct(keys: readonly string[]): void {
  const seen = new Set<string>()
  for (const key of keys) {
    if (seen.has(key)) throw new LineError(`${printable(key)} stands there twice`)
    seen.add(key)
  }
}

function unknownName(what: string, value: unknown, names: Iterable<string>): LineError {
  const shown = printable(String(value)).slice(0, 80)
  const near = nearest(shown, names)
  return new LineError(
    `unknown ${what} "${shown}"${near === null ? '' : `, did you mean "${near}"?`}`,
  )
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : 'it cannot be read'
}
