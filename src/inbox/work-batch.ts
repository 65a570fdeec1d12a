/**
 * One batch of work: claim, resolve, lock, decide, apply, in one transaction and one commit. What
 * fails is rolled back and tried again without its cause; no event leaves the ready list in any other
 * way than by this commit.
 */
import { reach } from '../core/failpoints.ts'
import type { Limits } from '../core/limits.ts'
import type { Signals } from '../core/signals.ts'
import type { Tracing } from '../core/tracing.ts'
import type { Database, Executor } from '../postgres/executor.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import type { InboxEvent } from '../workflow/event.ts'
import { linkedOutcome } from '../workflow/caused-by.ts'
import type { Name, OrderLedger } from '../workflow/order.ts'
import { emptyOutcome, type Outcome } from '../workflow/outcome.ts'
import type { Registry } from '../workflow/registry.ts'
import { resolveEvent, type Claim, type Resolved } from '../workflow/resolve-event.ts'
import type { Environment } from '../workflow/event.ts'
import type { ApiVersions, FoundVersion } from './api-versions.ts'
import { anyLooks, askParts, partAsks } from './ask-parts.ts'
import { readAnswers, withCustomers } from './answers.ts'
import type { Look, LookedAt, ReadAnswers } from './answers.ts'
import { BatchOutdated, judgeEventFailure } from './batch-failure.ts'
import { BatchRow } from './batch-row.ts'
import { BatchTracer } from './batch-traces.ts'
import { isBeyond, isKnown, waitsFor } from './batch-judgements.ts'
import { awaitCustomers } from './customer-links.ts'
import { claim, claimSetup, type ClaimedRow, type Selection } from './claim.ts'
import { ledgerBatch, newNames, unboundOf, wakesOf } from './decided-batch.ts'
import type { DecidedBatch, LearnedName, LockedClaims } from './decided-batch.ts'
import type { UnopenedEvent, WorkedBatch } from './decided-batch.ts'
import type { LedgerPort, SourceName } from './ledger-port.ts'
import { operationParts, type OutboxWrites } from './outbox-writes.ts'
import { inboxParts, waitedNames, type Retried, type Settled } from './outcome-parts.ts'
import { deadOutcome, orderlessOutcome, type Orderless } from '../workflow/orderless-outcome.ts'
import { foldBatch, namesOf, settleAll, snapshotOf, type BoundNames } from './plan-batch.ts'
import { readClaimed, type ClaimedEvent, type EventReading } from './read-claimed.ts'
import { runEffectSql, runPlainHandlers } from './run-user-sql.ts'

/** What working on batches needs. */
export interface WorkContext extends OutboxWrites {
  readonly db: Database
  readonly ledger: LedgerPort
  readonly reading: EventReading
  /** Tells of events that another version of the provider's API has shaped. */
  readonly versions: ApiVersions
  readonly registry: Registry
  readonly environment: Environment
  /** Whether this process is the newest of its configuration, held until the transaction ends. */
  readonly mayIgnore: (tx: Executor) => Promise<boolean>
  /** Closes what was found about requests that nobody makes any more. */
  readonly unaskedFindings: (looked: readonly LookedAt[]) => readonly WritePart[]
  readonly limits: Limits
  readonly signals: Signals
  /** Names this worker in batch rows and decisions. */
  readonly worker: string
  /** Told which keys a run has claimed, before anything can fail. */
  readonly onClaimed?: (keys: readonly bigint[]) => void
  /** Absent or null: traces are off. */
  readonly tracing?: Tracing | null
}

/** How a batch is run. */
export interface BatchMode {
  /** False after a lock timeout: events that would write a new order or name, as somebody else may be doing, stay ready. */
  readonly openNew: boolean
  /** True after a count that differed: payments' owners are read before deciding. */
  readonly checkPayers: boolean
}

/** What a batch came to. */
export interface BatchReport {
  readonly claimed: readonly bigint[]
  readonly settled: readonly Settled[]
  readonly retried: readonly Retried[]
  /** They wait for an answer of the provider. */
  readonly asked: readonly bigint[]
  /** Left on the ready list: their order is held, or their type is for a newer worker. */
  readonly left: readonly bigint[]
  /** Of those, the ones that would write a new order or name, which this run was not to do. */
  readonly unopened: readonly UnopenedEvent[]
}

const nothing: BatchReport = {
  claimed: [],
  settled: [],
  retried: [],
  asked: [],
  left: [],
  unopened: [],
}

/**
 * Runs one batch in one transaction. Throws what made it roll back; the batch row is gone then, so
 * that nobody takes this worker for dead.
 */
export async function workBatch(
  ctx: WorkContext,
  selection: Selection,
  mode: BatchMode,
): Promise<BatchReport> {
  const batch = new Batch(ctx, selection, mode)
  try {
    const report = await ctx.db.transaction((tx) => batch.run(tx), {
      setup: claimSetup(ctx.limits),
      needsAnother: true,
      beforeCommit: async () => reach('W6'),
      afterCommit: async () => reach('W7'),
    })
    batch.tracer?.end(null)
    ctx.versions.told(batch.otherVersions)
    return report
  } catch (error) {
    batch.tracer?.end('rolled_back')
    await batch.row.unregister()
    throw error
  }
}

class Batch {
  readonly #ctx: WorkContext
  readonly #selection: Selection
  readonly #mode: BatchMode
  readonly row: BatchRow
  readonly tracer: BatchTracer | null
  otherVersions: readonly FoundVersion[] = []

  constructor(ctx: WorkContext, selection: Selection, mode: BatchMode) {
    this.row = new BatchRow(ctx.db, ctx.worker, selection.kind === 'suspect')
    this.tracer = ctx.tracing == null ? null : new BatchTracer(ctx.tracing)
    this.#ctx = ctx
    this.#selection = selection
    this.#mode = mode
  }

  async run(tx: Executor): Promise<BatchReport> {
    const { db } = this.#ctx
    await reach('W0')
    const rows = await claim(db, tx, this.#selection)
    if (rows.length === 0) return nothing
    this.#ctx.onClaimed?.(rows.map((row) => row.key))
    // side by side: the row is committed on another connection while this one reads
    const claimed = await bothEnded(
      readClaimed(db, tx, rows, this.#ctx.reading),
      this.row.register(rows),
    )
    await this.row.lock(tx)
    await reach('W1')
    const open = claimed.filter((each) => !each.finished)
    await this.tracer?.read(db.schema, tx, open)
    const { registry, environment } = this.#ctx
    const asks = open.some(({ event }) => !isKnown(event, registry))
    const mayIgnore = asks && (await this.#ctx.mayIgnore(tx))
    const resolved = open.map(({ event }) =>
      resolveEvent(event, { registry, environment, mayIgnore }),
    )
    const decided = await this.#decide(tx, open, resolved)
    this.tracer?.decided(decided)
    await reach('W2')
    const { settled, retried, asking } = decided
    const kept = new Set([...settled, ...retried, ...asking].map((each) => each.row.key))
    const left = open.map((each) => each.row.key).filter((key) => !kept.has(key))
    await this.#apply(tx, rows, decided, new Set(left))
    return {
      claimed: rows.map((row) => row.key),
      settled: this.tracer?.traced(settled) ?? settled,
      retried,
      asked: asking.map((each) => each.row.key),
      left,
      unopened: decided.unopened,
    }
  }

  async #decide(
    tx: Executor,
    open: readonly ClaimedEvent[],
    first: readonly Resolved[],
  ): Promise<WorkedBatch> {
    const { ledger } = this.#ctx
    const rowOf = new Map(open.map((each) => [each.event, each]))
    const bound = await ledger.lookupNames(tx, namesOf(first))
    const { resolved, names } = settleAll(first, bound, (name) => ledger.nameKey(name))
    const naming = this.#mode.openNew
      ? []
      : resolved.flatMap((each) => unboundOf(each, bound, (name) => ledger.nameKey(name)))
    const later = new Set(naming.map((each) => each.key))
    const present = resolved.filter(({ event }) => !later.has(event.key))
    const { orders, before, ready, unopened } = await this.#lock(
      tx,
      present.filter((each) => each.kind === 'claim'),
    )
    const { claims, failures: unread, looks } = await this.#answers(tx, ready)
    const folded = await this.#fold(tx, claims, orders, names, rowOf)
    const outcomes: Outcome[] = [...folded.outcomes]
    const failures = [...unread, ...folded.failures].map(({ claim: { event }, error }) => ({
      event,
      error,
    }))
    for (const each of present) {
      if (each.kind === 'failed') failures.push({ event: each.event, error: each.error })
      // plain handlers run below; what is for a newer worker stays on the list
      if (['failed', 'claim', 'plain', 'left'].includes(each.kind)) continue
      outcomes.push(orderlessOutcome(each as Orderless, rowOf.get(each.event)?.decisionId ?? 0n))
    }
    const plain = present.filter((each) => each.kind === 'plain')
    for (const { event, ignored } of await runPlainHandlers(
      tx,
      plain,
      this.#ctx.limits.watchdogMs,
      this.#ctx.addOperation,
    )) {
      const base = { ...emptyOutcome, decisionId: rowOf.get(event)?.decisionId ?? 0n, event }
      outcomes.push(
        ignored === null
          ? { ...base, kind: 'handled', reason: `handled ${event.eventType}` }
          : { ...base, kind: 'ignored', reason: ignored },
      )
    }
    const settled: Settled[] = []
    const { limits } = this.#ctx
    const parted = partAsks(folded.asks, ({ event }) => rowOf.get(event)?.row, looks, limits)
    const retried: Retried[] = [...parted.retried]
    for (const { event, error } of failures) {
      const found = rowOf.get(event)
      if (found === undefined) continue
      const verdict = judgeEventFailure(error, found.row.attempts, limits)
      if (verdict.dead) outcomes.push(deadOutcome(event, found.decisionId, verdict.reason))
      else retried.push({ row: found.row, delayMs: verdict.delayMs, error: verdict.error })
    }
    const taken = await this.#boundNames(tx, outcomes, bound)
    const isBound = (name: SourceName): boolean => taken.has(ledger.nameKey(name))
    const isNew = (name: SourceName): boolean => isBound(name) && !bound.has(ledger.nameKey(name))
    for (const outcome of outcomes) {
      const found = rowOf.get(outcome.event)
      // A name that it waits for is bound by this very commit, to an order that was opened a moment ago:
      // it stays ready and looks again, since nothing would wake it.
      if (found === undefined || (outcome.orderId === null && waitsFor(outcome, isNew))) continue
      const waits = waitedNames(outcome, isBound)
      settled.push({ row: found.row, outcome: linkedOutcome(outcome), waits })
    }
    const { asking } = parted
    const all = [...naming, ...unopened]
    return { settled, retried, asking, looks, before, after: orders, unopened: all, bound }
  }

  /** What the provider answered, for those that are decided from it: nothing at all for other batches. */
  async #answers(tx: Executor, claims: readonly Claim[]): Promise<ReadAnswers> {
    const { db, reading, limits } = this.#ctx
    const answers = anyLooks(claims)
      ? await readAnswers(db, tx, claims, reading, limits.evidenceMs)
      : { claims, failures: [], looks: new Map<bigint, Look>() }
    if (answers.looks.size > 0) await reach('G6')
    return { ...answers, claims: await withCustomers(db, tx, answers.claims) }
  }

  /**
   * The names that need not be waited for: bound already, or by this very batch. What a decision says
   * is missing was not looked up before it, so that it is now.
   */
  async #boundNames(
    tx: Executor,
    outcomes: readonly Outcome[],
    bound: BoundNames,
  ): Promise<ReadonlySet<string>> {
    const { ledger } = this.#ctx
    const full = ({ event }: Outcome, names: readonly Name[]): SourceName[] =>
      names.map((name) => ({ sourceId: event.sourceId, kind: name.kind, value: name.value }))
    const taken = new Set(bound.keys())
    for (const outcome of outcomes) {
      if (outcome.orderId !== null)
        for (const name of full(outcome, outcome.learned)) taken.add(ledger.nameKey(name))
    }
    const missing = outcomes.flatMap((each) =>
      each.orderId === null ? [] : full(each, each.wait?.names ?? []),
    )
    for (const key of (await ledger.lookupNames(tx, missing)).keys()) taken.add(key)
    return taken
  }

  /** Locks the batch's orders; events whose order is held by somebody else leave the batch. */
  async #lock(tx: Executor, claims: readonly Claim[]): Promise<LockedClaims> {
    // One that only the app opens is held by its key too: whoever opens it meanwhile waits for this
    // batch, and sees then what waits for the order. It is discarded in the same commit.
    const openable = claims.flatMap(({ orderId, candidate: { workflow }, event }) =>
      event.accountAllowed && this.#mode.openNew
        ? [{ id: orderId, workflow: workflow.name, initial: workflow.initial }]
        : [],
    )
    const ids = claims.map((each) => each.orderId)
    const { ledgers, held } = await this.#ctx.ledger.lockOrders(tx, ids, openable)
    const before = new Map([...ledgers].map(([id, ledger]) => [id, snapshotOf(ledger)]))
    const unopened: UnopenedEvent[] = []
    const ready = claims.filter(({ orderId, candidate, event }) => {
      if (held.has(orderId) || isBeyond(candidate.workflow, ledgers.get(orderId))) return false
      // an order that is missing would be inserted, or a placeholder for it
      if (this.#mode.openNew || ledgers.has(orderId)) return true
      unopened.push({ key: event.key, group: orderId })
      return false
    })
    return { orders: new Map(ledgers), before, ready, unopened }
  }

  async #fold(
    tx: Executor,
    claims: readonly Claim[],
    orders: Map<string, OrderLedger>,
    names: BoundNames,
    rowOf: ReadonlyMap<InboxEvent, ClaimedEvent>,
  ): Promise<ReturnType<typeof foldBatch>> {
    const { ledger } = this.#ctx
    const input = {
      claims,
      names,
      nameKey: (name: Parameters<LedgerPort['nameKey']>[0]) => ledger.nameKey(name),
      decisionId: (event: InboxEvent) => rowOf.get(event)?.decisionId ?? 0n,
      derive: (orderId: string, name: string) => ledger.derive(orderId, name),
      outbox: this.#ctx.outbox,
    }
    if (!this.#mode.checkPayers) return foldBatch({ ...input, ledgers: orders, payers: new Map() })
    // a first fold on copies tells which payments are named; their owners decide the second
    const copies = new Map([...orders].map(([id, order]) => [id, snapshotOf(order)]))
    const trial = foldBatch({ ...input, ledgers: copies, payers: new Map() })
    const named = trial.outcomes.flatMap((o) =>
      o.payment === null ? [] : [{ sourceId: o.event.sourceId, id: o.payment.id }],
    )
    return foldBatch({ ...input, ledgers: orders, payers: await ledger.payers(tx, named) })
  }

  async #apply(
    tx: Executor,
    rows: readonly ClaimedRow[],
    decided: WorkedBatch,
    left: ReadonlySet<bigint>,
  ): Promise<void> {
    const { ledger, db, limits, worker } = this.#ctx
    const { settled, retried, after } = decided
    const learned = newNames(decided, (name) => ledger.nameKey(name))
    await this.#writeNames(tx, decided, learned)
    await reach('W3')
    const wakes = wakesOf(decided, learned)
    await reach('W4')
    this.otherVersions = this.#ctx.versions.found(settled)
    const batch = ledgerBatch(decided, ledger, worker, this.otherVersions)
    await ledger.apply(tx, batch, [
      ...operationParts(this.#ctx, settled, this.tracer),
      ...askParts(db.schema, decided),
      ...inboxParts(db.schema, {
        from: this.#selection.kind === 'suspect' ? 'inbox_suspects' : 'inbox_ready',
        taken: rows.filter((row) => !left.has(row.key)),
        settled,
        retried,
        defaultDeferralMs: limits.deferralMs,
        operatorOnly: new Set(
          settled
            .filter(({ outcome }) => !outcome.event.content.readable)
            .map(({ row }) => row.key),
        ),
        wakes,
        batchId: this.row.id,
      }),
    ])
    await reach('W5')
    if (decided.asking.length > 0) await reach('G7')
    await runEffectSql(tx, settled, this.#ctx.registry, after, limits.watchdogMs)
  }

  async #writeNames(
    tx: Executor,
    decided: DecidedBatch,
    learned: readonly LearnedName[],
  ): Promise<void> {
    const { ledger } = this.#ctx
    const waited = decided.settled.flatMap(({ waits }) =>
      // an order that exists is locked already: only names and missing orders need a placeholder
      waits.filter((name) => name.sourceId !== 0 || decided.after.get(name.value)?.stored !== true),
    )
    const conflicts = await ledger.writeNames(tx, [
      ...learned,
      ...waited.map((name) => ({ ...name, orderId: null })),
    ])
    if (conflicts.length > 0) throw new BatchOutdated()
    const outcomes = decided.settled.map((each) => each.outcome)
    await awaitCustomers(this.#ctx.db, tx, outcomes)
  }
}

/**
 * The first one's value, once both have ended: a transaction that is rolled back while one of them still
 * uses its connection would hand that connection on in the middle of a statement, and a batch row that is
 * still on its way would stay behind.
 */
async function bothEnded<T>(first: Promise<T>, second: Promise<unknown>): Promise<T> {
  const [one, other] = await Promise.allSettled([first, second])
  if (one.status === 'rejected') throw one.reason
  if (other.status === 'rejected') throw other.reason
  return one.value
}
