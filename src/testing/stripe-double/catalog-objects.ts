/**
 * Customers, products and prices as Stripe's API writes them.
 */
import type Stripe from 'stripe'
import type { Metadata } from './object-kinds.ts'
import type { Transaction } from './transaction.ts'

/** A new customer. */
export function buildCustomer(
  tx: Transaction,
  input: {
    email: string | null
    name: string | null
    description: string | null
    metadata: Metadata
  },
): Stripe.Customer {
  return {
    id: tx.id('customer'),
    object: 'customer',
    address: null,
    balance: 0,
    created: tx.now,
    currency: null,
    customer_account: null,
    default_source: null,
    delinquent: false,
    description: input.description,
    discount: null,
    email: input.email,
    invoice_prefix: null,
    invoice_settings: {
      custom_fields: null,
      default_payment_method: null,
      footer: null,
      rendering_options: null,
    },
    livemode: tx.livemode,
    metadata: input.metadata,
    name: input.name,
    next_invoice_sequence: 1,
    phone: null,
    preferred_locales: [],
    shipping: null,
    tax_exempt: 'none',
    test_clock: null,
  }
}

/** A new product. */
export function buildProduct(
  tx: Transaction,
  input: { name: string; metadata: Metadata },
): Stripe.Product {
  return {
    id: tx.id('product'),
    object: 'product',
    active: true,
    created: tx.now,
    default_price: null,
    description: null,
    images: [],
    livemode: tx.livemode,
    marketing_features: [],
    metadata: input.metadata,
    name: input.name,
    package_dimensions: null,
    shippable: null,
    statement_descriptor: null,
    tax_code: null,
    tax_details: null,
    type: 'service',
    unit_label: null,
    updated: tx.now,
    url: null,
  }
}

/** What a price asks for. */
export interface PriceInput {
  product: string
  currency: string
  /** Minor units. */
  unitAmount: number
  /** Absent: paid once. */
  interval?: 'day' | 'week' | 'month' | 'year'
  lookupKey: string | null
  nickname: string | null
  metadata: Metadata
}

/** A new price. */
export function buildPrice(tx: Transaction, input: PriceInput): Stripe.Price {
  return {
    id: tx.id('price'),
    object: 'price',
    active: true,
    billing_scheme: 'per_unit',
    created: tx.now,
    currency: input.currency,
    custom_unit_amount: null,
    livemode: tx.livemode,
    lookup_key: input.lookupKey,
    metadata: input.metadata,
    nickname: input.nickname,
    product: input.product,
    recurring:
      input.interval === undefined
        ? null
        : {
            interval: input.interval,
            interval_count: 1,
            meter: null,
            trial_period_days: null,
            usage_type: 'licensed',
          },
    tax_behavior: 'unspecified',
    tiers_mode: null,
    transform_quantity: null,
    type: input.interval === undefined ? 'one_time' : 'recurring',
    unit_amount: input.unitAmount,
    // On the wire it is a string; the SDK makes its decimal type of it.
    unit_amount_decimal: String(input.unitAmount) as unknown as Stripe.Decimal,
  }
}
