/**
 * The engine in memory: the same resolving, waiting and folding as over a database, without one. What
 * it holds at the end of a call is what the ledger and the inbox would hold when nothing is left to do.
 */
import { isPermanent } from '../core/errors.ts'
import { fingerprint } from '../core/fingerprint.ts'
import type { Environment, InboxEvent } from './event.ts'
import { finding } from './finding-kinds.ts'
import { foldOrder } from './fold.ts'
import type { FoldContext } from './fold-context.ts'
import { openLedger, unopenedOrder, type Opening, type OpeningAnswer } from './opening.ts'
import type { Name, OrderLedger } from './order.ts'
import { emptyOutcome, isFinal, type FindingDraft, type Outcome } from './outcome.ts'
import { namesWaitedFor, orderlessOutcome } from './orderless-outcome.ts'
import type { Registry } from './registry.ts'
import {
  resolveEvent,
  settleWaiting,
  type Claim,
  type NamedOrder,
  type Resolved,
} from './resolve-event.ts'
import type { Workflow } from './workflow.ts'

/** An event and what became of it. */
export interface PlayedEvent {
  readonly event: InboxEvent
  readonly state: 'pending' | 'deferred' | 'processed' | 'ignored' | 'dead'
  readonly deliveries: number
  /** The last decision about it; null only while it is pending. */
  readonly outcome: Outcome | null
  /** What its function threw, for an event that is dead of it. */
  readonly error: unknown
  /** When its wait ends; null when it does not wait. */
  readonly deadline: Date | null
  readonly overdue: boolean
}

/** A discrepancy, and how often it was seen. */
export interface PlayedFinding extends FindingDraft {
  readonly orderId: string | null
  readonly eventId: string | null
  readonly state: 'open' | 'closed'
  readonly timesSeen: number
}

/** What a run needs. */
export interface PlayRunOptions {
  readonly registry: Registry
  readonly environment: Environment
  /** How long a wait lasts where nothing says otherwise, in milliseconds. */
  readonly deferralMs: number
}

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] }
type Held = Mutable<PlayedEvent>

/** One installation in memory. */
export class PlayRun {
  readonly #options: PlayRunOptions
  readonly #events = new Map<string, Held>()
  readonly #orders = new Map<string, OrderLedger>()
  readonly #names = new Map<string, NamedOrder>()
  readonly #payers = new Map<string, string>()
  readonly #findings = new Map<string, Mutable<PlayedFinding>>()
  readonly #decisions: Outcome[] = []
  /** What each waiting event waits for, by key of a name or an order. */
  readonly #waits = new Map<string, Set<Held>>()
  #decisionId = 0n

  constructor(options: PlayRunOptions) {
    this.#options = options
  }

  /** Every event, in order of arrival. */
  get events(): readonly PlayedEvent[] {
    return [...this.#events.values()]
  }

  /** Every order that was opened, by id. */
  get orders(): ReadonlyMap<string, OrderLedger> {
    return this.#orders
  }

  /** Every finding. */
  get findings(): readonly PlayedFinding[] {
    return [...this.#findings.values()]
  }

  /** Every decision that would be recorded, in order. */
  get decisions(): readonly Outcome[] {
    return this.#decisions
  }

  /**
   * Takes events in as one batch and works until nothing is left to do. An event that is known
   * already counts a delivery: a final decision stands, what waits or is dead is tried again.
   */
  deliver(batch: readonly InboxEvent[], now: Date): readonly PlayedEvent[] {
    const records = batch.map((event) => this.#receive(event))
    this.#work(new Set(records.filter((record) => record.state === 'pending')), now)
    return records
  }

  /** Opens an order as the app does in its checkout, and works off what waited for it. */
  open(workflow: Workflow, opening: Opening, now: Date): OpeningAnswer {
    const ledger = this.#orders.get(opening.id) ?? unopenedOrder(opening.id, workflow)
    const { answer, findings } = openLedger(ledger, workflow, opening)
    this.#orders.set(opening.id, ledger)
    for (const draft of findings) this.#find(draft, opening.id, null)
    this.#work(this.#wake([orderKey(opening.id)]), now)
    return answer
  }

  /** Ends the waits whose deadline has passed: ignored where their type says so, else a finding. */
  passDeadlines(now: Date): void {
    for (const record of this.#events.values()) {
      if (record.state !== 'deferred' || record.overdue || record.deadline === null) continue
      if (record.deadline > now) continue
      const { event, outcome } = record
      const waitsFor = outcome?.wait?.description ?? ''
      if (outcome?.wait?.atDeadline === 'ignore') {
        const reason = `nothing claimed it: it waited for ${waitsFor}`
        this.#decide(record, { ...emptyOutcome, decisionId: this.#allocate(), event, kind: 'ignored', reason }, now)
      } else {
        record.overdue = true
        const figures = { event: event.eventId, type: event.eventType, waits_for: waitsFor }
        this.#find(finding('wait_overdue', `event:${event.key}`, figures), outcome?.orderId ?? null, event)
      }
    }
  }

  #receive(event: InboxEvent): Held {
    const key = `${event.sourceId}\n${event.eventId}`
    const known = this.#events.get(key)
    if (known === undefined) {
      const fresh: Held = { event, state: 'pending', deliveries: 1, outcome: null, error: null, deadline: null, overdue: false }
      this.#events.set(key, fresh)
      return fresh
    }
    known.deliveries += 1
    if (known.state === 'deferred' || known.state === 'dead') known.state = 'pending'
    return known
  }

  #work(ready: ReadonlySet<Held>, now: Date): void {
    for (let batch = ready; batch.size > 0; ) {
      const arrived = [...batch].sort((a, b) => (a.event.key < b.event.key ? -1 : 1))
      batch = this.#wake(this.#decideBatch(arrived, now))
    }
  }

  /** Decides a batch, and returns the keys of the names and orders that it changed. */
  #decideBatch(records: readonly Held[], now: Date): string[] {
    const { registry, environment } = this.#options
    const recordOf = new Map(records.map((record) => [record.event, record]))
    const first = records.map(({ event }) => resolveEvent(event, { registry, environment, mayIgnore: true }))
    const { resolved, names } = this.#settle(first)
    const changed: string[] = []
    for (const each of resolved) {
      if (each.kind === 'claim') continue
      const record = recordOf.get(each.event)
      if (record === undefined) continue
      if (each.kind === 'failed') this.#fail(record, each.error, now)
      else this.#decide(record, orderlessOutcome(each, this.#allocate()), now)
    }
    for (const [ledger, claims] of this.#ledgersOf(resolved.filter((each) => each.kind === 'claim'))) {
      const { version } = ledger
      const { outcomes, failures } = foldOrder(ledger, claims, this.#foldContext(names))
      if (ledger.stored) this.#orders.set(ledger.id, ledger)
      if (ledger.version !== version) changed.push(orderKey(ledger.id))
      for (const payment of ledger.payments) this.#payers.set(`${payment.sourceId}\n${payment.id}`, ledger.id)
      for (const { claim, error } of failures) {
        const record = recordOf.get(claim.event)
        if (record !== undefined) this.#fail(record, error, now)
      }
      for (const outcome of outcomes) {
        const record = recordOf.get(outcome.event)
        if (record !== undefined) this.#decide(record, outcome, now)
        changed.push(...this.#learn(outcome))
      }
    }
    return changed
  }

  /** Settles what waits for names that are bound, or that an event of this batch brings. */
  #settle(first: readonly Resolved[]): { readonly resolved: readonly Resolved[]; readonly names: ReadonlyMap<string, NamedOrder> } {
    const names = first.length === 1 ? this.#names : new Map(this.#names)
    let resolved = first
    for (;;) {
      if (first.length > 1) for (const each of resolved) if (each.kind === 'claim') teach(each, names)
      const next = resolved.map((each) =>
        each.kind === 'waiting' ? settleWaiting(each, (source, name) => names.get(nameKey(source, name)) ?? null) : each,
      )
      if (next.every((each, index) => each === resolved[index])) return { resolved, names }
      resolved = next
    }
  }

  /** The orders of a batch with their events; one that nobody may open is folded for each workflow apart. */
  #ledgersOf(claims: readonly Claim[]): Map<OrderLedger, Claim[]> {
    const groups = new Map<OrderLedger, Claim[]>()
    const made = new Map<string, OrderLedger>()
    for (const claim of claims) {
      const { workflow } = claim.candidate
      const opener = claims.find((each) => each.orderId === claim.orderId && each.candidate.workflow.opens === 'event')
      const key = opener === undefined ? `${claim.orderId}\n${workflow.name}` : claim.orderId
      const ledger =
        this.#orders.get(claim.orderId) ?? made.get(key) ?? unopenedOrder(claim.orderId, opener?.candidate.workflow ?? workflow)
      made.set(key, ledger)
      groups.set(ledger, [...(groups.get(ledger) ?? []), claim])
    }
    return groups
  }

  #foldContext(names: ReadonlyMap<string, NamedOrder>): FoldContext {
    return {
      allocate: () => this.#allocate(),
      ownerOf: (source, name) => names.get(nameKey(source, name))?.orderId ?? null,
      payerOf: (source, payment) => this.#payers.get(`${source}\n${payment}`) ?? null,
      derive: (order, name) => [0, 1, 2, 3].map((part) => fingerprint([order, name, part])).join(''),
    }
  }

  #learn(outcome: Outcome): string[] {
    const { orderId, workflow, event } = outcome
    if (orderId === null || workflow === null) return []
    const keys = outcome.learned.map((name) => nameKey(event.sourceId, name)).filter((key) => !this.#names.has(key))
    for (const key of keys) this.#names.set(key, { orderId, workflow })
    return keys
  }

  #allocate(): bigint {
    this.#decisionId += 1n
    return this.#decisionId
  }

  /** A function without a database has no second chance: what would be tried again ends here. */
  #fail(record: Held, error: unknown, now: Date): void {
    const { event } = record
    const message = error instanceof Error ? error.message : String(error)
    const reason = isPermanent(error) ? message : `it failed each time: ${message}`
    const figures = { event: event.eventId, type: event.eventType, reason }
    const findings = [finding('dead_event', `event:${event.key}`, figures)]
    this.#decide(record, { ...emptyOutcome, decisionId: this.#allocate(), event, kind: 'dead', reason, findings }, now)
    record.error = error
  }

  #decide(record: Held, outcome: Outcome, now: Date): void {
    const waitedFor = record.outcome?.wait?.description
    record.outcome = outcome
    record.state = isFinal(outcome.kind) ? 'processed' : (outcome.kind as 'deferred' | 'ignored' | 'dead')
    if (outcome.wait !== null) {
      // waiting again must not prolong the wait
      record.deadline ??= new Date(now.getTime() + (outcome.wait.forMs ?? this.#options.deferralMs))
      for (const key of keysOf(outcome)) this.#waits.set(key, (this.#waits.get(key) ?? new Set()).add(record))
    } else if (record.state !== 'ignored') this.#end(record)
    if (outcome.kind !== 'deferred' || waitedFor !== outcome.wait?.description) this.#decisions.push(outcome)
    for (const draft of outcome.findings) this.#find(draft, outcome.orderId, outcome.event)
  }

  /** A wait that ended by itself closes its finding. */
  #end(record: Held): void {
    if (record.overdue) {
      const found = this.#findings.get(`wait_overdue\nevent:${record.event.key}`)
      if (found !== undefined) found.state = 'closed'
    }
    record.deadline = null
    record.overdue = false
  }

  #find(draft: FindingDraft, orderId: string | null, event: InboxEvent | null): void {
    const key = `${draft.kind}\n${draft.about}`
    const timesSeen = (this.#findings.get(key)?.timesSeen ?? 0) + 1
    this.#findings.set(key, { ...draft, orderId, eventId: event?.eventId ?? null, state: 'open', timesSeen })
  }

  /** What waits for any of these keys, ready to be decided again. */
  #wake(keys: readonly string[]): ReadonlySet<Held> {
    const woken = new Set<Held>()
    for (const key of keys) {
      for (const record of this.#waits.get(key) ?? []) {
        // what was ignored at its deadline is claimed by a name that comes later
        if (record.state !== 'deferred' && record.state !== 'ignored') continue
        record.state = 'pending'
        woken.add(record)
      }
      this.#waits.delete(key)
    }
    return woken
  }
}

function teach(claim: Claim, names: Map<string, NamedOrder>): void {
  if (!claim.event.accountAllowed) return
  for (const name of claim.learned) {
    const key = nameKey(claim.event.sourceId, name)
    if (!names.has(key)) names.set(key, { orderId: claim.orderId, workflow: claim.candidate.workflow.name })
  }
}

function keysOf(outcome: Outcome): string[] {
  const names = namesWaitedFor(outcome).map((name) => nameKey(outcome.event.sourceId, name))
  const orderId = outcome.wait?.orderId ?? null
  return orderId === null ? names : [...names, orderKey(orderId)]
}

function nameKey(sourceId: number, name: Name): string {
  return `${sourceId}\n${name.kind}\n${name.value}`
}

function orderKey(orderId: string): string {
  return `order\n${orderId}`
}
