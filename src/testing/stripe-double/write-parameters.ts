/**
 * What the larger writing endpoints read from their parameters before any work begins.
 */
import { invalidRequest } from './api-error.ts'
import { createPrice, type CustomerInput } from './catalog-verbs.ts'
import type { Parameters } from './form-parameters.ts'
import type { StoredObject } from './object-kinds.ts'
import {
  defined,
  integer,
  nested,
  newMetadata,
  oneOf,
  requiredAmount,
  requiredText,
  text,
  textList,
} from './parameter-readers.ts'
import { createPaymentIntent, type CreatePaymentIntentInput } from './payment-verbs.ts'
import { refund } from './refund-verbs.ts'
import type { Transaction } from './transaction.ts'

/** The work of a request whose parameters have been accepted. */
export type Work = (tx: Transaction) => StoredObject

/** `POST /v1/refunds`. */
export function prepareRefund(parameters: Parameters): Work {
  const input = {
    metadata: newMetadata(parameters),
    ...defined({
      charge: text(parameters, 'charge'),
      paymentIntent: text(parameters, 'payment_intent'),
      amount: parameters['amount'] === undefined ? undefined : requiredAmount(parameters, 'amount'),
      reason: oneOf(parameters, 'reason', ['duplicate', 'fraudulent', 'requested_by_customer']),
    }),
  }
  if (input.charge === undefined && input.paymentIntent === undefined) {
    throw invalidRequest(
      'One of the following params should be provided for this request: payment_intent or charge.',
    )
  }
  return (tx) => refund(tx, input)
}

/** `POST /v1/payment_intents`. */
export function preparePaymentIntent(parameters: Parameters): Work {
  const types = textList(parameters, 'payment_method_types') ?? ['card']
  const paymentMethodType = types[0] === 'us_bank_account' ? 'us_bank_account' : 'card'
  const input: CreatePaymentIntentInput = {
    amount: requiredAmount(parameters, 'amount'),
    currency: requiredText(parameters, 'currency').toLowerCase(),
    metadata: newMetadata(parameters),
    paymentMethodType,
    ...defined({
      customer: text(parameters, 'customer'),
      description: text(parameters, 'description'),
      receiptEmail: text(parameters, 'receipt_email'),
    }),
  }
  return (tx) => createPaymentIntent(tx, input)
}

/** What a customer is known by, of a new one or a change. */
export function readCustomer(parameters: Parameters): Omit<CustomerInput, 'metadata'> {
  return defined({
    email: text(parameters, 'email'),
    name: text(parameters, 'name'),
    description: text(parameters, 'description'),
  })
}

/** `POST /v1/prices`. */
export function preparePrice(parameters: Parameters): Work {
  requiredText(parameters, 'unit_amount')
  const input = {
    product: requiredText(parameters, 'product'),
    currency: requiredText(parameters, 'currency').toLowerCase(),
    unitAmount: integer(parameters, 'unit_amount')!,
    metadata: newMetadata(parameters),
    ...defined({
      interval: oneOf(nested(parameters, 'recurring'), 'interval', [
        'day',
        'week',
        'month',
        'year',
      ]),
      lookupKey: text(parameters, 'lookup_key'),
      nickname: text(parameters, 'nickname'),
    }),
  }
  return (tx) => createPrice(tx, input)
}
