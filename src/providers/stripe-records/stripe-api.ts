/**
 * Reads of Stripe's API through the official SDK: Stripe's own JSON comes back or a `RecordsError`, and
 * never what something on the way answered under 200.
 */
import { RecordsError } from '../../workflow/records.ts'
import { createStripeClient, sdkVersion, type StripeReach } from './stripe-sdk.ts'
import { NoSuchObject, stripeTrouble, type Asked } from './stripe-trouble.ts'

/** Query parameters; an array is sent as `name[]`, a record as `name[key]`. */
export type StripeQuery = Readonly<
  Record<string, string | number | readonly string[] | Readonly<Record<string, number>> | undefined>
>

/** One read. */
export interface StripeRead {
  readonly path: string
  /** The object; the list where absent. */
  readonly id?: string
  readonly query?: StripeQuery
  /** The connected account; null: the one that the key belongs to. */
  readonly account: string | null
  readonly signal: AbortSignal
}

/** Options of the API. */
export interface StripeApiOptions extends StripeReach {
  /** Undefined: the SDK's. */
  readonly apiVersion: string | undefined
}

/** Reads Stripe's API. */
export class StripeApi {
  readonly #options: StripeApiOptions

  constructor(options: StripeApiOptions) {
    this.#options = options
  }

  /** The version that objects are asked for in; undefined where no SDK is installed. */
  get version(): string | undefined {
    return this.#options.apiVersion ?? sdkVersion()
  }

  /**
   * The JSON of the answer; null where Stripe says that there is no such object.
   *
   * @throws RecordsError
   */
  async get(read: StripeRead): Promise<Readonly<Record<string, unknown>> | null> {
    const { id, query = {}, account, signal } = read
    const path = id === undefined ? read.path : `${read.path}/${encodeURIComponent(id)}`
    const asked: Asked = {
      what: `GET ${read.path}${id === undefined ? '' : '/…'}`,
      callMs: this.#options.callMs,
      signal,
      isContinued: query['starting_after'] !== undefined,
    }
    const { client, seen } = createStripeClient(this.#options, signal)
    let answer: unknown
    try {
      answer = await client.rawRequest('GET', path + queryText(query), undefined, {
        ...(account !== null && { stripeAccount: account }),
        ...(this.#options.apiVersion !== undefined && { apiVersion: this.#options.apiVersion }),
      })
    } catch (error) {
      const trouble = stripeTrouble(error, seen, asked)
      if (trouble instanceof NoSuchObject) return null
      throw trouble
    }
    const { status } = seen
    if (status === undefined || status < 200 || status > 299) {
      throw stripeTrouble(undefined, seen, asked)
    }
    if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) {
      throw new RecordsError('garbage', `Stripe, ${asked.what}: the answer is no object`)
    }
    return answer as Readonly<Record<string, unknown>>
  }
}

function queryText(query: StripeQuery): string {
  const pairs: string[] = []
  const add = (name: string, value: string | number): void => {
    pairs.push(`${encodeURIComponent(name)}=${encodeURIComponent(value)}`)
  }
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue
    if (typeof value !== 'object') add(name, value)
    else if (Array.isArray(value)) for (const item of value) add(`${name}[]`, item as string)
    else for (const [key, item] of Object.entries(value)) add(`${name}[${key}]`, item as number)
  }
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`
}
