/**
 * What a webhook handler does that takes each snapshot for the present: the last one that comes counts. The
 * control of the proofs of mirrors: with it, the same histories must end wrong.
 */
import type { Random } from '../../src/testing/stripe-double/random.ts'
import type { Life, SubscriptionObject } from './subscription-living.ts'
import { accessOf, stateOf } from './subscription-oracle.ts'
import type { SubscriptionEvent } from './subscription-workflow.ts'
import type { SubscriptionWorld } from './subscription-world.ts'

/** The share of lives that end wrong when their snapshots are applied as they come. */
export function naiveErrors(
  { lives, told }: SubscriptionWorld,
  arrive: (events: readonly SubscriptionEvent[]) => readonly SubscriptionEvent[],
): number {
  let wrong = 0
  for (const life of lives) {
    const events = (told.get(life) ?? []).filter((event): event is SubscriptionEvent =>
      event.type.startsWith('customer.subscription.'),
    )
    if (!isSame(snapshotAfter(arrive(events)), life)) wrong++
  }
  return wrong / lives.length
}

function snapshotAfter(events: readonly SubscriptionEvent[]): SubscriptionObject | null {
  const last = events.at(-1)
  return last?.data.object ?? null
}

function isSame(object: SubscriptionObject | null, life: Life): boolean {
  // what is gone looks to a handler like what was canceled: no fault of the order of arrival
  const truth = life.steps.findLast((step) => step.object !== null)?.object ?? null
  return (
    stateOf(object) === stateOf(truth) &&
    JSON.stringify(accessOf(object)) === JSON.stringify(accessOf(truth))
  )
}

/** Each event changes places with the one after it by this chance. */
export function swapNeighbors<T>(events: readonly T[], random: Random, chance: number): T[] {
  const swapped = [...events]
  for (let at = 0; at + 1 < swapped.length; at++) {
    if (!random.chance(chance)) continue
    const [first, second] = [swapped[at] as T, swapped[at + 1] as T]
    swapped[at] = second
    swapped[at + 1] = first
    at++
  }
  return swapped
}
