/**
 * The histories of a group of orders, one after the other: their decisions come in pages, and the bodies
 * of their events in slices, so that an order with a long history takes no more room than a short one.
 */
import type { Executor } from '../postgres/executor.ts'
import type { Resolved } from '../workflow/resolve-event.ts'
import { grants, type Workflow } from '../workflow/workflow.ts'
import { resolvedText, stepText } from './dry-run-compare.ts'
import type { DryRunDifference, RecordedStep } from './dry-run-compare.ts'
import { evidenceOf, readKept, withKept, type KeptAnswer } from './dry-run-answers.ts'
import { readFacts, type OrderFacts } from './dry-run-facts.ts'
import { presentFacts, presentStep } from './dry-run-names.ts'
import { OrderRun, stateAfter } from './dry-run-order.ts'
import {
  isExpired,
  readEvents,
  readSteps,
  withBodies,
  type HistoricEvent,
  type HistoricStep,
  type HistoryWindow,
} from './dry-run-reads.ts'
import type { DryRunContext, HistoryResolver } from './dry-run-resolve.ts'
import type { BoundNames } from './plan-batch.ts'

/** An event that belongs to an order under the present code only. */
export interface MovedEvent {
  readonly key: string
  /** When it arrived: its place among what was decided. */
  readonly at: number
  /** What is recorded of it, in words. */
  readonly recorded: string
}

/** One thing to be done, at its place in the history of an order. */
interface Item {
  readonly run: OrderRun
  readonly orderId: string
  /** Null: its end. */
  readonly recorded: RecordedStep | null
  readonly at: number
  readonly eventKey: string | null
}

const stepsAtOnce = 100

/** Decides the histories of orders. */
export class OrderHistory {
  readonly #ctx: DryRunContext
  readonly #tx: Executor
  readonly #resolver: HistoryResolver
  readonly #window: HistoryWindow
  readonly #tell: (difference: DryRunDifference) => void
  readonly #untold: (event: HistoricEvent) => void
  #names: BoundNames = new Map()
  #kept: ReadonlyMap<string, KeptAnswer> = new Map()

  /** `untold` is called for every event that is decided from an answer which is not kept. */
  constructor(
    ctx: DryRunContext,
    tx: Executor,
    resolver: HistoryResolver,
    window: HistoryWindow,
    tell: (difference: DryRunDifference) => void,
    untold: (event: HistoricEvent) => void,
  ) {
    this.#ctx = ctx
    this.#tx = tx
    this.#resolver = resolver
    this.#window = window
    this.#tell = tell
    this.#untold = untold
  }

  /** Decides a group, each with the events that only the present code leads to it. */
  async decide(
    ids: readonly string[],
    moved: ReadonlyMap<string, readonly MovedEvent[]>,
  ): Promise<void> {
    const { db } = this.#ctx
    const facts = await readFacts(db, this.#tx, ids, this.#window)
    const page = await readSteps(db, this.#tx, ids, this.#window, '0', stepsAtOnce)
    const byOrder = new Map<string, HistoricStep[]>(ids.map((id) => [id, []]))
    for (const step of page.steps) byOrder.get(step.order_id)?.push(step)
    const items: Item[] = []
    const long: (() => Promise<void>)[] = []
    for (const [id, recorded] of facts) {
      const workflow = this.#ctx.registry.workflows.get(recorded.now?.workflow ?? '')
      const order = presentFacts(workflow, recorded)
      const run = this.#runOf(order, workflow)
      const waiting = [...(moved.get(id) ?? [])]
      const begun = { run, order, workflow, state: order.stateBefore, moved: waiting }
      const after = page.read.get(id)
      const steps = byOrder.get(id) ?? []
      items.push(...placed(begun, steps, after !== undefined))
      if (after === undefined) continue
      long.push(() => this.#goOn(begun, after))
    }
    await this.#work(items)
    for (const each of long) await each()
  }

  #runOf(order: OrderFacts, workflow: Workflow | undefined): OrderRun {
    const entitled =
      workflow !== undefined && order.stateBefore !== null && grants(workflow, order.stateBefore)
    const fold = this.#resolver.fold(order, () => this.#names)
    return new OrderRun(order, entitled, fold, this.#tell)
  }

  /** The rest of an order whose history does not fit into one page. */
  async #goOn(begun: Begun, from: string): Promise<void> {
    const { db } = this.#ctx
    for (let after: string | undefined = from; after !== undefined;) {
      const { id } = begun.order
      const page = await readSteps(db, this.#tx, [id], this.#window, after, stepsAtOnce)
      after = page.read.get(id)
      await this.#work(placed(begun, page.steps, after !== undefined))
    }
  }

  async #work(items: readonly Item[]): Promise<void> {
    const { db, reading } = this.#ctx
    const keys = [
      ...new Set(items.flatMap(({ eventKey }) => (eventKey === null ? [] : [eventKey]))),
    ]
    const known = new Map(
      (await readEvents(db, this.#tx, keys, reading)).map((each) => [
        each.event.key.toString(),
        each,
      ]),
    )
    const evidence = items.flatMap(({ recorded }) => (recorded && evidenceOf(recorded)) ?? [])
    this.#kept = await readKept(db, this.#tx, evidence, reading)
    // in the order of the items, so that each slice is used before the next one is read
    const queue = keys.flatMap((key) => known.get(key) ?? [])
    const slices = withBodies(db, this.#tx, queue, reading)
    let slice = new Map<string, { readonly event: HistoricEvent; readonly now: Resolved | null }>()
    for (const item of items) {
      if (item.recorded === null) {
        item.run.finish()
        continue
      }
      item.run.pass(item.recorded)
      if (item.eventKey === null || !known.has(item.eventKey)) {
        await item.run.act(item.recorded)
        continue
      }
      while (!slice.has(item.eventKey)) {
        const next = await slices.next()
        if (next.done === true) break
        slice = await this.#resolved(next.value)
      }
      await this.#do(item, item.recorded, slice.get(item.eventKey))
    }
  }

  async #resolved(
    events: readonly HistoricEvent[],
  ): Promise<Map<string, { readonly event: HistoricEvent; readonly now: Resolved | null }>> {
    const kept = events.filter((each) => !isExpired(each))
    const { resolved, names } = await this.#resolver.resolve(kept)
    this.#names = names
    return new Map(
      events.map((event) => {
        const key = event.event.key.toString()
        return [key, { event, now: resolved.get(key) ?? null }]
      }),
    )
  }

  async #do(
    { run, orderId, at }: Item,
    recorded: RecordedStep,
    found: { readonly event: HistoricEvent; readonly now: Resolved | null } | undefined,
  ): Promise<void> {
    // a body that is gone cannot be decided: what was decided stands
    if (found === undefined || found.now === null) return run.act(recorded)
    const { event: historic, now } = found
    if (now.kind === 'claim') {
      // what belongs to another order now is told where that one is decided
      if (now.orderId !== orderId) return run.differs()
      const claim = withKept(now, this.#kept.get(evidenceOf(recorded) ?? ''))
      if (claim !== null) return run.decide({ recorded, at, claim, source: historic.source })
      this.#untold(historic)
      return run.act(recorded)
    }
    if (now.kind === 'waiting' && recorded.kind === 'deferred') return
    if (now.kind === 'contradicted' && recorded.kind === 'contradicted') return
    if (now.kind === 'failed' && recorded.kind === 'dead') return
    const { event, source } = historic
    run.differs({
      order_id: orderId,
      event: { id: event.eventId, type: event.eventType, source },
      decision_id: recorded.decisionId,
      recorded: stepText(recorded),
      now: resolvedText(now),
      details: [],
    })
  }
}

/** An order whose history is under way. */
interface Begun {
  readonly run: OrderRun
  readonly order: OrderFacts
  readonly workflow: Workflow | undefined
  /** Where the recorded history stands. */
  state: string | null
  /** What has not found its place yet. */
  moved: MovedEvent[]
}

/** A page of decisions in the order in which they followed one another. Moved events go where they arrived. */
function placed(begun: Begun, page: readonly HistoricStep[], isMoreToCome: boolean): Item[] {
  const items: Item[] = []
  const rest = page.map((step) => presentStep(begun.workflow, step))
  while (rest.length > 0) {
    const [step] = rest.splice(nextOf(begun, rest), 1)
    if (step === undefined) break
    // where the present code has not opened the order by then, the app opens it as it opens any
    const isLate = step.kind === 'opened' && !step.creates
    const to = isLate ? (begun.workflow?.initial ?? step.to_state) : step.to_state
    begun.state = stateAfter(begun.state, step.kind, to)
    const at = Number(step.at_ms)
    items.push(...movedBefore(begun, at))
    items.push({
      run: begun.run,
      orderId: begun.order.id,
      recorded: {
        decisionId: step.decision_id,
        kind: step.kind,
        from: step.from_state,
        to,
        evidence: step.evidence ?? {},
      },
      at,
      eventKey: step.event_key,
    })
  }
  if (isMoreToCome) return items
  const end = { run: begun.run, orderId: begun.order.id, recorded: null, at: 0, eventKey: null }
  return [...items, ...movedBefore(begun, Number.POSITIVE_INFINITY), end]
}

/**
 * Which of the decisions that are left was next. Events get their ids before they lock the order, so that
 * each is looked for that begins where the one before it ended; an opening gets its own under the lock, and
 * names the state that it found.
 */
function nextOf({ state, workflow }: Begun, rest: readonly HistoricStep[]): number {
  const creating = rest.findIndex(({ creates }) => creates)
  if (creating >= 0) return creating
  const is = state ?? workflow?.initial ?? null
  const found = rest.findIndex(({ kind, from_state: from, to_state: to }) =>
    kind === 'opened' ? to === is : to === null || from === null || from === is,
  )
  const step = rest[found]
  if (step === undefined) return 0
  if (step.kind === 'opened' || step.to_state === null || step.to_state === is) return found
  // the order leaves a state in which an opening found it: unless it comes back before, that was now
  const opening = rest.findIndex(({ kind, to_state: to }) => kind === 'opened' && to === is)
  const comesBack = rest.some(
    ({ kind, from_state: from, to_state: to }, at) =>
      at < opening && at !== found && kind !== 'opened' && to === is && from !== is,
  )
  return opening < 0 || comesBack ? found : opening
}

function movedBefore(begun: Begun, at: number): Item[] {
  const due = begun.moved.filter((each) => each.at < at)
  if (due.length === 0) return []
  begun.moved = begun.moved.filter((each) => each.at >= at)
  return due.map((each) => ({
    run: begun.run,
    orderId: begun.order.id,
    recorded: { decisionId: '', kind: each.recorded, from: null, to: null, evidence: {} },
    at: each.at,
    eventKey: each.key,
  }))
}
