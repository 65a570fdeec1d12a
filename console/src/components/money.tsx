/** Amounts and counts, exact to the last digit. */
import type { ReactNode } from 'react'
import { amountText, groupedText } from '../figures.ts'

/** An amount in minor units, as text of digits, with its currency; null is a dash. */
export function Money({
  amount,
  currency,
}: {
  amount: string | null | undefined
  currency: string | null | undefined
}): ReactNode {
  if (amount === null || amount === undefined) return <span className="none">—</span>
  const code = currency ?? ''
  return (
    <span className="money" title={`${amount} minor units ${code}`}>
      {amountText(amount, code)} <span className="currency">{code}</span>
    </span>
  )
}

/** A whole number with its thousands set apart; exact, also as text of digits. */
export function Count({ of }: { of: number | string }): ReactNode {
  return <span className="count">{groupedText(of)}</span>
}
