/**
 * Amounts are integers of the currency's minor unit, exact at any size, with an ISO 4217 code.
 */
import { PermanentError } from './errors.ts'

/** An amount in minor units (cents) of one currency (upper-case ISO 4217 code). */
export interface Money {
  readonly amount: bigint
  readonly currency: string
}

/**
 * Money from what a provider sends: an integer in minor units and a currency code in any case.
 *
 * @throws PermanentError when the amount is not an exact integer or the code is not three letters:
 * such an event can never be decided, so it ends dead with this reason.
 * @example money(4900, 'usd') // { amount: 4900n, currency: 'USD' }
 */
export function money(amount: bigint | number | string, currency: string): Money {
  if (typeof currency !== 'string' || !/^[A-Za-z]{3}$/.test(currency)) {
    throw new PermanentError('a currency must be a three-letter ISO 4217 code')
  }
  return Object.freeze({ amount: exactInteger(amount), currency: currency.toUpperCase() })
}

function exactInteger(amount: bigint | number | string): bigint {
  if (typeof amount === 'bigint') return amount
  if (typeof amount === 'number' && Number.isSafeInteger(amount)) return BigInt(amount)
  if (typeof amount === 'string' && /^-?\d{1,30}$/.test(amount)) return BigInt(amount)
  throw new PermanentError('an amount must be an exact integer in minor units')
}

const exponents: Readonly<Record<string, number>> = {
  BIF: 0,
  CLP: 0,
  DJF: 0,
  GNF: 0,
  ISK: 0,
  JPY: 0,
  KMF: 0,
  KRW: 0,
  PYG: 0,
  RWF: 0,
  UGX: 0,
  UYI: 0,
  VND: 0,
  VUV: 0,
  XAF: 0,
  XOF: 0,
  XPF: 0,
  BHD: 3,
  IQD: 3,
  JOD: 3,
  KWD: 3,
  LYD: 3,
  OMR: 3,
  TND: 3,
  CLF: 4,
  UYW: 4,
}

/** How many decimal digits the currency's minor unit has (ISO 4217: JPY 0, USD 2, KWD 3). */
export function minorUnitDigits(currency: string): number {
  return exponents[currency.toUpperCase()] ?? 2
}

/** The whole units of the currency in an amount, rounded toward zero: 4999 cents are 49 dollars. */
export function wholeUnits(value: Money): bigint {
  return value.amount / 10n ** BigInt(minorUnitDigits(value.currency))
}

/** An amount for people: `49.00 USD`. */
export function formatMoney(value: Money): string {
  const digits = minorUnitDigits(value.currency)
  const sign = value.amount < 0n ? '-' : ''
  const text = (value.amount < 0n ? -value.amount : value.amount)
    .toString()
    .padStart(digits + 1, '0')
  const whole = text.slice(0, text.length - digits)
  return `${sign}${whole}${digits === 0 ? '' : `.${text.slice(-digits)}`} ${value.currency}`
}
