/**
 * What the endpoints of subscriptions read from their parameters before any work begins.
 */
import { invalidRequest } from './api-error.ts'
import { createSubscription } from './billing-verbs.ts'
import type { Parameters } from './form-parameters.ts'
import {
  allowOnly,
  defined,
  flag,
  integer,
  metadata,
  nestedList,
  newMetadata,
  oneOf,
  requiredText,
  text,
} from './parameter-readers.ts'
import { cancelAtPeriodEnd, changeSubscription, type ChangeInput } from './subscription-changes.ts'
import type { Work } from './write-parameters.ts'

/** `POST /v1/subscriptions`. */
export function prepareSubscription(parameters: Parameters): Work {
  const [first, ...more] = nestedList(parameters, 'items').map((item) => {
    allowOnly(item, ['price', 'quantity'])
    return {
      price: requiredText(item, 'price'),
      ...defined({ quantity: integer(item, 'quantity') }),
    }
  })
  if (!first)
    throw invalidRequest('Missing required param: items.', {
      code: 'parameter_missing',
      param: 'items',
    })
  const input = {
    customer: requiredText(parameters, 'customer'),
    ...first,
    more,
    metadata: newMetadata(parameters),
    ...defined({ trialDays: integer(parameters, 'trial_period_days') }),
  }
  return (tx) => createSubscription(tx, input)
}

/** `POST /v1/subscriptions/:id`: items with their proration, metadata, and how it will end. */
export function prepareSubscriptionChange(parameters: Parameters, id: string): Work {
  const ends = flag(parameters, 'cancel_at_period_end')
  const items = nestedList(parameters, 'items').map((item) => {
    allowOnly(item, ['deleted', 'id', 'price', 'quantity'])
    return defined({
      id: text(item, 'id'),
      price: text(item, 'price'),
      quantity: integer(item, 'quantity'),
      deleted: flag(item, 'deleted'),
    })
  })
  const behavior = oneOf(parameters, 'proration_behavior', ['always_invoice', 'none'])
  const update = metadata(parameters)
  const isChanged = items.length > 0 || update !== undefined
  const input: ChangeInput = {
    items,
    proration: behavior === 'always_invoice' ? 'invoice' : 'none',
    ...defined({ metadata: update }),
  }
  return (tx) => {
    if (isChanged) changeSubscription(tx, id, input)
    if (ends !== undefined) cancelAtPeriodEnd(tx, id, ends)
    return tx.get('subscription', id)
  }
}
