/**
 * What an order entitles to at this moment, and what stays of it where a price is not known: whatever is in
 * force, until its own end. Nothing that ended, by its state or by the clock, comes back by itself. Pure.
 */
import type { Entitlement } from '../../workflow/order.ts'
import { earlier } from './period.ts'

/** How many, and until when; null: without an end. */
export interface Claimed {
  readonly quantity: number
  readonly until: Date | null
}

/** The set with what is in force: a price that is not known takes nothing away. */
export function withInForce(
  claimed: ReadonlyMap<string, Claimed>,
  stated: readonly Entitlement[],
  end: { readonly at: Date | null; readonly isOver: boolean },
): ReadonlyMap<string, Claimed> {
  const all = new Map(claimed)
  if (end.isOver) return all
  for (const { entitlement, quantity, validUntil, active } of stated) {
    if (!active) continue
    const known = all.get(entitlement)
    const until = earlier(validUntil, end.at)
    if (known === undefined) all.set(entitlement, { quantity, until })
    // one that ends sooner must not end what a known price gives
    else if (quantity > known.quantity && until?.getTime() === known.until?.getTime())
      all.set(entitlement, { quantity, until })
  }
  return all
}

/** The end that was stated last; null where nothing with an end is. */
export function statedEnd(stated: readonly Entitlement[]): Date | null {
  const ends = stated.flatMap(({ validUntil }) => validUntil?.getTime() ?? [])
  return ends.length === 0 ? null : new Date(Math.max(...ends))
}
