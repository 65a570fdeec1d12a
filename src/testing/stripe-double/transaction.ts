/**
 * What one request does to the state: reads see its own writes, nothing is visible outside before the
 * end, and an event is the snapshot of an object at the moment it was made.
 */
import type Stripe from 'stripe'
import { missing } from './api-error.ts'
import { objectId, type IdKind } from './object-ids.ts'
import { apiVersion, type ObjectKind, type ObjectKinds, type StoredObject } from './object-kinds.ts'

/** The API request that causes a change; both null for what the provider does by itself. */
export interface Cause {
  requestId: string | null
  idempotencyKey: string | null
}

/** An answer kept under an idempotency key. */
export interface StoredAnswer {
  key: string
  /** Method, path and parameters of the first request, as a digest. */
  fingerprint: string
  path: string
  status: number
  body: string
  requestId: string
  storedMs: number
}

/** What a transaction sees of the state. */
export interface TransactionBase {
  account: string
  isConnected: boolean
  cause: Cause
  nowMs: number
  livemode: boolean
  seed: string
  counter: number
  findAny(id: string): StoredObject | undefined
  list<K extends ObjectKind>(kind: K): ObjectKinds[K][]
}

/** One unit of work on the state of one account. */
export class Transaction {
  readonly account: string
  /** Now, in milliseconds; the same throughout the transaction. */
  readonly nowMs: number
  /** Now, in whole seconds, as Stripe stamps objects. */
  readonly now: number
  readonly livemode: boolean
  readonly #base: TransactionBase
  /** Objects in the order of their first write, then events as they were made. */
  readonly #puts = new Map<string, StoredObject>()
  #counter: number
  #answer: StoredAnswer | undefined

  constructor(base: TransactionBase) {
    this.#base = base
    this.account = base.account
    this.nowMs = base.nowMs
    this.now = Math.floor(base.nowMs / 1000)
    this.livemode = base.livemode
    this.#counter = base.counter
  }

  /** A new id of the kind. */
  id(kind: IdKind): string {
    return objectId(this.#base.seed, kind, ++this.#counter)
  }

  /** The object as this transaction sees it. */
  find<K extends ObjectKind>(kind: K, id: string): ObjectKinds[K] | undefined {
    const object = this.findAny(id)
    return object?.object === kind ? (object as ObjectKinds[K]) : undefined
  }

  /** The object as this transaction sees it, whatever its kind is. */
  findAny(id: string): StoredObject | undefined {
    return this.#puts.get(id) ?? this.#base.findAny(id)
  }

  /**
   * The object, which must exist.
   *
   * @throws StripeApiError `resource_missing`, naming `param` as the parameter that led to it.
   */
  get<K extends ObjectKind>(kind: K, id: string, param = 'id'): ObjectKinds[K] {
    const object = this.find(kind, id)
    if (!object) throw missing(kind, id, param)
    return object
  }

  /** All objects of a kind, oldest first, as this transaction sees them. */
  list<K extends ObjectKind>(kind: K): ObjectKinds[K][] {
    const before = this.#base
      .list(kind)
      .map((object) => (this.#puts.get(object.id) ?? object) as ObjectKinds[K])
    const known = new Set(before.map((object) => object.id))
    const added = [...this.#puts.values()].filter(
      (object) => object.object === kind && !known.has(object.id),
    )
    return [...before, ...(added as ObjectKinds[K][])]
  }

  /** Adds an object. */
  create<T extends StoredObject>(object: T): T {
    this.#puts.set(object.id, deepFreeze(object))
    return object
  }

  /** Writes fields of an object; returns it as it is then. */
  change<T extends StoredObject>(object: T, fields: Partial<T>): T {
    const current = (this.#puts.get(object.id) ?? object) as T
    const next = deepFreeze({ ...current, ...fields })
    this.#puts.set(object.id, next)
    return next
  }

  /**
   * Makes the event of a change. Types that end in `updated` carry what the fields were before this
   * transaction, as Stripe's do.
   */
  emit(type: string, object: { id?: string; object: string }): Stripe.Event {
    const before = object.id === undefined ? undefined : this.#base.findAny(object.id)
    const previous = type.endsWith('updated') && before ? difference(before, object) : undefined
    const event = {
      id: this.id('event'),
      object: 'event',
      ...(this.#base.isConnected && { account: this.account }),
      api_version: apiVersion,
      created: this.now,
      data: { object, ...(previous && { previous_attributes: previous }) },
      livemode: this.livemode,
      pending_webhooks: 1,
      request: { id: this.#base.cause.requestId, idempotency_key: this.#base.cause.idempotencyKey },
      type,
    } as unknown as Stripe.Event
    return this.create(event)
  }

  /** Stores the answer of the request in the same step as its changes. */
  storeAnswer(answer: StoredAnswer): void {
    this.#answer = answer
  }

  /** What has to be written. */
  outcome(): { put: StoredObject[]; answer: StoredAnswer | undefined; counter: number } {
    return { put: [...this.#puts.values()], answer: this.#answer, counter: this.#counter }
  }
}

/** Freezes an object and everything in it, so that snapshots can share it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const part of Object.values(value)) deepFreeze(part)
  return value
}

function difference(before: object, after: object): Record<string, unknown> {
  const now = after as Record<string, unknown>
  const changed: Record<string, unknown> = {}
  for (const [field, value] of Object.entries(before)) {
    if (value !== now[field] && JSON.stringify(value) !== JSON.stringify(now[field]))
      changed[field] = value
  }
  return changed
}
