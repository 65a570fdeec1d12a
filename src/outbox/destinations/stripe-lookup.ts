/**
 * Finds what an operation made at Stripe by the id that it carries in its metadata. Present is proven by
 * one object; absent only by the complete list of everything that it could be.
 */
import type StripeClient from 'stripe'
import type { LookupOutcome, OutgoingRequest } from '../destination.ts'
import { pickReceipt } from './receipt.ts'
import type { StoredStripeCall } from './stripe-call.ts'
import { stripeMethod } from './stripe-method.ts'
import { operationMetadata, stripeFinding, type StripeFinding } from './stripe-objects.ts'

/** What is kept of an object in the ledger. */
export const receiptFields: readonly string[] = ['id', 'object', 'status', 'amount', 'currency']

/** Most objects that a lookup reads, in pages of 100. */
const mostPages = 50
/** How much earlier than our own record Stripe's clock may have put the object. */
const clockSlackSeconds = 3600

interface ListPage {
  readonly data: readonly { readonly id: string; readonly metadata?: unknown }[]
  readonly has_more: boolean
}

/** Looks for the operation's object; rejects as the SDK does. */
export async function lookUpStripe(
  client: StripeClient,
  stored: StoredStripeCall,
  request: OutgoingRequest,
  signal: AbortSignal,
): Promise<LookupOutcome> {
  const finding = stripeFinding(stored.call)
  if (finding === undefined) {
    return { kind: 'no_answer', error: `what ${stored.call} did cannot be looked up` }
  }
  const list = stripeMethod(client, finding.list)
  const filter = listFilter(finding, stored, request.recordedAt)
  const options = requestOptions(stored)
  let after: string | undefined
  for (let page = 0; page < mostPages; page++) {
    if (signal.aborted) return { kind: 'no_answer', error: 'no answer in time' }
    const params = { ...filter, limit: 100, ...(after !== undefined && { starting_after: after }) }
    const found = (await list(...stored.ids, params, options)) as ListPage
    const made = found.data.find((object) => operationOf(object.metadata) === request.operationId)
    if (made !== undefined) return { kind: 'present', receipt: pickReceipt(made, receiptFields) }
    after = found.data.at(-1)?.id
    if (!found.has_more) return notFound(finding)
    if (after === undefined) break
  }
  return {
    kind: 'no_answer',
    error: `there are more than ${mostPages * 100} objects to look through`,
  }
}

function notFound({ isComplete, list }: StripeFinding): LookupOutcome {
  return isComplete
    ? { kind: 'absent' }
    : { kind: 'no_answer', error: `${list} does not show what was deleted` }
}

function operationOf(metadata: unknown): unknown {
  return typeof metadata === 'object' && metadata !== null
    ? (metadata as Record<string, unknown>)[operationMetadata]
    : undefined
}

function listFilter(
  finding: StripeFinding,
  { params }: StoredStripeCall,
  recordedAt: Date | undefined,
): Readonly<Record<string, unknown>> {
  const filter: Record<string, unknown> = { ...finding.always }
  for (const name of finding.filters) {
    if (typeof params[name] === 'string') filter[name] = params[name]
  }
  if (finding.byTime && recordedAt !== undefined) {
    filter['created'] = { gte: Math.floor(recordedAt.getTime() / 1000) - clockSlackSeconds }
  }
  return filter
}

/** The account and API version that the call was recorded with. */
export function requestOptions({ account, apiVersion }: StoredStripeCall): {
  stripeAccount?: string
  apiVersion?: string
} {
  return {
    ...(account !== null && { stripeAccount: account }),
    ...(apiVersion !== null && { apiVersion }),
  }
}
