/**
 * Which order each event of history belongs to under the present code, and what deciding it there comes
 * to. Names that only the present code teaches are remembered from slice to slice.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import { printable } from '../workflow/checked-text.ts'
import type { OrderLedger } from '../workflow/order.ts'
import type { OutboxPort } from '../workflow/outbox-port.ts'
import { isFinal } from '../workflow/outcome.ts'
import type { Environment } from '../workflow/event.ts'
import type { Registry } from '../workflow/registry.ts'
import { resolveEvent, type Claim, type Resolved } from '../workflow/resolve-event.ts'
import { isBeyond } from './batch-judgements.ts'
import { AppliedAnswers, withCustomer } from './dry-run-answers.ts'
import type { OrderFacts } from './dry-run-facts.ts'
import type { Fold } from './dry-run-order.ts'
import { payersOf, type HistoricEvent } from './dry-run-reads.ts'
import type { LedgerPort } from './ledger-port.ts'
import { foldBatch, namesOf, settleAll, snapshotOf, type BoundNames } from './plan-batch.ts'
import type { EventReading } from './read-claimed.ts'

/** What a dry run needs of the other parts. Nothing of it writes. */
export interface DryRunContext {
  readonly db: Database
  readonly ledger: Pick<LedgerPort, 'nameKey' | 'lookupNames' | 'derive'>
  readonly reading: EventReading
  readonly registry: Registry
  readonly environment: Environment
  readonly outbox: OutboxPort
}

/** A slice of events with what the present code makes of each. */
export interface ResolvedSlice {
  readonly resolved: ReadonlyMap<string, Resolved>
  readonly names: BoundNames
}

/** Resolves events of one dry run. */
export class HistoryResolver {
  readonly #ctx: DryRunContext
  readonly #tx: Executor
  readonly #taught = new Map<string, { readonly orderId: string; readonly workflow: string }>()

  constructor(ctx: DryRunContext, tx: Executor) {
    this.#ctx = ctx
    this.#tx = tx
  }

  /** How many names only the present code teaches. */
  get taught(): number {
    return this.#taught.size
  }

  async resolve(events: readonly HistoricEvent[]): Promise<ResolvedSlice> {
    const { ledger, registry, environment } = this.#ctx
    const first = events.map(({ event }) =>
      resolveEvent(event, { registry, environment, mayIgnore: true }),
    )
    const looked = await ledger.lookupNames(this.#tx, namesOf(first))
    const bound = new Map([...this.#taught, ...looked])
    const { resolved, names } = settleAll(first, bound, (name) => ledger.nameKey(name))
    for (const [key, order] of names) if (!bound.has(key)) this.#taught.set(key, order)
    return {
      resolved: new Map(resolved.map((each) => [each.event.key.toString(), each])),
      names,
    }
  }

  /** Decides a claim of a slice about an order, changing the order in memory. */
  fold(facts: OrderFacts, names: () => BoundNames): Fold {
    let made = 0n
    const answers = new AppliedAnswers()
    return async (of, order) => {
      const { workflow } = of.candidate
      const given = await withCustomer(this.#ctx.db, this.#tx, answers.at(of, order))
      if ('message' in given) return { ok: false, message: messageOf(given.message) }
      const claim = given
      if (!order.stored) Object.assign(order, { workflow: workflow.name, state: workflow.initial })
      if (isBeyond(workflow, order))
        return { ok: false, message: `its workflow does not know state ${order.state}` }
      made += 1n
      const id = made
      const { ledger, outbox } = this.#ctx
      const run = (on: OrderLedger, payers: ReadonlyMap<string, string>) =>
        foldBatch({
          claims: [claim],
          ledgers: new Map([[on.id, on]]),
          names: names(),
          nameKey: (name) => ledger.nameKey(name),
          decisionId: () => id,
          payers,
          derive: (orderId, name) => ledger.derive(orderId, name),
          outbox,
        })
      const payers = await this.#payers(facts, claim, run(snapshotOf(order), new Map()).outcomes)
      const { outcomes, failures } = run(order, payers)
      const [outcome] = outcomes
      if (outcome === undefined) return { ok: false, message: messageOf(failures[0]?.error) }
      if (isFinal(outcome.kind)) answers.decided(claim)
      return { ok: true, outcome }
    }
  }

  /** Whose the payment is that a first try named, where it is recorded for another order. */
  async #payers(
    facts: OrderFacts,
    claim: Claim,
    outcomes: ReturnType<typeof foldBatch>['outcomes'],
  ): Promise<ReadonlyMap<string, string>> {
    const { sourceId, key } = claim.event
    const named = outcomes.flatMap(({ payment }) =>
      payment === null ||
      facts.payments.some(({ row }) => row.id === payment.id && row.sourceId === sourceId)
        ? []
        : [{ sourceId, id: payment.id }],
    )
    if (named.length === 0) return new Map()
    const found = await payersOf(this.#ctx.db, this.#tx, named)
    // what this very event recorded for another order would be this one's under the present code
    return new Map(
      [...found].flatMap(([at, { orderId, eventKey }]) =>
        eventKey === key.toString() ? [] : [[at, orderId] as const],
      ),
    )
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? printable(error.message) : 'an error that cannot be told'
}
