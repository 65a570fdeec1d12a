/**
 * A provider of subscriptions in memory: objects that change, a clock of ticks, and an API whose answers take
 * their time, fail, or come too late. What an answer shows is what the object was at one moment between asking
 * and answering. It writes down every call, and knows nothing of whoever asks.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../src/testing/stripe-double/random.ts'
import type { ProviderApi } from '../../src/workflow/provider-api.ts'
import type { SubscriptionObject } from './subscription-living.ts'

/** One request as the provider saw it. */
export interface ProviderCall {
  /** The account that the client was bound to. */
  readonly account: string
  readonly id: string
  /** By `performance.now()`. */
  readonly atMs: number
  readonly answered: 'object' | 'gone' | 'limited' | 'broken'
}

/** How the API behaves; each is a chance from 0 to 1. */
export interface Latency {
  /** Most milliseconds until the object is read, and from then until the answer is there. */
  readonly beforeMs: number
  readonly afterMs: number
  /** That a request is answered 429, and 500. */
  readonly limited: number
  readonly broken: number
}

/** What `fetch` is given. */
export interface SubscriptionApi {
  /** The subscription as it is now. Rejects where there is none. */
  subscription(id: string): Promise<SubscriptionObject>
  /** The same under the names of Stripe's SDK. */
  readonly subscriptions: { retrieve(id: string): Promise<SubscriptionObject> }
  /** It has no invoices: the newest period is the unpaid one. */
  readonly invoices: { list(): Promise<{ readonly data: readonly []; readonly has_more: false }> }
}

class ApiError extends Error {
  readonly status: number

  constructor(status: number) {
    super(`answered ${status}`)
    this.status = status
  }
}

/** The provider. */
export class SubscriptionProvider {
  readonly calls: ProviderCall[] = []
  readonly #random: Random
  readonly #latency: Latency
  readonly #objects = new Map<string, SubscriptionObject>()
  /** How many requests are under way of each object, and the most there ever were. */
  readonly #underWay = new Map<string, number>()
  /** The most requests that were under way of one object at one time. */
  mostAtOnce = 0
  /** Answers nothing but 503 while set. */
  isDown = false

  constructor(random: Random, latency: Latency) {
    this.#random = random
    this.#latency = latency
  }

  /** Makes this the present of an object; null: it is gone. */
  put(account: string, id: string, object: SubscriptionObject | null): void {
    if (object === null) this.#objects.delete(`${account} ${id}`)
    else this.#objects.set(`${account} ${id}`, object)
  }

  /** The present, as nobody has to wait for it. */
  present(account: string, id: string): SubscriptionObject | null {
    return this.#objects.get(`${account} ${id}`) ?? null
  }

  /** Everything of an account, the newest first. */
  list(account: string): SubscriptionObject[] {
    return [...this.#objects]
      .filter(([key]) => key.startsWith(`${account} `))
      .map(([, object]) => object)
      .sort((a, b) => b.created - a.created || (a.id < b.id ? 1 : -1))
  }

  /** As a source gives it to the engine. */
  readonly api: ProviderApi = {
    client: (account, signal): SubscriptionApi => {
      const subscription = (id: string): Promise<SubscriptionObject> =>
        this.#retrieve(account, id, signal)
      return {
        subscription,
        subscriptions: { retrieve: subscription },
        invoices: { list: () => Promise.resolve({ data: [], has_more: false }) },
      }
    },
    failureOf: (error) => {
      const status = error instanceof ApiError ? error.status : 0
      const text = `the provider answered ${status}`
      if (status === 404) return { kind: 'gone', text }
      if (status === 0) return { kind: 'unknown', text }
      const isRateLimit = status === 429
      return { kind: 'later', retryAfterMs: isRateLimit ? 5 : null, isRateLimit, text }
    },
  }

  async #retrieve(account: string, id: string, signal: AbortSignal): Promise<SubscriptionObject> {
    const key = `${account} ${id}`
    const together = (this.#underWay.get(key) ?? 0) + 1
    this.#underWay.set(key, together)
    this.mostAtOnce = Math.max(this.mostAtOnce, together)
    const atMs = performance.now()
    try {
      await this.#pause(this.#latency.beforeMs, signal)
      const drawn = this.#random.next()
      const { limited, broken } = this.#latency
      if (this.isDown || drawn < broken) throw this.#fail(account, id, atMs, 'broken')
      if (drawn < broken + limited) throw this.#fail(account, id, atMs, 'limited')
      const object = this.#objects.get(key)
      await this.#pause(this.#latency.afterMs, signal)
      if (object === undefined) throw this.#fail(account, id, atMs, 'gone')
      this.calls.push({ account, id, atMs, answered: 'object' })
      return object
    } finally {
      this.#underWay.set(key, (this.#underWay.get(key) ?? 1) - 1)
    }
  }

  #fail(
    account: string,
    id: string,
    atMs: number,
    answered: Exclude<ProviderCall['answered'], 'object'>,
  ): ApiError {
    this.calls.push({ account, id, atMs, answered })
    return new ApiError({ gone: 404, limited: 429, broken: 503 }[answered])
  }

  async #pause(mostMs: number, signal: AbortSignal): Promise<void> {
    const ms = Math.floor(this.#random.next() * mostMs)
    if (ms > 0) await sleep(ms, undefined, { signal })
  }
}
