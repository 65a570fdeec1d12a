import { describe, expect, it } from 'vitest'
import { createRandom } from '../../src/testing/stripe-double/random.ts'
import { naiveErrors, swapNeighbors } from '../support/naive-replay.ts'
import { makeSubscriptionWorld } from '../support/subscription-world.ts'
import { arrivals } from '../support/subscription-campaign.ts'

const random = createRandom(process.env['HOOKLEDGER_SEED'] || '1')
const arrival = { late: 0, lateTicks: 1, again: 0, lost: 0 }
const world = makeSubscriptionWorld(random.fork('control'), {
  lives: 20_000,
  ticks: 60,
  arrival,
  base: 1_790_000_000,
})

describe('20,000 histories whose snapshots are taken for the present', () => {
  it('end right as long as nothing changes places', () => {
    expect(naiveErrors(world, (events) => events)).toBe(0)
  })

  it('end wrong where neighbors changed places, and worse where everything did', () => {
    const own = random.fork('places')
    const swapped = naiveErrors(world, (events) => swapNeighbors(events, own, 0.15))
    const shuffled = naiveErrors(world, (events) => own.shuffle(events))
    expect(swapped).toBeGreaterThan(0.03)
    expect(shuffled).toBeGreaterThan(0.25)
    expect(shuffled).toBeGreaterThan(3 * swapped)
  })

  it('are lives of every kind: each status, circles, changes in one second, ends that come twice', () => {
    const seen = new Map<string, number>()
    const count = (what: string): void => void seen.set(what, (seen.get(what) ?? 0) + 1)
    for (const { steps } of world.lives) {
      for (const [at, { object, tick }] of steps.entries()) {
        count(object === null ? 'gone' : object.status)
        if (steps[at + 1]?.tick === tick) count('same second')
        if (object?.status === 'past_due' && steps[at + 1]?.object?.status === 'active')
          count('circle')
        if (object?.cancel_at != null) count('planned end')
        if (object?.current_period_start !== undefined) count('older shape')
      }
    }
    const kinds = ['incomplete', 'trialing', 'active', 'past_due', 'unpaid', 'paused', 'canceled']
    for (const kind of [
      ...kinds,
      'incomplete_expired',
      'gone',
      'same second',
      'circle',
      'planned end',
      'older shape',
    ])
      expect(seen.get(kind), kind).toBeGreaterThan(200)
    expect(Object.keys(arrivals).length).toBeGreaterThan(3)
  })
})
