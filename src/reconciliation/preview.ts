/**
 * What events made of a provider's records would come to if they were decided now: the same resolving and the
 * same fold as the worker's, on copies of the orders, in a transaction that cannot write.
 */
import type { Database, Executor } from '../postgres/executor.ts'
import { keyedPlans } from '../postgres/keyed-plans.ts'
import { freezeJson } from '../workflow/any-event.ts'
import type { Environment, InboxEvent } from '../workflow/event.ts'
import type { OrderLedger } from '../workflow/order.ts'
import type { OutboxPort } from '../workflow/outbox-port.ts'
import type { PaymentOutcome } from '../workflow/outcome.ts'
import type { MadeEvent, ProviderRecord } from '../workflow/records.ts'
import type { Registry } from '../workflow/registry.ts'
import { orderlessOutcome, type Orderless } from '../workflow/orderless-outcome.ts'
import { resolveEvent, type Claim } from '../workflow/resolve-event.ts'
import { knownOutcomes, nothingKnown } from './known-outcomes.ts'
import type {
  ConfiguredSourceLike,
  FindingsSql,
  LedgerReads,
  Planning,
  Preview,
  PreviewOutcome,
} from './ports.ts'
import { giveLooks, type Previewed, type PreviewedGroup } from './previewed.ts'

/** What previewing needs. */
export interface PreviewParts {
  readonly db: Database
  readonly ledger: LedgerReads
  readonly planning: Planning
  readonly findings: Pick<FindingsSql, 'id'>
  readonly registry: Registry
  readonly environment: Environment
  readonly outbox: OutboxPort
}

/** Reads see one moment, and nothing can be written. */
export const readOnlySetup: string = `set transaction isolation level repeatable read read only; ${keyedPlans}`

/** Creates the preview of a configuration. */
export function createPreview(parts: PreviewParts): Preview {
  const previewEach: Preview['previewEach'] = async (source, account, records, madeOf) => {
    if (records.every((events) => events.length === 0)) return records.map(() => [])
    return parts.db.transaction(
      (tx) => new PreviewRun(parts, tx, source, account).each(records, madeOf),
      { setup: readOnlySetup },
    )
  }
  return {
    previewEach,
    paymentsNamed: (source, account, events) =>
      parts.db.transaction((tx) => new PreviewRun(parts, tx, source, account).named(events), {
        setup: readOnlySetup,
      }),
    async preview(source, account, events) {
      const [outcomes] = await previewEach(source, account, [events])
      return outcomes ?? []
    },
  }
}

class PreviewRun {
  readonly #parts: PreviewParts
  readonly #tx: Executor
  readonly #source: ConfiguredSourceLike
  readonly #account: string
  #next = 0n

  constructor(parts: PreviewParts, tx: Executor, source: ConfiguredSourceLike, account: string) {
    this.#parts = parts
    this.#tx = tx
    this.#source = source
    this.#account = account
  }

  async each(
    records: readonly (readonly MadeEvent[])[],
    madeOf: readonly ProviderRecord[] = [],
  ): Promise<PreviewOutcome[][]> {
    const { ledger, registry, environment, db, findings } = this.#parts
    const sourceId = await this.#sourceId()
    const groups = records.map((events, index): PreviewedGroup => {
      const record = madeOf[index] ?? null
      const previewed = events.map((made) => this.#previewed(made, sourceId, record))
      const context = { registry, environment, mayIgnore: true }
      const resolved = previewed.map(({ event }) => resolveEvent(event, context))
      return { events: previewed, resolved, names: new Map() }
    })
    await this.#settle(groups)
    const orders = await ledger.readOrders(this.#tx, groups.flatMap(claimedOrders))
    await giveLooks(
      { tx: this.#tx, schema: db.schema, planning: this.#parts.planning },
      { source: this.#source, account: this.#account },
      groups,
    )
    await this.#fold(groups, orders)
    const all = groups.flatMap(({ events }) => events)
    const known = await knownOutcomes(
      { db, tx: this.#tx, sourceId, sourceText: this.#sourceText(), findingId: findings.id },
      all,
      orders,
    )
    let at = 0
    return groups.map(({ events }) =>
      events.map((each) => {
        const { eventKey, isKnown, isPending, isHeldUp, hasNews } = known[at++] ?? nothingKnown
        const { made, outcome, failure, orderId, needsFacts } = each
        const orderExists = orderId !== null && orders.has(orderId)
        const look = each.look === null ? null : { ...each.look, hasNews }
        const told = { made, outcome, failure, orderId, orderExists, look, needsFacts, eventKey }
        return { ...told, known: isKnown, isPending, isHeldUp }
      }),
    )
  }

  /** What the events would record as payments if nothing of their orders were recorded yet. */
  async named(events: readonly MadeEvent[]): Promise<PaymentOutcome[]> {
    const { ledger, registry, environment } = this.#parts
    const sourceId = await this.#sourceId()
    const previewed = events.map((made) => this.#previewed(made, sourceId, null))
    const context = { registry, environment, mayIgnore: true }
    const resolved = previewed.map(({ event }) => resolveEvent(event, context))
    const group: PreviewedGroup = { events: previewed, resolved, names: new Map() }
    await this.#settle([group])
    const orders = await ledger.readOrders(this.#tx, claimedOrders(group))
    const blank = new Map<string, OrderLedger>()
    for (const each of group.resolved) {
      const order = each.kind === 'claim' ? orders.get(each.orderId) : undefined
      if (each.kind !== 'claim' || order === undefined) continue
      const { initial: state } = each.candidate.workflow
      const empty = { payments: [], effects: [], entitlements: [], operations: [] }
      blank.set(order.id, { ...order, ...empty, state })
    }
    this.#foldGroup(group, blank, new Map())
    return previewed.flatMap(({ outcome }) => outcome?.payment ?? [])
  }

  #sourceText(): string {
    const { source, environment } = this.#source
    return `${source.provider}:${this.#account}:${environment}`
  }

  /** A source that nothing ever came from has no number, and so no names and no payments. */
  async #sourceId(): Promise<number> {
    const { source, environment } = this.#source
    const [row] = await this.#tx.query<{ source_id: number }>({
      text: `select source_id from ${this.#parts.db.schema}sources
        where provider = $1 and provider_account = $2 and environment = $3`,
      values: [source.provider, this.#account, environment],
    })
    return row?.source_id ?? -1
  }

  #previewed(made: MadeEvent, sourceId: number, record: ProviderRecord | null): Previewed {
    const { name, account, environment, source } = this.#source
    const identity = { name, provider: source.provider, account: this.#account, environment }
    const event: InboxEvent = {
      key: (this.#next -= 1n),
      sourceId,
      source: Object.freeze(identity),
      accountAllowed: this.#account === account || source.allowsAccount(this.#account),
      eventId: made.eventId,
      eventType: made.eventType,
      receivedAt: new Date(),
      occurredAt: made.occurredAt,
      synthetic: true,
      content: { readable: true, value: freezeJson(made.body) },
    }
    const undecided = { look: null, needsFacts: false, outcome: null, failure: null, orderId: null }
    return { made, event, record, ...undecided }
  }

  /** Events of one record may teach each other names, as those of one batch do. */
  async #settle(groups: readonly PreviewedGroup[]): Promise<void> {
    const { ledger, planning } = this.#parts
    const wanted = groups.flatMap(({ resolved }) => planning.namesOf(resolved))
    const bound = await ledger.lookupNames(this.#tx, wanted)
    const key = (name: Parameters<LedgerReads['nameKey']>[0]): string => ledger.nameKey(name)
    for (const group of groups) {
      const settled = planning.settleAll(group.resolved, bound, key)
      group.resolved = settled.resolved
      group.names = settled.names
    }
  }

  /** Folds every record on copies of its own; once more where a payment turns out to be another order's. */
  async #fold(
    groups: readonly PreviewedGroup[],
    orders: ReadonlyMap<string, OrderLedger>,
  ): Promise<void> {
    const none = new Map<string, string>()
    for (const group of groups) this.#foldGroup(group, orders, none)
    const named = groups.flatMap(({ events }) =>
      events.flatMap(({ outcome, event: { sourceId } }) =>
        outcome?.payment == null ? [] : [{ sourceId, id: outcome.payment.id }],
      ),
    )
    const payers = await this.#parts.ledger.payers(this.#tx, named)
    if (payers.size === 0) return
    for (const group of groups) this.#foldGroup(group, orders, payers)
  }

  #foldGroup(
    group: PreviewedGroup,
    orders: ReadonlyMap<string, OrderLedger>,
    payers: ReadonlyMap<string, string>,
  ): void {
    const { ledger, planning, outbox } = this.#parts
    const claims = group.resolved.filter((each): each is Claim => each.kind === 'claim')
    const foldable = claims.filter((each) => !isBeyond(each, orders.get(each.orderId)))
    const copies = new Map<string, OrderLedger>()
    for (const { orderId } of foldable) {
      const order = orders.get(orderId)
      if (order !== undefined && !copies.has(orderId)) copies.set(orderId, copyOf(order))
    }
    let decisions = 0n
    const { outcomes, failures, asks } = planning.foldBatch({
      claims: foldable,
      ledgers: copies,
      names: group.names,
      nameKey: (name) => ledger.nameKey(name),
      decisionId: () => (decisions += 1n),
      payers,
      derive: (orderId, name) => ledger.derive(orderId, name),
      outbox,
    })
    const outcomeOf = new Map(outcomes.map((outcome) => [outcome.event, outcome]))
    const failureOf = new Map(failures.map(({ claim, error }) => [claim.event, error]))
    const asking = new Set(asks.map((claim) => claim.event))
    group.events.forEach((each, index) => {
      const resolved = group.resolved[index]
      each.outcome = outcomeOf.get(each.event) ?? null
      each.failure = failureOf.get(each.event) ?? null
      each.needsFacts = asking.has(each.event) && each.look === null
      if (resolved?.kind === 'claim') each.orderId = resolved.orderId
      else if (resolved?.kind === 'failed') each.failure = resolved.error
      else if (resolved !== undefined) each.outcome = orderlessOutcome(resolved as Orderless, 0n)
    })
  }
}

/** An order in a state that only a newer version of its workflow knows is not for this process to judge. */
function isBeyond({ candidate: { workflow } }: Claim, order: OrderLedger | undefined): boolean {
  if (order === undefined || order.workflow !== workflow.name) return false
  if (workflow.states.has(order.state)) return false
  return ![...workflow.states.values()].some(({ renamedFrom }) => renamedFrom === order.state)
}

function claimedOrders({ resolved }: PreviewedGroup): string[] {
  return resolved.flatMap((each) => (each.kind === 'claim' ? [each.orderId] : []))
}

function copyOf(ledger: OrderLedger): OrderLedger {
  return {
    ...ledger,
    payments: [...ledger.payments],
    effects: [...ledger.effects],
    entitlements: [...ledger.entitlements],
    operations: [...ledger.operations],
  }
}
