/**
 * The parameters of `POST /v1/checkout/sessions`, of which only one-time payments are simulated.
 */
import { invalidRequest } from './api-error.ts'
import type { CreateSessionInput } from './checkout-verbs.ts'
import type { Parameters } from './form-parameters.ts'
import {
  defined,
  integer,
  nested,
  nestedList,
  newMetadata,
  requiredText,
  text,
} from './parameter-readers.ts'
import type { Transaction } from './transaction.ts'

interface Line {
  amount: number
  currency: string
  quantity: number
  description?: string
  price?: string
}

/**
 * What the session sells. Amounts come from the prices, which is why this reads the state.
 *
 * @throws StripeApiError 400 for parameters that are missing or of the wrong kind.
 */
export function readSession(tx: Transaction, parameters: Parameters): CreateSessionInput {
  if (text(parameters, 'mode') !== 'payment') {
    throw invalidRequest('The simulated provider opens sessions with mode=payment only.', {
      param: 'mode',
    })
  }
  const lines = nestedList(parameters, 'line_items').map((line) => readLine(tx, line))
  const [first, second] = lines
  if (!first)
    throw invalidRequest('Missing required param: line_items.', {
      code: 'parameter_missing',
      param: 'line_items',
    })
  const intent = nested(parameters, 'payment_intent_data')
  const expiresAt = integer(parameters, 'expires_at')
  return {
    amount: lines.reduce((sum, line) => sum + line.amount * line.quantity, 0),
    currency: first.currency,
    metadata: newMetadata(parameters),
    paymentIntentMetadata: newMetadata(intent),
    quantity: first.quantity,
    ...defined({
      description: text(intent, 'description') ?? first.description,
      price: second ? undefined : first.price,
      expiresInSeconds: expiresAt === undefined ? undefined : expiresAt - tx.now,
      clientReferenceId: text(parameters, 'client_reference_id'),
      customer: text(parameters, 'customer'),
      customerEmail: text(parameters, 'customer_email'),
      successUrl: text(parameters, 'success_url'),
    }),
  }
}

function readLine(tx: Transaction, line: Parameters): Line {
  const quantity = integer(line, 'quantity') ?? 1
  const id = text(line, 'price')
  if (id !== undefined) {
    const price = tx.get('price', id, 'line_items[0][price]')
    return { amount: price.unit_amount ?? 0, currency: price.currency, quantity, price: id }
  }
  const data = nested(line, 'price_data')
  requiredText(data, 'unit_amount')
  return {
    amount: integer(data, 'unit_amount')!,
    currency: requiredText(data, 'currency').toLowerCase(),
    quantity,
    description: requiredText(nested(data, 'product_data'), 'name'),
  }
}
