/**
 * The engine in memory: the same resolving, waiting and folding as over a database, without one. What
 * it holds at the end of a call is what ledger and inbox would hold once nothing is left to do.
 */
import { isPermanent } from '../core/errors.ts'
import { fingerprint } from '../core/fingerprint.ts'
import { linkedOutcome } from './caused-by.ts'
import type { Environment, InboxEvent } from './event.ts'
import { finding } from './finding-kinds.ts'
import { foldOrder } from './fold.ts'
import type { FoldContext } from './fold-context.ts'
import { openLedger, unopenedOrder, type Opening, type OpeningAnswer } from './opening.ts'
import type { OrderLedger } from './order.ts'
import type { OperationDraft, OutboxPort } from './outbox-port.ts'
import { deadOutcome, orderlessOutcome } from './orderless-outcome.ts'
import { emptyOutcome, type FindingDraft, type Outcome } from './outcome.ts'
import { customerKey, PlayAnswers, type PlayCustomer, type PlayProvider } from './play-answers.ts'
import { PlayInbox, type HeldEvent, type PlayedEvent } from './play-inbox.ts'
import { nameKey, PlayNames, type BoundNames } from './play-names.ts'
import { PlayOperations, type PlayedOperation } from './play-operations.ts'
import type { Registry } from './registry.ts'
import { resolveEvent, type Claim } from './resolve-event.ts'
import type { Workflow } from './workflow.ts'

/** A discrepancy, and how often it was seen. */
export interface PlayedFinding extends FindingDraft {
  readonly orderId: string | null
  readonly eventId: string | null
  /** Closed when the wait that made it ended by itself, or a later look says that it is over. */
  readonly state: 'open' | 'closed'
  readonly timesSeen: number
}

/** What a run needs. */
export interface PlayRunOptions {
  readonly registry: Registry
  readonly environment: Environment
  /** How long a wait lasts where nothing says otherwise, in milliseconds. */
  readonly deferralMs: number
  readonly outbox: OutboxPort
  /** What mirrors and `gather` find out. */
  readonly provider: PlayProvider
}

/** One installation in memory. */
export class PlayRun {
  readonly #options: PlayRunOptions
  readonly #inbox = new PlayInbox()
  readonly #orders = new Map<string, OrderLedger>()
  readonly #names = new PlayNames()
  readonly #answers: PlayAnswers
  readonly #payers = new Map<string, string>()
  readonly #findings = new Map<string, PlayedFinding>()
  readonly #decisions: Outcome[] = []
  readonly #operations = new PlayOperations()
  #lastDecision = 0n

  constructor(options: PlayRunOptions) {
    this.#options = options
    this.#answers = new PlayAnswers(options.provider)
  }

  /** Every event, in order of arrival. */
  get events(): readonly PlayedEvent[] {
    return this.#inbox.events
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

  /** Every operation that effects asked for, in order. */
  get operations(): readonly PlayedOperation[] {
    return this.#operations.all(this.#orders)
  }

  /** What the effects asked for, as it was recorded. */
  get drafts(): Iterable<OperationDraft> {
    return this.#operations.drafts()
  }

  /** Ends an operation as sent, once, and works off what waited for it. */
  answer(operationId: string, receipt: Readonly<Record<string, unknown>>, now: Date): void {
    const order = this.#operations.answer(operationId, receipt, this.#orders)
    if (order !== null) this.#work(new Set(this.#inbox.wake([orderKey(order.id)])), now)
  }

  /** Links a customer with a subject, and works off what waited for it; answers what it was linked with. */
  link(customer: PlayCustomer, subject: string, now: Date): string | null {
    const before = this.#answers.link(customer, subject)
    this.#work(new Set(this.#inbox.wake([customerKey(customer)])), now)
    return before
  }

  /** The subject that a customer is linked with; null: none. */
  linked(customer: PlayCustomer): string | null {
    return this.#answers.linked(customer)
  }

  /** Takes events in as one batch, and works until nothing is left to do. */
  deliver(batch: readonly InboxEvent[], now: Date): readonly PlayedEvent[] {
    const held = batch.map((event) => this.#inbox.receive(event))
    this.#work(new Set(held.filter((each) => each.state === 'pending')), now)
    return held
  }

  /** Opens an order as the app does in its checkout, and works off what waited for it. */
  open(workflow: Workflow, opening: Opening, now: Date): OpeningAnswer {
    const ledger = this.#orders.get(opening.id) ?? unopenedOrder(opening.id, workflow)
    const { answer, findings } = openLedger(ledger, workflow, opening)
    this.#orders.set(opening.id, ledger)
    for (const draft of findings) this.#find(draft, opening.id, null)
    this.#work(new Set(this.#inbox.wake([orderKey(opening.id)])), now)
    return answer
  }

  /** Ends the waits whose deadline has passed: ignored where their type says so, else a finding. */
  passDeadlines(now: Date): void {
    for (const held of this.#inbox.events) {
      if (held.state !== 'deferred' || held.overdue) continue
      if (held.deadline === null || held.deadline > now) continue
      const { event, outcome } = held
      const waitsFor = outcome?.wait?.description ?? ''
      if (outcome?.wait?.atDeadline === 'ignore') {
        const reason = `nothing claimed it: it waited for ${waitsFor}`
        const decisionId = this.#allocate()
        this.#settle(held, { ...emptyOutcome, decisionId, event, kind: 'ignored', reason }, now)
      } else {
        held.overdue = true
        const figures = { event: event.eventId, type: event.eventType, waits_for: waitsFor }
        const draft = finding('wait_overdue', `event:${event.key}`, figures)
        this.#find(draft, outcome?.orderId ?? null, event)
      }
    }
  }

  #work(ready: ReadonlySet<HeldEvent>, now: Date): void {
    for (let batch = ready; batch.size > 0;) {
      const arrived = [...batch].sort((a, b) => (a.event.key < b.event.key ? -1 : 1))
      batch = this.#decideBatch(arrived, now)
    }
  }

  /**
   * Decides a batch, and returns what waited for the names and orders that it changed, and what the provider
   * has answered meanwhile.
   */
  #decideBatch(batch: readonly HeldEvent[], now: Date): ReadonlySet<HeldEvent> {
    const { registry, environment } = this.#options
    const heldOf = new Map(batch.map((held) => [held.event, held]))
    const settle = (outcome: Outcome): void => {
      const held = heldOf.get(outcome.event)
      if (held !== undefined) this.#settle(held, outcome, now)
    }
    const fail = (event: InboxEvent, error: unknown): void => {
      settle(deadOutcome(event, this.#allocate(), failureText(error)))
      const held = heldOf.get(event)
      if (held !== undefined) held.error = error
    }
    const context = { registry, environment, mayIgnore: true }
    const { resolved, names } = this.#names.settle(
      batch.map(({ event }) => resolveEvent(event, context)),
    )
    const woken = new Set<HeldEvent>()
    const wake = (keys: readonly string[]): void =>
      this.#inbox.wake(keys).forEach((held) => woken.add(held))
    const learned: string[] = []
    const claims: Claim[] = []
    for (const each of resolved) {
      if (each.kind === 'claim') this.#give(each, claims, fail)
      else if (each.kind === 'failed') fail(each.event, each.error)
      else settle(orderlessOutcome(each, this.#allocate()))
    }
    for (const [ledger, own] of this.#ledgersOf(claims)) {
      const { version } = ledger
      const { outcomes, failures, asks } = foldOrder(ledger, own, this.#foldContext(names))
      if (ledger.stored) this.#orders.set(ledger.id, ledger)
      // before its own outcomes: what the fold deferred has seen the change already
      if (ledger.version !== version) wake([orderKey(ledger.id)])
      for (const each of ledger.payments)
        this.#payers.set(`${each.sourceId}\n${each.id}`, ledger.id)
      for (const { claim, error } of failures) fail(claim.event, error)
      for (const claim of asks) this.#answers.ask(claim)
      for (const outcome of outcomes) settle(outcome)
      learned.push(...outcomes.flatMap((outcome) => this.#names.learn(outcome)))
    }
    wake(learned)
    for (const event of this.#answers.request(this.#orders, now, fail)) {
      const held = heldOf.get(event)
      if (held !== undefined) woken.add(held)
    }
    return woken
  }

  #give(claim: Claim, claims: Claim[], fail: (event: InboxEvent, error: unknown) => void): void {
    try {
      claims.push(this.#answers.given(claim))
    } catch (error) {
      fail(claim.event, error)
    }
  }

  /** Orders with their events; one that no event may open is folded for each workflow apart. */
  #ledgersOf(claims: readonly Claim[]): ReadonlyMap<OrderLedger, readonly Claim[]> {
    const made = new Map<string, OrderLedger>()
    const groups = new Map<OrderLedger, Claim[]>()
    for (const claim of claims) {
      const { orderId, candidate } = claim
      const opener = claims.find(
        (each) => each.orderId === orderId && each.candidate.workflow.opens === 'event',
      )
      const { workflow } = (opener ?? claim).candidate
      const key = opener === undefined ? `${candidate.workflow.name}\n${orderId}` : `\n${orderId}`
      const ledger = this.#orders.get(orderId) ?? made.get(key) ?? unopenedOrder(orderId, workflow)
      made.set(key, ledger)
      groups.set(ledger, [...(groups.get(ledger) ?? []), claim])
    }
    return groups
  }

  #foldContext(names: BoundNames): FoldContext {
    return {
      allocate: () => this.#allocate(),
      ownerOf: (sourceId, name) => names.get(nameKey(sourceId, name))?.orderId ?? null,
      payerOf: (sourceId, payment) => this.#payers.get(`${sourceId}\n${payment}`) ?? null,
      derive: (order, name) =>
        [0, 1, 2, 3].map((part) => fingerprint([order, name, part])).join(''),
      outbox: this.#options.outbox,
    }
  }

  #allocate(): bigint {
    this.#lastDecision += 1n
    return this.#lastDecision
  }

  #settle(held: HeldEvent, decided: Outcome, now: Date): void {
    const outcome = linkedOutcome(decided)
    const { event } = outcome
    this.#operations.record(outcome.operations)
    this.#answers.settle(outcome)
    const before = held.outcome?.wait?.description
    if (held.overdue && outcome.kind !== 'deferred')
      this.#close('wait_overdue', `event:${event.key}`)
    for (const kind of outcome.settles ?? []) this.#close(kind, `order:${outcome.orderId}`)
    const lastsMs = outcome.wait?.forMs ?? this.#options.deferralMs
    const names = (outcome.wait?.names ?? []).map((name) => nameKey(event.sourceId, name))
    const customers = (outcome.wait?.customers ?? []).map((id) =>
      customerKey({ sourceId: event.sourceId, id }),
    )
    const order = outcome.wait?.orderId ?? null
    const keys = [...names, ...customers, ...(order === null ? [] : [orderKey(order)])]
    this.#inbox.settle(held, outcome, keys, new Date(now.getTime() + lastsMs))
    // waiting again for the same is nothing new to record
    if (outcome.kind !== 'deferred' || outcome.wait?.description !== before)
      this.#decisions.push(outcome)
    for (const draft of outcome.findings) this.#find(draft, outcome.orderId, event)
  }

  #find(draft: FindingDraft, orderId: string | null, event: InboxEvent | null): void {
    const key = `${draft.kind}\n${draft.about}`
    const timesSeen = (this.#findings.get(key)?.timesSeen ?? 0) + 1
    const eventId = event?.eventId ?? null
    this.#findings.set(key, { ...draft, orderId, eventId, state: 'open', timesSeen })
  }

  #close(kind: string, about: string): void {
    const key = `${kind}\n${about}`
    const found = this.#findings.get(key)
    if (found !== undefined) this.#findings.set(key, { ...found, state: 'closed' })
  }
}

/** Without a database there is no second chance: what would be tried again ends here. */
function failureText(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return isPermanent(error) && error instanceof Error
    ? error.message
    : `it failed each time: ${text}`
}

function orderKey(orderId: string): string {
  return `order\n${orderId}`
}
