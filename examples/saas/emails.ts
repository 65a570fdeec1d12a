/** What organizations are told: a receipt for each invoice, and that money of one is on its way back. */
import { formatMoney, wholeUnits, type Money } from 'hookledger'

/** Gets what cannot reach a customer whose address nobody knows. */
const ourselves = 'billing@saas.example'

/** An invoice is paid, and these are its credits. */
export function receiptEmail(
  order: string,
  customer: string | null,
  org: string,
  invoice: string,
  paid: Money,
) {
  const [to, amount] = [customer ?? ourselves, formatMoney(paid)]
  const credits = wholeUnits(paid).toString()
  return {
    to: 'email',
    body: { to, template: 'receipt', order, org, invoice, amount, credits },
  } as const
}

/** Money of an invoice goes back, and its credits with it. */
export function refundEmail(
  order: string,
  org: string,
  invoice: string,
  refund: string,
  refunded: Money,
) {
  const [to, amount] = [ourselves, formatMoney(refunded)]
  return {
    to: 'email',
    body: { to, template: 'credits_taken', order, org, invoice, refund, amount },
  } as const
}
