/**
 * One record against the ledger, pure: which discrepancies it shows, under which kind, and which payments it
 * confirms. What the workflow says of the record's own events comes first: what it would absorb, both sides
 * know. What the record claims about money is held against rows only where the workflow has nothing to say.
 */
import { formatMoney } from '../core/money.ts'
import type { Figures } from '../workflow/decision.ts'
import { finding, type FindingKind } from '../workflow/finding-kinds.ts'
import type { OrderLedger } from '../workflow/order.ts'
import type {
  DisputeFact,
  Fact,
  PaymentFact,
  ProviderRecord,
  RefundFact,
} from '../workflow/records.ts'
import type { AccountSource } from './compare-context.ts'
import type { Discrepancy, PreviewOutcome } from './ports.ts'

/** A payment as the ledger has it. */
export interface RecordedPayment {
  readonly id: string
  readonly orderId: string
  readonly amount: bigint
  readonly currency: string
  readonly applied: boolean
}

/** What a record is held against. */
export interface LedgerView {
  readonly at: AccountSource
  /** Recorded payments of this source, by id. */
  readonly payments: ReadonlyMap<string, RecordedPayment>
  /** Orders that the record leads to. */
  readonly orders: ReadonlyMap<string, OrderLedger>
  /** Whether the state that an order is in entitles. */
  readonly entitles: (order: OrderLedger) => boolean
  /** Whether any state of its workflow does: an order of another one waits for no money. */
  readonly canEntitle: (order: OrderLedger) => boolean
  /** What the workflow would record for a payment now, whose figures differ; null: it does not say. */
  readonly renamed: ReadonlyMap<
    string,
    { readonly amount: bigint; readonly currency: string }
  > | null
}

/** What one record comes to. */
export interface JudgedRecord {
  readonly discrepancies: readonly Discrepancy[]
  /** Ids of payments that it says were paid. */
  readonly confirmed: readonly string[]
  /** Payments whose figures differ from the row's: to be judged again with what the workflow would record. */
  readonly differing: readonly string[]
}

/** Judges a record that is old enough. */
export function judgeFacts(
  record: ProviderRecord,
  facts: readonly Fact[],
  previews: readonly PreviewOutcome[],
  view: LedgerView,
): JudgedRecord {
  const judge = new FactsJudge(record, previews, view)
  for (const fact of facts) {
    if (fact.fact === 'payment') judge.payment(fact)
    else if (fact.fact === 'refund') judge.refund(fact)
    else judge.dispute(fact)
  }
  return judge
}

/** The ids under which a ledger may keep a payment. */
export function idsOf(fact: PaymentFact): readonly string[] {
  return [fact.id, ...(fact.aliases ?? [])]
}

class FactsJudge implements JudgedRecord {
  readonly discrepancies: Discrepancy[] = []
  readonly confirmed: string[] = []
  readonly differing: string[] = []
  readonly #record: ProviderRecord
  readonly #previews: readonly PreviewOutcome[]
  readonly #view: LedgerView
  /** Something would still change here, be contradicted anew, or throw: the inbox has it, or could not take it. */
  readonly #isMissing: boolean

  constructor(record: ProviderRecord, previews: readonly PreviewOutcome[], view: LedgerView) {
    this.#record = record
    this.#previews = previews
    this.#view = view
    this.#isMissing = previews.some(wouldTell)
  }

  payment(fact: PaymentFact): void {
    const { payments } = this.#view
    const row = idsOf(fact)
      .map((id) => payments.get(id))
      .find((each) => each !== undefined)
    if (fact.standing === 'paid') this.confirmed.push(...idsOf(fact))
    if (row?.applied === true) this.#recorded(fact, row)
    else if (fact.standing === 'paid' && fact.judgedBy === undefined) this.#unrecorded(fact, row)
  }

  /** The money is here, and counts. */
  #recorded(fact: PaymentFact, row: RecordedPayment): void {
    const figures = { order: row.orderId, payment: row.id }
    const about = this.#about('payment', row.id)
    if (fact.standing !== 'paid') {
      if (row.amount > 0n)
        this.#found('paid_here', about, row.orderId, {
          ...figures,
          here: formatMoney(row),
          there: fact.standing,
        })
      return
    }
    if (this.#isMissing) {
      this.#found('paid_there', about, row.orderId, { ...figures, ...this.#there(fact) })
      return
    }
    const isSame = row.amount === fact.amount && row.currency === fact.currency
    if (isSame || fact.amount === 0n) return
    this.differing.push(row.id)
    const named = this.#previews.length === 0 ? fact : this.#view.renamed?.get(row.id)
    if (named === undefined) return
    if (named.amount === row.amount && named.currency === row.currency) return
    this.#found('amount_differs', about, row.orderId, {
      ...figures,
      recorded: formatMoney(row),
      named: formatMoney(named),
    })
  }

  /** Money that was taken there and not given back, and does not count here. */
  #unrecorded(fact: PaymentFact, row: RecordedPayment | undefined): void {
    const about = this.#about('payment', fact.id)
    const orderId = row?.orderId ?? this.#orderId()
    const figures = { order: orderId, payment: fact.id, ...this.#there(fact) }
    if (this.#isMissing) return this.#found('paid_there', about, orderId, figures)
    if (row !== undefined || fact.amount === 0n || fact.refunded >= fact.amount) return
    if (this.#isOrderless()) {
      const waits = this.#previews.find(isOrderless)?.outcome?.wait?.description ?? ''
      const said = { payment: fact.id, ...this.#there(fact), waits_for: waits }
      return this.#found('payment_without_order', about, null, said)
    }
    const order = this.#passedOver()
    if (order === undefined || !this.#view.canEntitle(order) || this.#view.entitles(order)) return
    if (order.effects.length > 0 || order.payments.some(({ applied }) => applied)) return
    this.#found('paid_there', about, order.id, { ...figures, order: order.id, state: order.state })
  }

  refund(fact: RefundFact): void {
    const about = this.#about('refund', fact.id)
    const row = fact.payment === null ? undefined : this.#view.payments.get(fact.payment)
    const orderId = row?.orderId ?? this.#orderId()
    const figures = {
      order: orderId,
      refund: fact.id,
      payment: fact.payment,
      there: refundText(fact),
    }
    if (this.#isMissing) {
      const kind = fact.standing === 'failed' ? 'over_refunded' : 'refunded_there'
      return this.#found(kind, about, orderId, figures)
    }
    if (fact.standing !== 'succeeded') return
    const order = this.#entitledAnyway(fact.id, row)
    if (order === undefined || row === undefined || fact.amount < row.amount) return
    this.#found('refunded_there', about, order.id, { ...figures, state: order.state })
  }

  dispute(fact: DisputeFact): void {
    const about = this.#about('dispute', fact.id)
    const row = fact.payment === null ? undefined : this.#view.payments.get(fact.payment)
    const orderId = row?.orderId ?? this.#orderId()
    const { id: dispute, payment, standing: there } = fact
    const figures = { order: orderId, dispute, payment, there }
    if (this.#isMissing) return this.#found('dispute_unseen', about, orderId, figures)
    if (fact.standing === 'won') return
    const order = this.#entitledAnyway(fact.id, row)
    if (order === undefined) return
    this.#found('dispute_unseen', about, order.id, { ...figures, state: order.state })
  }

  /** The order of a payment that counts and entitles, where nothing here knows of what was done to the payment. */
  #entitledAnyway(id: string, row: RecordedPayment | undefined): OrderLedger | undefined {
    if (row?.applied !== true || !this.#isPassedOver()) return undefined
    const order = this.#view.orders.get(row.orderId)
    if (order === undefined || !this.#view.entitles(order)) return undefined
    return order.effects.some(({ reference }) => reference === id) ? undefined : order
  }

  /** Nothing is recorded of the record, and the workflow wants nothing of it. */
  #isPassedOver(): boolean {
    return this.#previews.every(({ outcome }) =>
      ['skipped', 'ignored'].includes(outcome?.kind ?? ''),
    )
  }

  #passedOver(): OrderLedger | undefined {
    if (!this.#isPassedOver()) return undefined
    const skipped = this.#previews.find(({ outcome }) => outcome?.kind === 'skipped')
    return this.#view.orders.get(skipped?.orderId ?? '')
  }

  /** Everything that somebody handles waits for an order that does not exist here. */
  #isOrderless(): boolean {
    const handled = this.#previews.filter((each) => !isForeign(each))
    return handled.length > 0 && handled.every(isOrderless)
  }

  #orderId(): string | null {
    const existing = this.#previews.find(({ orderExists }) => orderExists)
    const any = this.#previews.find(({ orderId }) => orderId !== null)
    return (existing ?? any)?.orderId ?? null
  }

  #there(fact: PaymentFact): Figures {
    const paid = `${formatMoney(fact)} paid`
    if (fact.refunded === 0n) return { there: paid }
    const { refunded: amount, currency } = fact
    return { there: `${paid}, ${formatMoney({ amount, currency })} given back` }
  }

  #about(what: string, id: string): string {
    return `${what}:${this.#view.at.sourceId}:${id}`
  }

  #found(kind: FindingKind, about: string, orderId: string | null, figures: Figures): void {
    const { kind: of, id, account } = this.#record
    this.discrepancies.push({
      draft: finding(kind, about, figures),
      source: this.#view.at.text,
      orderId,
      eventKey: null,
      sourceId: this.#view.at.sourceId,
      reference: { kind: of, id, account },
    })
  }
}

/** Whether the event, decided now, would say something that is not known here. */
export function wouldTell(preview: PreviewOutcome): boolean {
  const { outcome, failure, known, look, orderExists } = preview
  if (outcome === null) return failure !== null && !known
  if (outcome.kind === 'contradicted') return !known
  // an object that is as its order would begin still has no order here
  if (outcome.kind === 'absorbed')
    return look !== null && (look.hasNews === true || (outcome.orderId !== null && !orderExists))
  return ['fulfilled', 'moved', 'reversed'].includes(outcome.kind)
}

/** Nobody's here, or as a rule somebody else's: its handlers wait for a name only for a while. */
function isForeign({ outcome }: PreviewOutcome): boolean {
  if (outcome?.kind !== 'deferred') return outcome?.kind === 'ignored'
  const { wait } = outcome
  return wait !== null && wait.atDeadline === 'ignore' && wait.forMs !== null
}

function isOrderless({ outcome, orderExists }: PreviewOutcome): boolean {
  return outcome?.kind === 'deferred' && !orderExists
}

function refundText(fact: RefundFact): string {
  return `${formatMoney(fact)} ${fact.standing}`
}
