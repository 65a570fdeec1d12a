/**
 * Since when a subscription is unpaid, from the invoices that came after the last paid one: the period of the
 * oldest of them. A subscription's own period moves on while nobody pays, and says nothing of an invoice in its
 * middle; the invoices do.
 */
import type Stripe from 'stripe'
import { garbage, pagesOf, type PageParameters } from './pages.ts'

const path = 'GET /v1/invoices'

/**
 * The start of the oldest unpaid period, in Unix seconds; null where its newest invoice is paid, or it has none.
 *
 * @throws the SDK's error where Stripe did not answer, and RecordsError where the answer cannot be true
 */
export async function unpaidSince(api: Stripe, subscription: string): Promise<number | null> {
  const ask = (page: PageParameters) => api.invoices.list({ subscription, ...page })
  let oldest: Stripe.Invoice | null = null
  for await (const invoices of pagesOf({ path, ask })) {
    // the newest come first
    for (const invoice of invoices) {
      if (invoice.status === 'paid' && invoice.total > 0) return startOf(oldest)
      if (invoice.status === 'open' || invoice.status === 'uncollectible') oldest = invoice
    }
  }
  return startOf(oldest)
}

/** What is read of an invoice's lines: older ones may have none. */
interface BilledLike {
  readonly lines?: {
    readonly data?: readonly ({
      readonly period?: { readonly start?: unknown; readonly end?: unknown } | null
    } | null)[]
  } | null
}

/** The period that an invoice opens: the one that it bills, or follows where it bills what was used before. */
function startOf(invoice: Stripe.Invoice | null): number | null {
  if (invoice === null) return null
  const { created } = invoice
  if (!isMoment(created)) throw garbage(path, 'an invoice has no moment')
  const lines = (invoice as BilledLike).lines?.data
  const starts = (Array.isArray(lines) ? lines : []).flatMap((line) => {
    const { start, end } = line?.period ?? {}
    return [isMoment(end) && end <= created ? end : start].filter(isMoment)
  })
  return starts.length === 0 ? created : Math.max(...starts)
}

function isMoment(seconds: unknown): seconds is number {
  return Number.isSafeInteger(seconds)
}
