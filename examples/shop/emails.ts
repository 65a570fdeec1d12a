/**
 * The emails of the shop: one for the license, one for each refund, recorded in the commit of the effect
 * that they tell of.
 *
 * Neither has a `while`, for no state of the order makes one of them wrong for good. An order that is disputed
 * or refunded now can be paid again later (the dispute is won, the refund fails); its license is not
 * given a second time then, so an email canceled meanwhile would never come. And whether one refund of
 * several stands is not a state of the order at all.
 */
import { formatMoney, type Money } from 'hookledger'

/** Gets what cannot reach a buyer whose address nobody knows; the finding says which order it is. */
const ourselves = 'orders@shop.example'

/** The license is there: to the buyer, or to the address that was typed where the shop knows only a user. */
export function licenseEmail(order: string, buyer: string | undefined, typed: string | undefined) {
  const to = addressOf(buyer) ?? addressOf(typed) ?? ourselves
  return { to: 'email', body: { to, template: 'license', order, bought: 'License' } } as const
}

/** Money is on its way back. */
export function refundEmail(
  order: string,
  buyer: string | undefined,
  refund: string,
  refunded: Money,
) {
  const to = addressOf(buyer) ?? ourselves
  const amount = formatMoney(refunded)
  return {
    to: 'email',
    body: { to, template: 'refund', order, bought: 'License', refund, amount },
  } as const
}

/** The address of a subject such as `email:ada@example.com`. */
function addressOf(subject: string | undefined): string | undefined {
  return subject?.startsWith('email:') ? subject.slice('email:'.length) : undefined
}
