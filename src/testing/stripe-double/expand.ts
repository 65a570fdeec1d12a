/**
 * `expand[]`: ids in an answer become the objects that they name, and lists that Stripe leaves out by
 * default (a charge's refunds, an invoice's payments, a session's line items) are put in.
 */
import { invalidRequest } from './api-error.ts'
import { list } from './billing-objects.ts'
import { planId } from './checkout-verbs.ts'
import type { ObjectKind, ObjectKinds, StoredObject } from './object-kinds.ts'

type Fields = Record<string, unknown>

/** What an expansion reads: the state of one account, or a transaction that has not ended yet. */
export interface ExpandContext {
  find<K extends ObjectKind>(kind: K, id: string): ObjectKinds[K] | undefined
  findAny(id: string): StoredObject | undefined
  list<K extends ObjectKind>(kind: K): readonly ObjectKinds[K][]
}

/**
 * The answer with every path expanded; paths of a list begin with `data.`.
 *
 * @throws StripeApiError 400 when a path names nothing that can be expanded, or is deeper than four.
 */
export function expandPaths(
  context: ExpandContext,
  answer: object,
  paths: readonly string[],
): object {
  let expanded = answer as Fields
  for (const path of paths) {
    const steps = path.split('.')
    if (steps.length > 5)
      throw invalidRequest(`You cannot expand more than 4 levels of a property. Property: ${path}`)
    expanded = expandStep(context, expanded, steps, path)
  }
  return expanded
}

function expandStep(context: ExpandContext, target: Fields, steps: string[], path: string): Fields {
  const [step, ...rest] = steps
  if (step === undefined) return target
  const value = target[step] === undefined ? includedList(context, target, step) : target[step]
  if (value === undefined) {
    throw invalidRequest(`This property cannot be expanded (${path}).`, { param: 'expand' })
  }
  const next = Array.isArray(value)
    ? value.map((entry) => expandStep(context, entry as Fields, rest, path))
    : expandValue(context, value, rest, path)
  return { ...target, [step]: next }
}

function expandValue(
  context: ExpandContext,
  value: unknown,
  rest: string[],
  path: string,
): unknown {
  if (value === null) return null
  if (typeof value === 'object') return expandStep(context, value as Fields, rest, path)
  const object = typeof value === 'string' ? context.findAny(value) : undefined
  if (!object)
    throw invalidRequest(`This property cannot be expanded (${path}).`, { param: 'expand' })
  return expandStep(context, object as unknown as Fields, rest, path)
}

/** The lists that Stripe adds to an object only when asked. */
function includedList(context: ExpandContext, target: Fields, step: string): object | undefined {
  const id = String(target['id'])
  const wanted = `${String(target['object'])}.${step}`
  if (wanted === 'charge.refunds') {
    return list(`/v1/charges/${id}/refunds`, belonging(context, 'refund', 'charge', id))
  }
  if (wanted === 'invoice.payments') {
    return list('/v1/invoice_payments', belonging(context, 'invoice_payment', 'invoice', id))
  }
  if (wanted === 'checkout.session.line_items') return lineItems(context, id)
  return undefined
}

/** One walk for all objects of a page: a list of hundreds of charges asks for the refunds of each. */
const walked = new WeakMap<ExpandContext, Map<string, Map<unknown, object[]>>>()

/** The objects of a kind that name the id in this field, newest first. */
function belonging<K extends 'refund' | 'invoice_payment'>(
  context: ExpandContext,
  kind: K,
  field: keyof ObjectKinds[K] & string,
  id: string,
): ObjectKinds[K][] {
  const kinds = walked.get(context) ?? new Map<string, Map<unknown, object[]>>()
  walked.set(context, kinds)
  let byOwner = kinds.get(kind)
  if (!byOwner) {
    byOwner = new Map()
    for (const object of context.list(kind)) {
      const owned = byOwner.get(object[field])
      if (owned) owned.unshift(object)
      else byOwner.set(object[field], [object])
    }
    kinds.set(kind, byOwner)
  }
  return (byOwner.get(id) ?? []) as ObjectKinds[K][]
}

function lineItems(context: ExpandContext, id: string): object | undefined {
  const session = context.find('checkout.session', id)
  const plan = context.find('session_plan', planId(id))
  if (!session || !plan) return undefined
  const price: StoredObject | undefined =
    plan.price === null ? undefined : context.find('price', plan.price)
  const item = {
    id: `li_${id.slice(8, 31)}`,
    object: 'item',
    amount_discount: session.total_details?.amount_discount ?? 0,
    amount_subtotal: session.amount_subtotal,
    amount_tax: 0,
    amount_total: session.amount_total,
    currency: session.currency,
    description: plan.description,
    price: price ?? null,
    quantity: plan.quantity,
  }
  return list(`/v1/checkout/sessions/${id}/line_items`, [item])
}
