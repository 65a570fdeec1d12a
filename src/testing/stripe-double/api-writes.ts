/**
 * The writing side of the API. Each endpoint first reads its parameters (a mistake is refused and not
 * remembered), then does its work in a transaction (whose answer is remembered under the key).
 */
import { cancelSubscription } from './billing-verbs.ts'
import { createCustomer, createProduct, updateCustomer } from './catalog-verbs.ts'
import { createSession, expireSession } from './checkout-verbs.ts'
import { closeDispute } from './dispute-verbs.ts'
import type { Parameters } from './form-parameters.ts'
import { payInvoice, voidInvoice } from './invoice-verbs.ts'
import {
  allowOnly,
  defined,
  metadata,
  newMetadata,
  requiredText,
  text,
} from './parameter-readers.ts'
import { cancelPaymentIntent, updatePaymentIntent } from './payment-verbs.ts'
import { cancelRefund, updateRefund } from './refund-verbs.ts'
import { readSession } from './session-parameters.ts'
import { resumeSubscription } from './subscription-changes.ts'
import { prepareSubscription, prepareSubscriptionChange } from './subscription-parameters.ts'
import {
  preparePaymentIntent,
  preparePrice,
  prepareRefund,
  readCustomer,
  type Work,
} from './write-parameters.ts'

interface WriteEndpoint {
  method: 'POST' | 'DELETE'
  /** `:id` stands for an id. */
  path: string
  parameters: readonly string[]
  prepare(parameters: Parameters, id: string): Work
}

const endpoints: readonly WriteEndpoint[] = [
  {
    method: 'POST',
    path: '/v1/refunds',
    parameters: ['amount', 'charge', 'metadata', 'payment_intent', 'reason'],
    prepare: prepareRefund,
  },
  {
    method: 'POST',
    path: '/v1/refunds/:id',
    parameters: ['metadata'],
    prepare: (parameters, id) => {
      const update = metadata(parameters) ?? {}
      return (tx) => updateRefund(tx, id, update)
    },
  },
  {
    method: 'POST',
    path: '/v1/refunds/:id/cancel',
    parameters: [],
    prepare: (_, id) => (tx) => cancelRefund(tx, id),
  },
  {
    method: 'POST',
    path: '/v1/disputes/:id/close',
    parameters: [],
    prepare: (_, id) => (tx) => closeDispute(tx, id, 'lost'),
  },
  {
    method: 'POST',
    path: '/v1/checkout/sessions',
    parameters: [
      'cancel_url',
      'client_reference_id',
      'customer',
      'customer_email',
      'expires_at',
      'line_items',
      'metadata',
      'mode',
      'payment_intent_data',
      'success_url',
    ],
    prepare: (parameters) => (tx) => createSession(tx, readSession(tx, parameters)),
  },
  {
    method: 'POST',
    path: '/v1/checkout/sessions/:id/expire',
    parameters: [],
    prepare: (_, id) => (tx) => expireSession(tx, id),
  },
  {
    method: 'POST',
    path: '/v1/payment_intents',
    parameters: [
      'amount',
      'automatic_payment_methods',
      'currency',
      'customer',
      'description',
      'metadata',
      'payment_method_types',
      'receipt_email',
    ],
    prepare: preparePaymentIntent,
  },
  {
    method: 'POST',
    path: '/v1/payment_intents/:id',
    parameters: ['description', 'metadata'],
    prepare: (parameters, id) => {
      const update = metadata(parameters)
      const fields = defined({ metadata: update, description: text(parameters, 'description') })
      return (tx) => updatePaymentIntent(tx, id, fields)
    },
  },
  {
    method: 'POST',
    path: '/v1/payment_intents/:id/cancel',
    parameters: ['cancellation_reason'],
    prepare: (_, id) => (tx) => cancelPaymentIntent(tx, id),
  },
  {
    method: 'POST',
    path: '/v1/customers',
    parameters: ['description', 'email', 'metadata', 'name'],
    prepare: (parameters) => {
      const input = { ...readCustomer(parameters), metadata: newMetadata(parameters) }
      return (tx) => createCustomer(tx, input)
    },
  },
  {
    method: 'POST',
    path: '/v1/customers/:id',
    parameters: ['description', 'email', 'metadata', 'name'],
    prepare: (parameters, id) => {
      const update = metadata(parameters)
      const input = { ...readCustomer(parameters), ...defined({ metadata: update }) }
      return (tx) => updateCustomer(tx, id, input)
    },
  },
  {
    method: 'POST',
    path: '/v1/products',
    parameters: ['metadata', 'name'],
    prepare: (parameters) => {
      const input = { name: requiredText(parameters, 'name'), metadata: newMetadata(parameters) }
      return (tx) => createProduct(tx, input)
    },
  },
  {
    method: 'POST',
    path: '/v1/prices',
    parameters: [
      'currency',
      'lookup_key',
      'metadata',
      'nickname',
      'product',
      'recurring',
      'unit_amount',
    ],
    prepare: preparePrice,
  },
  {
    method: 'POST',
    path: '/v1/subscriptions',
    parameters: ['customer', 'items', 'metadata', 'trial_period_days'],
    prepare: prepareSubscription,
  },
  {
    method: 'POST',
    path: '/v1/subscriptions/:id',
    parameters: ['cancel_at_period_end', 'items', 'metadata', 'proration_behavior'],
    prepare: prepareSubscriptionChange,
  },
  {
    method: 'POST',
    path: '/v1/subscriptions/:id/resume',
    parameters: ['billing_cycle_anchor'],
    prepare: (_, id) => (tx) => resumeSubscription(tx, id),
  },
  {
    method: 'DELETE',
    path: '/v1/subscriptions/:id',
    parameters: [],
    prepare: (_, id) => (tx) => cancelSubscription(tx, id),
  },
  {
    method: 'POST',
    path: '/v1/invoices/:id/pay',
    parameters: [],
    prepare: (_, id) => (tx) => payInvoice(tx, id),
  },
  {
    method: 'POST',
    path: '/v1/invoices/:id/void',
    parameters: [],
    prepare: (_, id) => (tx) => voidInvoice(tx, id),
  },
]

/**
 * Reads the parameters of a writing request; undefined when there is no such endpoint.
 *
 * @throws StripeApiError 400 for parameters that are unknown, missing or of the wrong kind.
 */
export function prepareWrite(
  method: string,
  path: string,
  parameters: Parameters,
): Work | undefined {
  for (const endpoint of endpoints) {
    if (endpoint.method !== method) continue
    const id = matchPath(endpoint.path, path)
    if (id === undefined) continue
    allowOnly(parameters, endpoint.parameters)
    return endpoint.prepare(parameters, id)
  }
  return undefined
}

/** The id in the path, empty when the template has none; undefined when it does not match. */
function matchPath(template: string, path: string): string | undefined {
  const wanted = template.split('/')
  const given = path.split('/')
  if (wanted.length !== given.length) return undefined
  let id = ''
  for (const [at, part] of wanted.entries()) {
    if (part === ':id') id = decodeURIComponent(given[at]!)
    else if (part !== given[at]) return undefined
  }
  return id
}
