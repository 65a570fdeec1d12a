/** Figures for people: grouped digits that stay exact, amounts from minor units, bytes. */
import { minorUnitDigits } from '../../src/core/money.ts'

/** A whole number with thin spaces between its thousands; exact at any size. Other text is left alone. */
export function groupedText(value: number | string): string {
  const text = String(value)
  return /^-?\d+$/.test(text) ? text.replace(/\B(?=(\d{3})+$)/g, '\u202f') : text
}

/** An amount of minor units: `1 234.50`, without its currency. Text that is no integer is left alone. */
export function amountText(amount: string, currency: string): string {
  if (!/^-?\d+$/.test(amount)) return amount
  const digits = minorUnitDigits(currency)
  const sign = amount.startsWith('-') ? '\u2212' : ''
  const bare = amount.replace('-', '').padStart(digits + 1, '0')
  const whole = groupedText(bare.slice(0, bare.length - digits))
  return `${sign}${whole}${digits === 0 ? '' : `.${bare.slice(-digits)}`}`
}

/** A large count in little room: `12.3k`; exact up to 9 999. For charts and badges, never for money. */
export function shortCount(value: number): string {
  const size = Math.abs(value)
  if (size < 10_000) return groupedText(Math.round(value))
  if (size < 1_000_000) return `${trimmed(value / 1000)}k`
  if (size < 1_000_000_000) return `${trimmed(value / 1_000_000)}M`
  return `${trimmed(value / 1_000_000_000)}G`
}

/** A size in bytes: `812 B`, `2.7 KB`. */
export function bytesText(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  if (bytes < 1_000_000) return `${trimmed(bytes / 1000)} KB`
  return `${trimmed(bytes / 1_000_000)} MB`
}

/** `1 event`, `2 events`. */
export function countOf(count: number | string, one: string, many = `${one}s`): string {
  return `${groupedText(count)} ${String(count) === '1' ? one : many}`
}

function trimmed(value: number): string {
  return value.toFixed(Math.abs(value) < 100 ? 1 : 0).replace(/\.0$/, '')
}
