/**
 * Pages of a list of Stripe's, one after the other and boundedly many. What is no list is no answer, and a list
 * that is missing says nothing of the subscription: only asking for that itself does.
 */
import { RecordsError } from '../../workflow/records.ts'
import { fieldsOf } from '../stripe-records/stripe-trouble.ts'

/** More pages than anything here has: past it the list does not end. */
const mostPages = 20

/** What a list is asked with, beside what it is a list of. */
export interface PageParameters {
  readonly limit: number
  readonly starting_after?: string
}

/** One list of Stripe's. */
export interface PagedList<T> {
  /** For messages: `GET /v1/invoices`. */
  readonly path: string
  /** Asks for one page. */
  readonly ask: (parameters: PageParameters) => Promise<{
    readonly data: readonly T[]
    readonly has_more: boolean
  }>
}

/**
 * The pages of the list, as long as they are taken.
 *
 * @throws the SDK's error where Stripe did not answer, and RecordsError where the answer cannot be true
 */
export async function* pagesOf<T extends { readonly id: string }>({
  path,
  ask,
}: PagedList<T>): AsyncGenerator<readonly T[], void, undefined> {
  let after: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const { data, has_more: hasMore } = await asked(
      path,
      ask({ limit: 100, ...(after !== undefined && { starting_after: after }) }),
    )
    if (!Array.isArray(data) || !data.every(isObject)) throw garbage(path, 'it is no list')
    yield data
    if (!hasMore) return
    after = data.at(-1)?.id
    if (after === undefined) break
  }
  throw garbage(path, 'the list does not end')
}

/** What cannot be true of an answer to `path`. */
export function garbage(path: string, what: string): RecordsError {
  return new RecordsError('garbage', `Stripe, ${path}: ${what}`)
}

/** "No such object" is about the one that a page was to begin after: it was removed meanwhile. */
async function asked<Answer>(path: string, answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer
  } catch (error) {
    const { statusCode } = (error ?? {}) as { readonly statusCode?: unknown }
    if (statusCode !== 404 || fieldsOf(error).code !== 'resource_missing') throw error
    throw new RecordsError('cursor_lost', `Stripe, ${path}: the list changed while it was read`)
  }
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null
}
