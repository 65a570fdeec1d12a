/**
 * One order's history decided again in memory: it starts as it was at a moment, each event is decided in
 * the order in which it was decided then, and acts of persons happen again as they are recorded.
 */
import type { OrderLedger } from '../workflow/order.ts'
import type { Outcome } from '../workflow/outcome.ts'
import type { Claim } from '../workflow/resolve-event.ts'
import { endDifference, outcomeDifference, pairOf, stepText } from './dry-run-compare.ts'
import type { DryRunDifference, RecordedStep } from './dry-run-compare.ts'
import type { OrderFacts } from './dry-run-facts.ts'

/** What is decided of a claim, changing `ledger`; an error that the user's code threw comes back. */
export type Fold = (
  claim: Claim,
  ledger: OrderLedger,
) => Promise<
  | { readonly ok: true; readonly outcome: Outcome }
  | { readonly ok: false; readonly message: string }
>

/** An event at its place in the order's history. */
export interface EventStep {
  readonly recorded: RecordedStep
  readonly at: number
  readonly claim: Claim
  readonly source: string
}

/** The history of one order, as the present code decides it. */
export class OrderRun {
  readonly #facts: OrderFacts
  readonly #fold: Fold
  readonly #tell: (difference: DryRunDifference) => void
  readonly #ledger: OrderLedger
  #waiting: EventStep[] = []
  /** The state to which the recorded decisions lead. */
  #recordedState: string | null
  /** Entitlements whose figures were stated, then or now. */
  readonly #stated = new Set<string>()
  #isOther = false

  /** `entitled`: whether the state in which the order begins entitles. */
  constructor(
    facts: OrderFacts,
    entitled: boolean,
    fold: Fold,
    tell: (difference: DryRunDifference) => void,
  ) {
    this.#facts = facts
    this.#fold = fold
    this.#tell = tell
    this.#ledger = ledgerBefore(facts, entitled)
    this.#recordedState = facts.stateBefore
  }

  /** A decision of the recorded history, whatever becomes of its event now. */
  pass({ kind, to, evidence }: RecordedStep): void {
    this.#recordedState = stateAfter(this.#recordedState, kind, to)
    this.#note(evidence)
  }

  #note(evidence: Readonly<Record<string, unknown>>): void {
    const { stated } = evidence
    if (typeof stated !== 'object' || stated === null) return
    for (const pair of Object.keys(stated)) this.#stated.add(pair)
  }

  /** Its history is another one now: tells it, or only says that it is so, where another order tells it. */
  differs(difference?: DryRunDifference): void {
    this.#isOther = true
    if (difference !== undefined) this.#tell(difference)
  }

  /** What a person, the app or a body that is gone did: it happens as it is recorded. */
  async act(step: RecordedStep): Promise<void> {
    const { now, effects, payments } = this.#facts
    const ledger = this.#ledger
    ledger.state = stateAfter(ledger.stored ? ledger.state : null, step.kind, step.to) ?? ''
    if (!ledger.stored && now !== null && step.to !== null)
      Object.assign(ledger, {
        stored: true,
        workflow: now.workflow,
        sourceId: now.sourceId,
        provider: now.provider,
        providerAccount: now.providerAccount,
      })
    ledger.version += 1n
    // an opening tells what it was asked with: what it did not name, another one may have added
    const says = (figure: string): boolean =>
      step.kind === 'adopted' || (step.kind === 'opened' && step.evidence[figure] !== null)
    if (says('subject')) ledger.subject ??= now?.subject ?? null
    if (says('expected')) ledger.expected ??= now?.expected ?? null
    for (const { row, decisionId } of effects)
      if (decisionId === step.decisionId && !ledger.effects.some((each) => isSame(each, row)))
        ledger.effects.push(row)
    for (const { row, decisionId } of payments) {
      if (decisionId !== step.decisionId) continue
      ledger.payments = [...ledger.payments.filter((each) => each.id !== row.id), row]
    }
    this.#entitle(step)
    await this.#retry()
  }

  /** What such a step granted and revoked, with the figures that stand now. */
  #entitle({ evidence, decisionId }: RecordedStep): void {
    const ledger = this.#ledger
    const changed = new Map<string, boolean>()
    for (const pair of texts(evidence['granted'])) changed.set(pair, true)
    for (const pair of texts(evidence['revoked'])) changed.set(pair, false)
    const figures = statedIn(evidence)
    const known = new Map(ledger.entitlements.map((row) => [pairOf(row), row]))
    const rows = this.#facts.entitlements
      .filter(
        ({ row, changedBy }) =>
          changed.has(pairOf(row)) || figures.has(pairOf(row)) || changedBy === decisionId,
      )
      .map(({ row, changedBy }) => {
        const pair = pairOf(row)
        const isLast = changedBy === decisionId
        const before = changed.has(pair) || isLast ? undefined : known.get(pair)
        return {
          ...row,
          ...before,
          ...figures.get(pair),
          active: changed.get(pair) ?? before?.active ?? (isLast && row.active),
          stated: changed.get(pair) ?? before?.stated ?? row.stated,
        }
      })
    const replaced = new Set(rows.map(pairOf))
    ledger.entitlements = [
      ...ledger.entitlements.filter((each) => !replaced.has(pairOf(each))),
      ...rows,
    ]
  }

  /** Decides an event, and looks again at what waits for a change of the order. */
  async decide(step: EventStep): Promise<void> {
    const { version } = this.#ledger
    if (await this.#attempt(step)) this.#waiting.push(step)
    if (this.#ledger.version !== version) await this.#retry()
  }

  async #retry(): Promise<void> {
    for (;;) {
      const { version } = this.#ledger
      const waiting = this.#waiting
      this.#waiting = []
      for (const step of waiting) if (await this.#attempt(step)) this.#waiting.push(step)
      if (this.#waiting.length === 0 || this.#ledger.version === version) return
    }
  }

  /** One try; resolves whether the event waits. */
  async #attempt(step: EventStep): Promise<boolean> {
    this.#showOperations(step.at)
    const folded = await this.#fold(step.claim, this.#ledger)
    if (!folded.ok) {
      if (step.recorded.kind !== 'dead') this.#differs(step, `fails: ${folded.message}`)
      return false
    }
    const { outcome } = folded
    if (outcome.kind === 'deferred') return true
    this.#note(outcome.evidence)
    const made = this.#facts.effects.filter(
      ({ decisionId }) => decisionId === step.recorded.decisionId,
    )
    const difference = outcomeDifference(
      step.recorded,
      made.map(({ row }) => row),
      outcome,
    )
    if (difference !== null) this.differs({ ...this.#about(step), ...difference })
    return false
  }

  /** Operations as they stood at a moment: what ended later was still under way. */
  #showOperations(at: number): void {
    const ledger = this.#ledger
    if (ledger.operations.length === 0) return
    ledger.operations = ledger.operations.map((operation) => {
      const known = this.#facts.operations.find(
        ({ row }) =>
          row.name === operation.name &&
          row.destination === operation.destination &&
          isSame(row.effect, operation.effect),
      )
      if (known === undefined) return operation
      const isEnded = known.finishedMs !== null && known.finishedMs <= at
      return isEnded ? known.row : { ...operation, state: 'pending', receipt: null }
    })
  }

  /**
   * Tells what still waits, and how the order ends otherwise than its decisions say. What somebody changed
   * behind them is not the code's doing: where nothing was decided otherwise, rows are looked at only for figures.
   */
  finish(): void {
    const { id, now, entitlements } = this.#facts
    const ledger = this.#ledger
    for (const step of this.#waiting)
      if (step.recorded.kind !== 'deferred') this.#differs(step, 'deferred: it would still wait')
    const end = endDifference(
      { state: this.#recordedState, entitlements: entitlements.map(({ row }) => row) },
      {
        state: ledger.stored ? ledger.state : null,
        entitlements: ledger.stored ? ledger.entitlements : [],
      },
      this.#isOther || now === null ? null : this.#stated,
    )
    if (end !== null) this.#tell({ order_id: id, event: null, decision_id: null, ...end })
  }

  #differs(step: EventStep, now: string): void {
    this.differs({ ...this.#about(step), recorded: stepText(step.recorded), now, details: [] })
  }

  #about({
    recorded,
    claim: { event },
    source,
  }: EventStep): Pick<DryRunDifference, 'order_id' | 'event' | 'decision_id'> {
    return {
      order_id: this.#facts.id,
      event: { id: event.eventId, type: event.eventType, source },
      decision_id: recorded.decisionId === '' ? null : recorded.decisionId,
    }
  }
}

/** The order just before the window. */
function ledgerBefore(
  { id, now, stateBefore, openedLater, payments, effects, entitlements, operations }: OrderFacts,
  entitled: boolean,
): OrderLedger {
  const existed = stateBefore !== null && now !== null
  return {
    id,
    workflow: now?.workflow ?? '',
    sourceId: existed ? now.sourceId : null,
    provider: existed ? now.provider : null,
    providerAccount: existed ? now.providerAccount : null,
    state: stateBefore ?? '',
    subject: existed && !openedLater.subject ? now.subject : null,
    expected: existed && !openedLater.expected ? now.expected : null,
    version: existed ? 1n : 0n,
    stored: existed,
    payments: payments.filter(({ isBefore }) => isBefore).map(({ row }) => row),
    effects: effects.filter(({ isBefore }) => isBefore).map(({ row }) => row),
    // what was not active although the state entitled did not belong to the set any more
    entitlements: entitlements
      .filter(({ wasThere }) => wasThere)
      .map(({ row, before, wasActive }) => ({
        ...row,
        ...before,
        active: wasActive,
        stated: wasActive || !entitled,
      })),
    operations: operations.filter(({ isBefore }) => isBefore).map(({ row }) => row),
  }
}

/** The state after a recorded decision. Opening an order that exists adds figures, and moves nothing. */
export function stateAfter(state: string | null, kind: string, to: string | null): string | null {
  return to === null || (kind === 'opened' && state !== null) ? state : to
}

function isSame(
  a: { readonly type: string; readonly reference: string },
  b: { readonly type: string; readonly reference: string },
): boolean {
  return a.type === b.type && a.reference === b.reference
}

/** The figures that a decision stated, by subject and entitlement. */
function statedIn({
  stated,
}: Readonly<Record<string, unknown>>): ReadonlyMap<
  string,
  { readonly quantity: number; readonly validUntil: Date | null }
> {
  if (typeof stated !== 'object' || stated === null) return new Map()
  return new Map(
    Object.entries(stated as Record<string, { quantity: number; valid_until: string | null }>).map(
      ([pair, { quantity, valid_until: until }]) => [
        pair,
        { quantity, validUntil: until === null ? null : new Date(until) },
      ],
    ),
  )
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
}
