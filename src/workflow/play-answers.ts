/**
 * The provider's answers in memory: an event that must be decided from one asks first, all that ask at the
 * same moment share one request about an object, and every request has a number of its own. `fetch` and
 * `gather` are never called: what they would find is said by whoever runs it.
 */
import { isPermanent } from '../core/errors.ts'
import { toJson } from '../core/json.ts'
import { freezeJson } from './any-event.ts'
import type { InboxEvent, SourceIdentity } from './event.ts'
import { gatheredEvent, type Answered, type LinkedCustomer } from './gathering.ts'
import { lookedObject } from './looked-object.ts'
import type { Name, OrderLedger } from './order.ts'
import { isFinal, type Outcome } from './outcome.ts'
import type { Claim } from './resolve-event.ts'

/** What the provider would answer. Both may throw: a PermanentError ends the event, others the run. */
export interface PlayProvider {
  /** Whether what it answers is plain JSON already, and deeply frozen. */
  readonly isPlain: boolean
  /** The object as it is now; null: there is none (any more). */
  present(object: Name, source: SourceIdentity): unknown
  /** What `gather` would find out for the event. */
  gathered(event: InboxEvent): unknown
}

/** A customer of a provider's account. */
export interface PlayCustomer {
  readonly sourceId: number
  readonly id: string
}

/** What is looked at for an order, and what came of it. */
interface Look {
  readonly orderId: string
  /** Kind `event` for a gathering. */
  readonly object: Name
  /** The number of the last request. */
  sent: bigint
  /** The newest number that a decision was made from. */
  applied: bigint
  answer: (Answered & { readonly value: unknown; readonly orderVersion: bigint | null }) | null
}

/** What the events of a run in memory are given beside their orders. */
export class PlayAnswers {
  readonly #provider: PlayProvider
  readonly #looks = new Map<string, Look>()
  /** What events were answered that have asked and are not decided yet. */
  readonly #asked = new Map<InboxEvent, Look>()
  readonly #asking = new Map<InboxEvent, Look>()
  readonly #links = new Map<string, string>()
  #lastEvidence = 0n

  constructor(provider: PlayProvider) {
    this.#provider = provider
  }

  /**
   * The claim with what it was answered, if it has asked, and with the link of its customer. Throws what the
   * workflow's `object` and `customer` throw.
   */
  given(claim: Claim): Claim {
    const { handler } = claim.candidate
    const { event, body } = claim
    if (
      handler.mirror === undefined &&
      handler.gather === undefined &&
      handler.customer === undefined
    )
      return claim
    const inputs = this.#answered(claim)
    const waits = handler.mirror !== undefined && inputs?.mirror === undefined
    const id = waits ? null : handler.customer?.({ event: body, current: inputs?.mirror?.current })
    if (typeof id !== 'string' || id === '') return { ...claim, inputs }
    const subject = this.#links.get(customerKey({ sourceId: event.sourceId, id })) ?? null
    const customer: LinkedCustomer = Object.freeze({ id, subject })
    return { ...claim, inputs: { ...inputs, customer } }
  }

  /** Lets an event wait for the next request about what it looks at. */
  ask(claim: Claim): void {
    this.#asking.set(claim.event, this.#lookOf(claim))
  }

  /**
   * Makes one request about each object that is asked for, and returns the events that waited for them;
   * `failed` is told those that end because of one.
   */
  request(
    orders: ReadonlyMap<string, OrderLedger>,
    now: Date,
    failed: (event: InboxEvent, error: unknown) => void,
  ): readonly InboxEvent[] {
    const asking = [...this.#asking]
    this.#asking.clear()
    const errors = new Map<Look, unknown>()
    const requested = new Set<Look>()
    for (const [event, look] of asking) {
      if (!requested.has(look)) {
        requested.add(look)
        try {
          look.answer = this.#request(look, event, orders.get(look.orderId), now)
        } catch (error) {
          if (!isPermanent(error)) throw error
          errors.set(look, error)
        }
      }
      if (errors.has(look)) failed(event, errors.get(look))
      else this.#asked.set(event, look)
    }
    return asking.flatMap(([event, look]) => (errors.has(look) ? [] : [event]))
  }

  /** Notes what was decided: whoever is woken later looks again. */
  settle({ event, kind, evidence }: Outcome): void {
    const look = this.#asked.get(event)
    if (look === undefined) return
    this.#asked.delete(event)
    if (isFinal(kind) && evidence['fetch'] !== undefined) look.applied = look.answer?.number ?? 0n
  }

  /** Links a customer with a subject; what it was linked with before, or null. */
  link(customer: PlayCustomer, subject: string): string | null {
    const before = this.#links.get(customerKey(customer)) ?? null
    this.#links.set(customerKey(customer), subject)
    return before
  }

  /** The subject that a customer is linked with; null: none. */
  linked(customer: PlayCustomer): string | null {
    return this.#links.get(customerKey(customer)) ?? null
  }

  #lookOf({ event, orderId, candidate, body }: Claim): Look {
    const { mirror } = candidate.handler
    const object =
      mirror === undefined
        ? { kind: gatheredEvent, value: event.key.toString() }
        : lookedObject(mirror.object({ event: body }))
    const key = `${orderId}\n${event.sourceId}\n${object.kind}\n${object.value}`
    const look = this.#looks.get(key) ?? { orderId, object, sent: 0n, applied: 0n, answer: null }
    this.#looks.set(key, look)
    return look
  }

  #answered(claim: Claim): Claim['inputs'] {
    const { event, candidate, inputs } = claim
    const { mirror, gather } = candidate.handler
    if (mirror === undefined && gather === undefined) return inputs
    // an object that cannot be looked at ends the event before anything else is asked of it
    const look = this.#lookOf(claim)
    if (this.#asked.get(event) !== look || look.answer === null) return inputs
    const { value, orderVersion, ...answered } = look.answer
    if (mirror === undefined)
      return { ...inputs, gather: { ...answered, evidence: value, orderVersion } }
    const { object, applied } = look
    return { ...inputs, mirror: { ...answered, object, current: value ?? null, applied } }
  }

  #request(
    look: Look,
    event: InboxEvent,
    order: OrderLedger | undefined,
    now: Date,
  ): NonNullable<Look['answer']> {
    look.sent += 1n
    const { object } = look
    const found =
      object.kind === gatheredEvent
        ? this.#provider.gathered(event)
        : this.#provider.present(object, event.source)
    this.#lastEvidence += 1n
    return {
      evidenceId: this.#lastEvidence,
      number: look.sent,
      fetchedAt: now,
      // the form of a hash: nothing in memory is proven by it
      sha256: this.#lastEvidence.toString(16).padStart(64, '0'),
      value: this.#provider.isPlain ? found : readBack(found),
      orderVersion: order?.stored === true ? order.version : null,
    }
  }
}

/** As it is read back from a database: plain JSON, and nobody else's to change. */
function readBack(found: unknown): unknown {
  return found === undefined ? undefined : freezeJson(JSON.parse(toJson(found)) as unknown)
}

/** What waits for a customer to be linked waits for this. */
export function customerKey({ sourceId, id }: PlayCustomer): string {
  return `customer\n${sourceId}\n${id}`
}
