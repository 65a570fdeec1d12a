/**
 * Giving a payment back: by an operation of the outbox, once for ever, whichever finding asked for it. What
 * was given back already is the provider's to say.
 */
import { HookledgerError } from '../../core/errors.ts'
import { formatMoney } from '../../core/money.ts'
import type { Executor } from '../../postgres/executor.ts'
import type { OrderLedger } from '../../workflow/order.ts'
import type { Fact, PaymentFact } from '../../workflow/records.ts'
import type { Answers } from './ask.ts'
import type { RefundCall } from './draft.ts'
import { paymentsNamed, type FindingRow } from './finding.ts'
import type { PlannedRefund } from './plan.ts'
import type { AskedSource, RepairContext } from './ports.ts'

/** Payments that a finding may be about, the one that came last first. */
export function paymentCandidates(
  finding: FindingRow,
  facts: readonly Fact[],
  ledger: OrderLedger | null,
): string[] {
  const named = paymentsNamed(finding)
  const known = (ledger?.payments ?? []).map(({ id }) => id).reverse()
  const shown = facts.flatMap((fact) => (fact.fact === 'payment' ? [fact.id] : []))
  if (named.length === 0) return [...new Set([...known, ...shown])]
  const byTime = known.filter((id) => named.includes(id))
  return [...new Set([...named.filter((id) => !known.includes(id)), ...byTime])]
}

/** Where a source's refunds go: the destination of its name, else the only one of its kind. */
export function refundDestination(
  { destinations }: Pick<RepairContext, 'destinations'>,
  source: AskedSource | null,
): string | null {
  if (source?.records?.refundCall === undefined) return null
  const fitting = [...destinations]
    .filter(([, { kind }]) => kind === source.provider)
    .map(([name]) => name)
  if (fitting.includes(source.name)) return source.name
  const [only, ...others] = fitting
  return others.length === 0 ? (only ?? null) : null
}

/** A refund as it is planned, and as it is recorded. */
export interface MadeRefund {
  readonly planned: PlannedRefund
  readonly call: RefundCall
}

/**
 * The refund of a payment: all of it that was not given back yet.
 *
 * @throws HookledgerError HKL_REPAIR_IMPOSSIBLE saying why it cannot be given back
 */
export async function makeRefund(
  context: RepairContext,
  tx: Executor,
  finding: FindingRow,
  answers: Answers,
  payment: string,
): Promise<MadeRefund> {
  const { source } = answers
  const to = refundDestination(context, source)
  const refundCall = source?.records?.refundCall
  if (to === null || refundCall === undefined || finding.source === null) {
    throw impossible(
      'no destination gives payments of this source back: add one of its kind, named as the source',
    )
  }
  const fact = answers.facts.find(
    (each): each is PaymentFact =>
      each.fact === 'payment' && (each.id === payment || each.aliases?.includes(payment) === true),
  )
  if (fact === undefined) throw impossible(`the provider does not know payment ${payment}`)
  if (fact.standing !== 'paid')
    throw impossible(`payment ${payment} is ${fact.standing}: there is nothing to give back`)
  const amount = fact.amount - fact.refunded
  if (amount <= 0n)
    throw impossible(`payment ${payment} is given back already (${formatMoney(fact)})`)
  const { account, sourceId } = finding.source
  const key = `refund:${sourceId}:${payment}`
  const operationId = context.operationId(to, key)
  const [known] = await tx.query<{ state: string }>({
    text: `select state from ${context.db.schema}outbox_operations where operation_id = $1::uuid`,
    values: [operationId],
  })
  if (known !== undefined) {
    throw impossible(
      `payment ${payment} is being given back already, its operation is ${known.state}: hookledger outbox show ${operationId}`,
    )
  }
  const { currency } = fact
  // a connected account's payment is given back there
  const elsewhere = account === source?.account ? {} : { account }
  const body = refundCall({ id: payment, amount, currency, ...elsewhere })
  if (body === null || body === undefined)
    throw impossible(`payment ${payment} is not given back under this id: do it at the provider`)
  return {
    planned: { payment, account, amount, currency },
    call: { to, key, operationId, body },
  }
}

function impossible(message: string): HookledgerError {
  return new HookledgerError('HKL_REPAIR_IMPOSSIBLE', message)
}
