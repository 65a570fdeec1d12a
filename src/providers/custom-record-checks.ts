/**
 * What functions of the user's return, held to what records, events and facts can be: nothing that could
 * not be true, or could not be kept, gets past here.
 */
import type {
  Fact,
  MadeEvent,
  PaymentFact,
  ProviderRecord,
  RecordPage,
  RecordQuery,
  RecordReference,
} from '../workflow/records.ts'
import { RecordsError } from '../workflow/records.ts'
import { keepableName } from './event-naming.ts'

/** A record as a function of the user's returns it. */
export interface CustomRecord {
  readonly id: string
  /** When the sender made it; what windows are cut by. */
  readonly createdAt: Date
  /** The sender's own JSON. */
  readonly object: Readonly<Record<string, unknown>>
}

/** A page as `list` returns it; `next` is whatever the next call needs, and missing on the last page. */
export interface CustomPage {
  readonly records: readonly CustomRecord[]
  readonly next?: string | null | undefined
}

/** An event made from an object. */
export interface CustomEvent {
  readonly type: string
  /** Which of several events of this type the object led to: a status, a sum. */
  readonly fact?: string | undefined
  readonly occurredAt?: Date | undefined
  /** As the sender's webhook would have carried it. */
  readonly body: Readonly<Record<string, unknown>>
}

/**
 * A page whose records lie in the window and come once, with a cursor that leads on.
 *
 * @throws RecordsError `garbage`
 */
export function checkedPage(query: RecordQuery, page: CustomPage): RecordPage {
  const where = `list of ${query.kind}`
  if (!isObject(page) || !Array.isArray(page.records)) {
    throw garbage(where, 'it must return { records, next }')
  }
  const next = page.next ?? null
  if (next !== null && (typeof next !== 'string' || next === '' || next === query.cursor)) {
    throw garbage(where, 'next must be a text that leads on, or null on the last page')
  }
  const known = new Set<string>()
  const records = (page.records as readonly CustomRecord[]).map((found) => {
    const record = checkedRecord({ kind: query.kind, account: query.account }, found)
    if (record.createdAt < query.from || record.createdAt >= query.to) {
      throw garbage(where, `${record.id} was not made in the window that was asked for`)
    }
    if (known.has(record.id)) throw garbage(where, `${record.id} comes twice in a page`)
    known.add(record.id)
    return record
  })
  return { records, next }
}

/**
 * A record as its provider has it: plain JSON, so that nobody can change it later.
 *
 * @throws RecordsError `garbage`
 */
export function checkedRecord(
  asked: Pick<RecordReference, 'kind' | 'account'> & { readonly id?: string },
  found: CustomRecord,
): ProviderRecord {
  const where = `a record of kind ${asked.kind}`
  if (!isObject(found)) throw garbage(where, 'it must be { id, createdAt, object }')
  const { id, createdAt, object } = found
  if (keepableName(id) === undefined) throw garbage(where, 'its id must be a text up to 255 bytes')
  if (asked.id !== undefined && asked.id !== id) throw garbage(where, 'it is not the one asked for')
  if (!(createdAt instanceof Date) || Number.isNaN(createdAt.getTime())) {
    throw garbage(where, 'createdAt must be a date')
  }
  if (!isObject(object)) throw garbage(where, 'object must be the JSON of the record')
  const { kind, account } = asked
  return { kind, id, createdAt, account, object: plainJson(where, object) }
}

/**
 * Events made of an object, under ids that name type, object and fact.
 *
 * @throws RecordsError `garbage`
 */
export function checkedEvents(
  record: ProviderRecord,
  make: () => readonly CustomEvent[],
): readonly MadeEvent[] {
  const where = `eventsOf a ${record.kind}`
  const made = called(where, make)
  const known = new Set<string>()
  return made.map(({ type, fact, occurredAt, body }) => {
    const eventId = `object:${type}:${record.id}${fact === undefined ? '' : `:${fact}`}`
    if (keepableName(type) === undefined || keepableName(eventId) === undefined) {
      throw garbage(where, 'type, id and fact must be texts of at most 255 bytes together')
    }
    if (known.has(eventId)) throw garbage(where, 'two events of one type need a fact each')
    known.add(eventId)
    if (!isObject(body)) throw garbage(where, 'body must be the JSON of the event')
    return {
      eventId,
      eventType: type,
      occurredAt: occurredAt ?? record.createdAt,
      apiVersion: null,
      body: plainJson(where, body),
    }
  })
}

/** The largest that a ledger holds. */
const largestAmount = 2n ** 63n - 1n

const standings: Readonly<Record<Fact['fact'], readonly string[]>> = {
  payment: ['paid', 'unpaid', 'failed'],
  refund: ['pending', 'succeeded', 'failed'],
  dispute: ['open', 'won', 'lost'],
}

/**
 * Facts about money, exact, with their currency in capitals. What cannot be one is told by record and field, and
 * never by its value.
 *
 * @throws RecordsError `garbage`
 */
export function checkedFacts(record: ProviderRecord, make: () => readonly Fact[]): readonly Fact[] {
  const where = `factsOf ${record.kind} ${record.id}`
  return called(where, make).map((fact) => {
    if (!Object.hasOwn(standings, fact.fact) || !standings[fact.fact].includes(fact.standing)) {
      throw garbage(where, 'a fact is a payment, refund or dispute with its standing')
    }
    if (keepableName(fact.id) === undefined)
      throw garbage(where, 'a fact needs the id of its money')
    checkNames(where, fact)
    if (fact.fact === 'dispute') return fact
    const sums = fact.fact === 'payment' ? (['amount', 'refunded'] as const) : (['amount'] as const)
    for (const sum of sums) {
      const value: unknown = (fact as PaymentFact)[sum]
      if (typeof value !== 'bigint' || value < 0n || value > largestAmount) {
        throw garbage(where, `${sum}: amounts must be bigints in minor units, not negative`)
      }
    }
    if (typeof fact.currency !== 'string' || !/^[A-Za-z]{3}$/.test(fact.currency)) {
      throw garbage(where, 'a currency must be a three-letter ISO 4217 code')
    }
    return { ...fact, currency: fact.currency.toUpperCase() }
  })
}

/** The ids of other records that a fact names. */
function checkNames(where: string, fact: Fact): void {
  if (fact.fact !== 'payment') {
    if (fact.payment !== null && keepableName(fact.payment) === undefined) {
      throw garbage(where, 'payment must be the id of one, or null')
    }
    return
  }
  const { aliases, judgedBy } = fact
  const isNamed =
    aliases === undefined ||
    (Array.isArray(aliases) && aliases.every((id) => keepableName(id) !== undefined))
  if (!isNamed) throw garbage(where, 'aliases must be ids')
  if (judgedBy === undefined) return
  const reference: unknown = judgedBy
  const isReference =
    isObject(reference) &&
    ['kind', 'id', 'account'].every(
      (field) =>
        keepableName((reference as Readonly<Record<string, unknown>>)[field]) !== undefined,
    )
  if (!isReference) throw garbage(where, 'judgedBy must be { kind, id, account }')
}

function called<T>(where: string, make: () => readonly T[]): readonly T[] {
  let made: readonly T[]
  try {
    made = make()
  } catch (cause) {
    const named = cause instanceof Error ? cause.name : typeof cause
    throw new RecordsError('garbage', `customRecords(): ${where} failed (${named})`, { cause })
  }
  const returned: unknown = made
  if (!Array.isArray(returned) || !returned.every(isObject)) {
    throw garbage(where, 'it must return an array of objects')
  }
  return made
}

/** What JSON makes of it, which is also a copy. */
function plainJson(where: string, object: object): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(JSON.stringify(object)) as Readonly<Record<string, unknown>>
  } catch (cause) {
    throw new RecordsError('garbage', `customRecords(): ${where}: it cannot be written as JSON`, {
      cause,
    })
  }
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function garbage(where: string, what: string): RecordsError {
  return new RecordsError('garbage', `customRecords(): ${where}: ${what}`)
}
