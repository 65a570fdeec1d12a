/**
 * Since when a subscription is unpaid, from the invoices that came after the last paid one: the period of the
 * oldest of them. A subscription's own period moves on while nobody pays, and says nothing of an invoice in its
 * middle; the invoices do.
 */
import type Stripe from 'stripe'
import { RecordsError } from '../../workflow/records.ts'

/** More pages than anybody leaves unpaid: past it the list does not end. */
const mostPages = 20

/**
 * The start of the oldest unpaid period, in Unix seconds; null where its newest invoice is paid, or it has none.
 *
 * @throws the SDK's error where Stripe did not answer, and RecordsError where the answer cannot be true
 */
export async function unpaidSince(api: Stripe, subscription: string): Promise<number | null> {
  let oldest: Stripe.Invoice | null = null
  let after: string | undefined
  for (let page = 0; page < mostPages; page++) {
    const { data, has_more: hasMore } = await api.invoices.list({
      subscription,
      limit: 100,
      ...(after !== undefined && { starting_after: after }),
    })
    if (!Array.isArray(data)) throw garbage('it is no list')
    // the newest come first
    for (const invoice of data) {
      if (invoice.status === 'paid' && invoice.total > 0) return startOf(oldest)
      if (invoice.status === 'open' || invoice.status === 'uncollectible') oldest = invoice
    }
    after = data.at(-1)?.id
    if (!hasMore) return startOf(oldest)
    if (after === undefined) break
  }
  throw garbage('the list does not end')
}

/** The period that an invoice opens: the one that it bills, or follows where it bills what was used before. */
function startOf(invoice: Stripe.Invoice | null): number | null {
  if (invoice === null) return null
  const { created, lines } = invoice
  if (!Number.isSafeInteger(created)) throw garbage('an invoice has no moment')
  const starts = lines.data.map(({ period: { start, end } }) => (end <= created ? end : start))
  const known = starts.filter((each) => Number.isSafeInteger(each))
  return known.length === 0 ? created : Math.max(...known)
}

function garbage(what: string): RecordsError {
  return new RecordsError('garbage', `Stripe, GET /v1/invoices: ${what}`)
}
