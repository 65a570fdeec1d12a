/** A plan in words, a line each: what would change, from which to which, and what it does not touch. */
import { formatMoney } from '../../core/money.ts'
import type { LedgerEffect } from '../../workflow/order.ts'
import type { FindingRow } from './finding.ts'
import { changesLedger, type PlanContent } from './plan.ts'

/** The lines. */
export function summaryOf(
  plan: PlanContent,
  finding: FindingRow,
  notes: readonly string[],
  isPermitted: boolean,
): string[] {
  return [
    ...recordLines(plan),
    ...orderLines(plan, isPermitted),
    ...plan.payments.map(
      (each) => `${each.known ? 'applies' : 'records'} payment ${each.id} of ${formatMoney(each)}`,
    ),
    ...plan.voided.map(
      ({ id }) => `payment ${id} no longer counts: the provider has no such money`,
    ),
    ...plan.effects.map((each) => `records effect ${effectText(each)}`),
    ...entitlementLines(plan),
    ...operationLines(plan),
    ...(changesLedger(plan) || plan.refund !== null
      ? []
      : [`changes nothing, and says that ${finding.kind} is as it should be`]),
    ...notes,
  ]
}

function recordLines({ records }: PlanContent): string[] {
  return records.map(
    ({ reference, says }) =>
      `the provider says of ${reference.kind} ${reference.id}: ${says === 'gone' ? 'there is none' : says}`,
  )
}

function orderLines({ order }: PlanContent, isPermitted: boolean): string[] {
  if (order === null) return []
  const { id, from, to, decided, workflow } = order
  if (from === null) return [`opens order ${id} of workflow ${workflow}, which is ${to}`]
  const moved = from === to ? `order ${id} stays ${to}` : `order ${id} goes from ${from} to ${to}`
  const changed =
    decided !== null && decided !== from
      ? [`its row says ${from}, its decisions lead to ${decided}: somebody changed the row`]
      : []
  const forced =
    isPermitted || (decided !== null && decided === to)
      ? []
      : [
          `${from} to ${to} is no transition of workflow ${workflow}: it is made because a person says so`,
        ]
  const { subject } = order
  const whose =
    subject === null
      ? []
      : [
          `it is for ${subject.to ?? 'nobody'}${subject.from === null ? '' : `, not ${subject.from}`}`,
        ]
  const { expected } = order
  const figures = [expected?.to, expected?.from].map((each) =>
    each == null ? 'nothing' : formatMoney(each),
  )
  const price = expected === null ? [] : [`it expects ${figures[0]}, not ${figures[1]}`]
  return [moved, ...changed, ...forced, ...whose, ...price]
}

function effectText({ type, reference, amount, currency }: LedgerEffect): string {
  const name = reference === '' ? type : `${type} ${reference}`
  return amount === null || currency === null
    ? name
    : `${name}, ${formatMoney({ amount, currency })}`
}

function entitlementLines({ entitle, granted, revoked }: PlanContent): string[] {
  if (entitle === null) return []
  const whole = entitle
    .filter((row) => row.active)
    .map(
      (row) =>
        `${row.subject} ${row.entitlement}${row.quantity === 1 ? '' : ` ×${row.quantity}`}${row.validUntil === null ? '' : ` until ${row.validUntil.toISOString()}`}`,
    )
  return [
    ...granted.map((pair) => `grants ${pair}`),
    ...revoked.map((pair) => `revokes ${pair}`),
    `the order then entitles to ${whole.length === 0 ? 'nothing' : whole.join(', ')}`,
  ]
}

function operationLines({ operations, refund }: PlanContent): string[] {
  return operations.map((each) => {
    if (each.effect !== null)
      return `sends ${each.name} to ${each.destination}, because of effect ${each.effect.type}`
    return refund === null
      ? `sends ${each.name} to ${each.destination}`
      : `gives ${formatMoney(refund)} of payment ${refund.payment} back, through ${each.destination}`
  })
}
