/**
 * One page of a list, newest first, or a `RecordsError`: what comes back lies in the window, comes once,
 * and says that it is the last page only when it is. A page that was cut on the way is asked for again.
 */
import { RecordsError, type RecordPage, type RecordQuery } from '../../workflow/records.ts'
import { keepableName } from '../event-naming.ts'
import { comesAgain, nextCursor, readCursor } from '../page-cursor.ts'
import type { StripeApi, StripeRead } from './stripe-api.ts'
import { expansionsOf, type StripeKind } from './stripe-kinds.ts'
import { requireShape } from './stripe-shapes.ts'

/** An object with what every record has. */
export interface StripeObject extends Readonly<Record<string, unknown>> {
  readonly id: string
  readonly created: number
}

/** The list's answer, with its form checked. */
interface Answer {
  readonly objects: readonly Readonly<Record<string, unknown>>[]
  readonly hasMore: boolean
}

/** A page and what its records are made from. */
export interface StripePage {
  readonly objects: readonly StripeObject[]
  readonly next: RecordPage['next']
}

const mostAPage = 100

/**
 * The page that the query asks for.
 *
 * @throws RecordsError
 */
export async function listStripe(
  api: StripeApi,
  kind: StripeKind,
  query: RecordQuery & { readonly stripeAccount: string | null },
): Promise<StripePage> {
  // Stripe stamps whole seconds: each lies in one window, whatever its borders are
  const gte = Math.ceil(query.from.getTime() / 1000)
  const lt = Math.ceil(query.to.getTime() / 1000)
  if (gte >= lt) return { objects: [], next: null }
  const cursor = readCursor(query.cursor)
  const expand = expansionsOf(kind, api.version).map((field) => `data.${field}`)
  const limit = Math.min(Math.max(query.limit ?? mostAPage, 1), mostAPage)
  const read: StripeRead = {
    path: kind.path,
    account: query.stripeAccount,
    signal: query.signal,
    query: {
      ...kind.query,
      created: { gte, lt },
      limit,
      ...(cursor !== null && { starting_after: cursor.after }),
      expand,
    },
  }
  const answer = await ask(api, kind, read)
  const objects = checkedObjects(kind, answer, { gte, lt, limit })
  const ids = objects.map((object) => object.id)
  if (comesAgain(cursor, ids)) throw garbage(kind, 'a page comes again')
  if (answer.hasMore && objects.length < limit) await confirm(api, kind, read, ids)
  // a full page that says it is the last is not believed: the next one may be empty
  const isLast = !answer.hasMore && objects.length < limit
  return { objects, next: isLast ? null : nextCursor(cursor, ids) }
}

async function ask(api: StripeApi, kind: StripeKind, read: StripeRead): Promise<Answer> {
  const answer = await api.get(read)
  if (answer === null) throw new RecordsError('refused', `Stripe does not have ${kind.path}`)
  const { data, has_more: hasMore } = answer
  if (!Array.isArray(data) || typeof hasMore !== 'boolean' || !data.every(isRecord)) {
    throw garbage(kind, 'the answer is no list')
  }
  if (hasMore && data.length === 0) throw garbage(kind, 'an empty page says that there is more')
  return { objects: data, hasMore }
}

/** A page that is short, and yet not the last, is good when Stripe says the same twice. */
async function confirm(
  api: StripeApi,
  kind: StripeKind,
  read: StripeRead,
  ids: readonly string[],
): Promise<void> {
  const again = await ask(api, kind, read)
  const isSame =
    again.objects.length === ids.length && again.objects.every(({ id }, at) => id === ids[at])
  if (!isSame) throw garbage(kind, 'records are missing in a page')
}

function checkedObjects(
  kind: StripeKind,
  { objects }: Answer,
  { gte, lt, limit }: { gte: number; lt: number; limit: number },
): StripeObject[] {
  if (objects.length > limit) throw garbage(kind, 'a page has more records than were asked for')
  const known = new Set<string>()
  return objects.map((object) => {
    const checked = checkedObject(kind, object)
    if (checked.created < gte || checked.created >= lt) {
      throw garbage(kind, `${checked.id} lies outside of the window that was asked for`)
    }
    if (known.has(checked.id)) throw garbage(kind, `${checked.id} comes twice in a page`)
    known.add(checked.id)
    return checked
  })
}

/**
 * The object, which is of the kind, has an id and a time, and whose fields can be what they should be.
 *
 * @throws RecordsError `garbage`
 */
export function checkedObject(
  kind: StripeKind,
  object: Readonly<Record<string, unknown>>,
): StripeObject {
  const { id, created, object: name } = object
  const isWhole =
    name === kind.kind &&
    keepableName(id) !== undefined &&
    !/\s/.test(id as string) &&
    typeof created === 'number' &&
    Number.isInteger(created)
  if (!isWhole) throw garbage(kind, 'what came is no record of this kind')
  requireShape(kind.kind, object as StripeObject)
  return object as StripeObject
}

function isRecord(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function garbage(kind: StripeKind, what: string): RecordsError {
  return new RecordsError('garbage', `Stripe, GET ${kind.path}: ${what}`)
}
