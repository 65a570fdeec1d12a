/**
 * Looks at every open finding again that a provider's records can tell about, whatever window it is from:
 * where both sides agree now, it is over.
 */
import type { OrderLedger } from '../workflow/order.ts'
import type { PaymentFact } from '../workflow/records.ts'
import type { AccountSource, CompareContext } from './compare-context.ts'
import type { Rechecked } from './findings.ts'
import type { Judge } from './judge.ts'
import { idsOf } from './judge-facts.ts'
import { entitlingIn } from './judge-records.ts'
import { openFindings, type OpenFinding } from './open-findings.ts'

/** Kinds that name the record that they compare. */
const byReference: readonly string[] = [
  'paid_there',
  'paid_here',
  'refunded_there',
  'over_refunded',
  'dispute_unseen',
  'payment_without_order',
  'amount_differs',
  'mirror_differs',
]

/** Kinds about money that is over once it was given back. */
const byMoneyBack: readonly string[] = [
  'paid_twice',
  'underpaid',
  'currency_differs',
  'not_accepted',
  'overpaid',
]

/** What one finding came to: `unknown` where nobody can tell now. */
export type Verdict = 'agrees' | 'differs' | 'unknown'

const agreed = 'both sides say the same'
const fit = 'the provider delivers what is handled'
const givenBack = 'the money was given back'

/** Looks again at what this source can tell of. What differs anew is kept by the judge, to be written. */
export async function recheckSource(
  ctx: CompareContext,
  judge: Judge,
  asked: { readonly endpoints: boolean },
): Promise<Rechecked> {
  const accounts = new Map((await judge.accounts()).map((at) => [at.sourceId, at]))
  const over: { id: string; because: string }[] = []
  const differing: string[] = []
  for await (const page of openFindings(ctx.db, [...byReference, ...byMoneyBack])) {
    for (const each of page) {
      const at = accounts.get(each.sourceId ?? 0)
      if (at === undefined || judge.found.has(each.id)) continue
      const verdict = await recheckFinding(ctx, judge, at, each)
      if (verdict === 'agrees')
        over.push({ id: each.id, because: byMoneyBack.includes(each.kind) ? givenBack : agreed })
      // what was found anew is written with what it says now
      else if (verdict === 'differs' && !judge.found.has(each.id)) differing.push(each.id)
    }
  }
  if (!asked.endpoints) return { agreed: over, differing }
  for await (const page of openFindings(ctx.db, ['endpoint_unfit']))
    for (const { id, sourceId } of page)
      if (accounts.has(sourceId ?? 0) && !judge.found.has(id)) over.push({ id, because: fit })
  return { agreed: over, differing }
}

/** Looks at one finding again. */
export async function recheckFinding(
  ctx: CompareContext,
  judge: Judge,
  at: AccountSource,
  found: OpenFinding,
): Promise<Verdict> {
  if (byMoneyBack.includes(found.kind)) return recheckMoney(ctx, judge, at, found)
  if (!byReference.includes(found.kind)) return 'unknown'
  if (found.kind === 'paid_here' && !('payment' in found.evidence))
    return recheckUnpaid(ctx, judge, at, found)
  // a refund that deciding refused is no payment that could be asked for instead
  const payment = found.kind === 'amount_differs' ? textOf(found.evidence['payment']) : null
  const reference =
    found.reference ??
    (payment === null
      ? null
      : (at.source.source.records?.referenceOf('payment', payment, at.account) ?? null))
  if (reference === null) return 'unknown'
  const { verdict } = await judge.reference(reference)
  if (verdict === 'young') return 'unknown'
  if (judge.found.has(found.id)) return 'differs'
  // without a record of its own it says what deciding found: only what it is about can be over
  return found.reference !== null || verdict === 'agrees' ? 'agrees' : 'unknown'
}

/** An order that entitled and that nobody paid for. */
async function recheckUnpaid(
  ctx: CompareContext,
  judge: Judge,
  at: AccountSource,
  { id, orderId }: OpenFinding,
): Promise<Verdict> {
  const order = await readOrder(ctx, orderId)
  if (order === undefined) return 'agrees'
  const isPaid = order.payments.some(({ applied }) => applied)
  if (isPaid || !entitlingIn(ctx.registry.workflows)(order)) return 'agrees'
  const unpaid = { sourceId: at.sourceId, orderId: order.id, state: order.state }
  judge.keep(await judge.unpaidOrder(at, unpaid))
  return judge.found.has(id) ? 'differs' : 'agrees'
}

/** Money that should not be here: is it gone again, or does it count by now? */
async function recheckMoney(
  ctx: CompareContext,
  judge: Judge,
  at: AccountSource,
  { kind, orderId, evidence }: OpenFinding,
): Promise<Verdict> {
  const order = await readOrder(ctx, orderId)
  if (kind === 'paid_twice') {
    const named = textOf(evidence['payments'])?.split(', ')
    const applied = (order?.payments ?? []).flatMap(({ id, applied: counts, sourceId }) =>
      counts && sourceId === at.sourceId ? [id] : [],
    )
    return recheckTwice(judge, at, [...new Set([...(named ?? []), ...applied])])
  }
  const payment = textOf(evidence['payment'])
  if (payment === null) return 'unknown'
  const row = order?.payments.find(({ id, sourceId }) => id === payment && sourceId === at.sourceId)
  if (kind !== 'overpaid' && row?.applied === true) return 'agrees'
  const fact = await factOf(judge, at, payment)
  if (fact === null || fact.standing !== 'paid') return 'unknown'
  if (kind !== 'overpaid') return fact.refunded >= fact.amount ? 'agrees' : 'differs'
  const expected = order?.expected ?? null
  if (expected === null || expected.currency !== fact.currency) return 'unknown'
  return fact.amount - fact.refunded <= expected.amount ? 'agrees' : 'differs'
}

/** At most one of the payments may still be there. */
async function recheckTwice(
  judge: Judge,
  at: AccountSource,
  payments: readonly string[],
): Promise<Verdict> {
  if (payments.length < 2) return 'unknown'
  let standing = 0
  for (const payment of payments) {
    const fact = await factOf(judge, at, payment)
    if (fact === null) return 'unknown'
    if (fact.standing === 'paid' && fact.refunded < fact.amount) standing++
  }
  return standing > 1 ? 'differs' : 'agrees'
}

async function factOf(
  judge: Judge,
  { source: { source }, account }: AccountSource,
  payment: string,
): Promise<PaymentFact | null> {
  const reference = source.records?.referenceOf('payment', payment, account) ?? null
  if (reference === null) return null
  const { record, verdict } = await judge.reference(reference)
  if (record === null || verdict === 'young') return null
  const facts = source.records?.factsOf(record) ?? []
  const payments = facts.flatMap((fact) => (fact.fact === 'payment' ? [fact] : []))
  return payments.find((fact) => idsOf(fact).includes(payment)) ?? null
}

async function readOrder(
  ctx: CompareContext,
  orderId: string | null,
): Promise<OrderLedger | undefined> {
  if (orderId === null) return undefined
  const orders = await ctx.db.transaction((tx) => ctx.ledger.readOrders(tx, [orderId]))
  return orders.get(orderId)
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}
