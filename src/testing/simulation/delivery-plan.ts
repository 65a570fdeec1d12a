/**
 * How the events of one order reach the shop: some twice or more, some late, some not at all. Delays
 * are drawn for each event; in which order they really arrived is read off what was sent.
 */
import type Stripe from 'stripe'
import type { Random } from '../stripe-double/random.ts'

/** The chances of an event, each from 0 to 1. */
export interface DeliveryChances {
  /** Sent twice or more. */
  duplicate: number
  /** Held back until later events of its order have overtaken it. */
  late: number
  /** Lost for good. */
  lost: number
}

/** One copy to send, so many milliseconds of simulated time after the event was made. */
export interface PlannedCopy {
  event: Stripe.Event
  copy: number
  delayMs: number
}

/** What a provider does on an ordinary day: a fifth sent again, a tenth out of order, nothing lost. */
export const usualChances: DeliveryChances = { duplicate: 0.22, late: 0.13, lost: 0 }

/** The chances of the demo: a tenth is lost for good besides, and only the provider's records tell of it. */
export const demoChances: DeliveryChances = { ...usualChances, lost: 0.1 }

/**
 * Plans the copies of events that were made together, in the order in which they were made. The last
 * event of an order is never held back: nothing would overtake it.
 */
export function planDeliveries(
  events: readonly Stripe.Event[],
  isLastStep: boolean,
  chances: DeliveryChances,
  random: Random,
): { copies: PlannedCopy[]; lost: Stripe.Event[] } {
  const copies: PlannedCopy[] = []
  const lost: Stripe.Event[] = []
  for (const [index, event] of events.entries()) {
    const isLastOfAll = isLastStep && index === events.length - 1
    const isLate = random.chance(chances.late) && !isLastOfAll
    const isDuplicated = random.chance(chances.duplicate)
    const isLost = random.chance(chances.lost)
    const delayMs = 40 + index * 60 + (isLate ? random.integer(1000, 9000) : random.integer(0, 30))
    const extra = isDuplicated ? random.integer(1, 3) : 0
    // Half of the duplicates come at the same moment: two requests that race each other.
    const gaps = Array.from({ length: extra }, () =>
      random.chance(0.5) ? 0 : random.integer(50, 6000),
    )
    if (isLost) {
      lost.push(event)
      continue
    }
    copies.push({ event, copy: 0, delayMs })
    for (const [at, gapMs] of gaps.entries())
      copies.push({ event, copy: at + 1, delayMs: delayMs + gapMs })
  }
  return { copies, lost }
}

/**
 * How many events came after one of the same order that was made later. `firstSent` are the events of
 * one order in the order in which their first copy was sent; `position` is the order of their making.
 */
export function countReordered(
  firstSent: readonly string[],
  position: ReadonlyMap<string, number>,
): number {
  let newest = -1
  let overtaken = 0
  for (const id of firstSent) {
    const at = position.get(id) ?? -1
    if (at < newest) overtaken++
    else newest = at
  }
  return overtaken
}
