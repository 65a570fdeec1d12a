/**
 * Customers, products and prices: what the merchant writes down, with the events of each writing.
 */
import type Stripe from 'stripe'
import { invalidRequest } from './api-error.ts'
import { buildCustomer, buildPrice, buildProduct } from './catalog-objects.ts'
import { mergeMetadata } from './metadata.ts'
import type { Metadata } from './object-kinds.ts'
import type { Transaction } from './transaction.ts'

/** What is known of a customer. */
export interface CustomerInput {
  email?: string
  name?: string
  description?: string
  metadata?: Metadata
}

/** What a price asks for. */
export interface CreatePriceInput {
  product: string
  /** Lower case; `usd` when absent. */
  currency?: string
  /** Minor units. */
  unitAmount: number
  /** Absent: paid once. */
  interval?: 'day' | 'week' | 'month' | 'year'
  lookupKey?: string
  nickname?: string
  metadata?: Metadata
}

/** Writes a customer down: `customer.created`. */
export function createCustomer(tx: Transaction, input: CustomerInput = {}): Stripe.Customer {
  const customer = tx.create(
    buildCustomer(tx, {
      email: input.email ?? null,
      name: input.name ?? null,
      description: input.description ?? null,
      metadata: input.metadata ?? {},
    }),
  )
  tx.emit('customer.created', customer)
  return customer
}

/** Changes what is known of a customer: `customer.updated`. */
export function updateCustomer(
  tx: Transaction,
  id: string,
  input: Omit<CustomerInput, 'metadata'> & { metadata?: Metadata | '' },
): Stripe.Customer {
  const before = tx.get('customer', id)
  const { metadata, ...fields } = input
  const customer = tx.change(before, {
    ...fields,
    ...(metadata !== undefined && { metadata: mergeMetadata(before.metadata, metadata) }),
  })
  tx.emit('customer.updated', customer)
  return customer
}

/** Adds a product: `product.created`. */
export function createProduct(
  tx: Transaction,
  input: { name: string; metadata?: Metadata },
): Stripe.Product {
  const product = tx.create(buildProduct(tx, { name: input.name, metadata: input.metadata ?? {} }))
  tx.emit('product.created', product)
  return product
}

/** Adds a price: `price.created`. */
export function createPrice(tx: Transaction, input: CreatePriceInput): Stripe.Price {
  tx.get('product', input.product, 'product')
  const taken = tx
    .list('price')
    .some((price) => input.lookupKey !== undefined && price.lookup_key === input.lookupKey)
  if (taken) {
    throw invalidRequest('A price already uses that lookup key.', {
      param: 'lookup_key',
      code: 'lookup_key_in_use',
    })
  }
  const price = tx.create(
    buildPrice(tx, {
      product: input.product,
      currency: input.currency ?? 'usd',
      unitAmount: input.unitAmount,
      lookupKey: input.lookupKey ?? null,
      nickname: input.nickname ?? null,
      metadata: input.metadata ?? {},
      ...(input.interval !== undefined && { interval: input.interval }),
    }),
  )
  tx.emit('price.created', price)
  return price
}
