/**
 * Plays one history in memory in any order: its events, and the app's opening of its order, are steps
 * that can come one by one, together, or again.
 */
import { factsOfBody, type BodyFacts } from './body-event.ts'
import { stableText } from './difference.ts'
import type { Environment, InboxEvent } from './event.ts'
import { HistoryObjects, type LookTime } from './history-provider.ts'
import type { OutboxPort } from './outbox-port.ts'
import { PlayRun } from './play.ts'
import type { PlayedOperation } from './play-operations.ts'
import { playOutbox } from './play-outbox.ts'
import { createRegistry, type Registry } from './registry.ts'
import type { History, Workflow } from './workflow.ts'

/** What a run ends with, as far as the order of arrival must not matter. */
export interface RunEnd {
  readonly orders: Readonly<Record<string, OrderEnd>>
  /** Events that ended dead, with why. */
  readonly dead: Readonly<Record<string, string>>
}

/** The end of one order. */
export interface OrderEnd {
  readonly workflow: string
  readonly state: string
  /** By type and reference. */
  readonly effects: Readonly<Record<string, unknown>>
  /** By subject and entitlement, active ones only. */
  readonly entitlements: Readonly<Record<string, unknown>>
  /** By destination, name and effect; absent where nothing is sent. */
  readonly operations?: Readonly<Record<string, unknown>>
}

const start = Date.parse('2026-01-01T00:00:00Z')
const dayMs = 86_400_000

/** A history, ready to be played as often as it takes. */
export class HistoryRun {
  readonly #workflows: readonly Workflow[]
  readonly #registry: Registry
  readonly #history: History
  readonly #facts: readonly BodyFacts[]
  readonly #environment: Environment
  readonly #outbox: OutboxPort
  readonly #objects: HistoryObjects

  constructor(workflows: readonly Workflow[], history: History, outbox: OutboxPort = playOutbox()) {
    this.#workflows = workflows
    this.#registry = createRegistry(workflows, [])
    this.#history = history
    this.#outbox = outbox
    this.#facts = history.events.map((body) => factsOfBody(body))
    // histories come from factories and fixtures: what they say of their environment is theirs
    this.#environment = this.#facts.find((each) => each.environment !== null)?.environment ?? 'test'
    this.#objects = new HistoryObjects(workflows, history, this.#facts, (step) =>
      this.#arrive(step, BigInt(step + 1), new Date(start)),
    )
  }

  /** The times at which looks can be made; more than one only where something is looked at. */
  get lookTimes(): readonly LookTime[] {
    return this.#objects.looks || this.#history.customers !== undefined
      ? ['end', 'latest']
      : ['end']
  }

  /** How many events there are; the steps are numbered from 0. */
  get events(): number {
    return this.#facts.length
  }

  /** The step (-1, before all events) at which the app opens the order; null when it opens none. */
  get opening(): number | null {
    return this.#history.open === undefined ? null : -1
  }

  /** A step for people: `refund.created evt_1`. */
  label(step: number): string {
    const facts = this.#facts[step]
    return facts === undefined
      ? `the app opens order ${this.#history.open?.id}`
      : `${facts.eventType} ${facts.eventId}`
  }

  /**
   * Plays the steps: each batch at once, one batch after the other. Looks find what is at the end (and
   * customers are linked before all events), or what the latest event shows (and they are linked after all).
   */
  play(batches: readonly (readonly number[])[], looks: LookTime = 'end'): PlayRun {
    const come = new Set<number>()
    const run = new PlayRun({
      registry: this.#registry,
      environment: this.#environment,
      deferralMs: dayMs,
      outbox: this.#outbox,
      provider: this.#objects.provider(looks, come),
    })
    let arrived = 0
    if (looks === 'end') this.#link(run, new Date(start))
    batches.forEach((batch, index) => {
      const now = new Date(start + index * 1000)
      const events: InboxEvent[] = []
      for (const step of batch) {
        come.add(step)
        if (this.#facts[step] === undefined) this.#open(run, now)
        else events.push(this.#arrive(step, BigInt(++arrived), now))
      }
      if (events.length > 0) run.deliver(events, now)
    })
    const end = new Date(start + batches.length * 1000)
    if (looks === 'latest') this.#link(run, end)
    this.#answer(run, end)
    return run
  }

  #link(run: PlayRun, now: Date): void {
    const sources = new Set(this.#facts.map((facts) => this.#sourceIdOf(facts)))
    for (const [id, subject] of Object.entries(this.#history.customers ?? {}))
      for (const sourceId of sources) run.link({ sourceId, id }, subject, now)
  }

  /** At the end, and not as they come: when an operation is sent must not be a question of the order of events. */
  #answer(run: PlayRun, now: Date): void {
    const { receipts } = this.#history
    if (receipts === undefined) return
    const next = (): PlayedOperation | undefined =>
      run.operations.find(
        ({ draft, state, holds }) =>
          state === 'pending' && holds && Object.hasOwn(receipts, draft.destination),
      )
    // what is answered may let an event send more
    for (let each = next(); each !== undefined; each = next())
      run.answer(each.draft.operationId, receipts[each.draft.destination] ?? {}, now)
  }

  #open(run: PlayRun, now: Date): void {
    const { open } = this.#history
    const workflow = this.#workflows.find((each) => each.opens === 'app') ?? this.#workflows[0]
    if (open !== undefined && workflow !== undefined) run.open(workflow, open, now)
  }

  #arrive(step: number, key: bigint, receivedAt: Date): InboxEvent {
    const facts = this.#facts[step]
    if (facts === undefined) throw new RangeError(`the history has no event ${step}`)
    const name = this.#sourceOf(facts.eventType)
    const account = facts.account ?? name
    const { eventId, eventType, occurredAt, content } = facts
    return {
      key,
      sourceId: this.#sourceIdOf(facts),
      source: {
        name,
        provider: name,
        account,
        environment: facts.environment ?? this.#environment,
      },
      accountAllowed: true,
      eventId,
      eventType,
      receivedAt,
      occurredAt,
      synthetic: false,
      content,
    }
  }

  #sourceIdOf({ eventType, account }: BodyFacts): number {
    const name = this.#sourceOf(eventType)
    return fingerprintOf(`${name}\n${account ?? name}`)
  }

  /** The first source of a workflow that handles the type: histories do not name their sources. */
  #sourceOf(eventType: string): string {
    const handling = this.#workflows.find((each) => each.handlers.has(eventType))
    return (handling ?? this.#workflows[0])?.sources[0] ?? 'unknown'
  }
}

/** A small number for a namespace: the same text gives the same one. */
function fingerprintOf(text: string): number {
  let hash = 0
  for (let index = 0; index < text.length; index++) {
    hash = (Math.imul(hash, 31) + text.charCodeAt(index)) | 0
  }
  return hash
}

/** What a run ended with. */
export function endOf(run: PlayRun): RunEnd {
  const orders: [string, OrderEnd][] = []
  for (const [id, ledger] of run.orders) {
    orders.push([
      id,
      {
        workflow: ledger.workflow,
        state: ledger.state,
        effects: Object.fromEntries(
          ledger.effects.map(({ type, reference, ...rest }) => [
            reference === '' ? type : `${type} ${reference}`,
            rest,
          ]),
        ),
        entitlements: Object.fromEntries(
          ledger.entitlements
            .filter((row) => row.active)
            .map((row) => [
              `${row.subject} ${row.entitlement}`,
              { quantity: row.quantity, validUntil: row.validUntil },
            ]),
        ),
        ...operationsEnd(run, id),
      },
    ])
  }
  const dead = run.events.flatMap(({ event, state, outcome }) =>
    state === 'dead'
      ? [[`${event.eventType} ${event.eventId}`, outcome?.reason ?? ''] as const]
      : [],
  )
  return { orders: Object.fromEntries(orders), dead: Object.fromEntries(dead) }
}

/**
 * Operations follow from effects: the order of events may not change which there are. What their bodies say
 * may depend on what was known when the effect came (an address that a later event corrects), as P10 allows.
 */
function operationsEnd(run: PlayRun, orderId: string): Pick<OrderEnd, 'operations'> {
  const own = [...run.drafts].filter((draft) => draft.orderId === orderId)
  if (own.length === 0) return {}
  const operations = own.map(
    ({ destination, name, effectType, effectReference, whileStates }) =>
      [
        `${destination} ${name} of ${effectReference === '' ? effectType : `${effectType} ${effectReference}`}`,
        { while: whileStates },
      ] as const,
  )
  return { operations: Object.fromEntries(operations) }
}

/** The same for the same end, and cheap: what every order of a history is held to. */
export function endText(run: PlayRun): string {
  const lines: string[] = []
  // no key contains NUL: two ends never run into the same text
  const line = (...parts: readonly unknown[]): void => void lines.push(parts.join('\u0000'))
  for (const [id, ledger] of run.orders) {
    line(id, ledger.workflow, ledger.state)
    for (const { type, reference, amount, currency, payment, data } of ledger.effects) {
      const kept = Object.keys(data).length === 0 ? '' : stableText(data)
      line(id, 'effect', type, reference, amount, currency, payment, kept)
    }
    for (const { subject, entitlement, quantity, validUntil, active } of ledger.entitlements) {
      if (active) line(id, 'entitlement', subject, entitlement, quantity, validUntil?.getTime())
    }
  }
  for (const draft of run.drafts) {
    const { orderId, destination, name, effectType, effectReference, whileStates } = draft
    const kept = stableText(whileStates)
    line(orderId, 'operation', destination, name, effectType, effectReference, kept)
  }
  for (const { event, state, outcome } of run.events) {
    if (state === 'dead') line('dead', event.eventId, outcome?.reason)
  }
  return lines.sort().join('\n')
}
