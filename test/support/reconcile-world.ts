/**
 * Random histories of a shop whose provider tells it only a part: orders lived through at the simulated
 * provider, with events that are never delivered, events that not even the event list has, and orders that
 * somebody changed behind the ledger's back. Everything that was seeded is written down here, by the one
 * that seeded it.
 */
import type Stripe from 'stripe'
import { dealOrders } from '../../src/testing/simulation/deal-orders.ts'
import { OrderLife, type Step } from '../../src/testing/simulation/order-life.ts'
import { planScenario } from '../../src/testing/simulation/scenarios.ts'
import type { SimulatedOrder } from '../../src/testing/simulation/simulated-order.ts'
import {
  planSubscription,
  prepareCatalog,
} from '../../src/testing/simulation/subscription-lives.ts'
import { createRandom, type Random } from '../../src/testing/stripe-double/random.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../src/testing/stripe-double/stripe-double.ts'
import { planSeed, type Seed } from './reconcile-seeds.ts'
import { shopSecret } from './shop.ts'

/**
 * How an event reaches the shop: `racing` is delivered while the first pass runs, `dropped` never, but the
 * provider's event list has it still, `hidden` is nowhere.
 */
export type Fate = 'delivered' | 'racing' | 'dropped' | 'hidden'

/** An order with all that the provider made of it, and with what was done to it. */
export interface WorldOrder {
  readonly order: SimulatedOrder
  readonly events: Stripe.Event[]
  /** Null: nothing but losses. */
  readonly seed: Seed | null
}

/** One world: what happened at a provider in an hour. */
export interface World {
  readonly seed: string
  readonly double: StripeDouble
  readonly orders: readonly WorldOrder[]
  /** Events of everything else: subscriptions, catalog, noise. */
  readonly others: readonly Stripe.Event[]
  readonly fates: ReadonlyMap<string, Fate>
  /** Deliveries in the order in which they come, repetitions included. */
  readonly arrivals: readonly Stripe.Event[]
  /** What is delivered while the first pass runs. */
  readonly racing: readonly Stripe.Event[]
}

/** What a world is made of; each is a chance from 0 to 1. */
export interface WorldChances {
  /** That an order loses some of its events. */
  readonly lossy: number
  /** That an event of such an order is dropped, that it is hidden, and that it races. */
  readonly dropped: number
  readonly hidden: number
  readonly racing: number
  /** That something contradictory is done to an order. */
  readonly seeded: number
  /** That such an order loses some of its events, too. */
  readonly mixed: number
}

const usual: WorldChances = {
  lossy: 0.6,
  dropped: 0.25,
  hidden: 0.25,
  racing: 0.15,
  seeded: 0.3,
  mixed: 0.3,
}

/** A world began so long before now, and was over an hour later: everything in it is older than any lag. */
const agoMs = 100 * 60_000
const spanMs = 60 * 60_000
/** The simulated minute of the scenarios, made an hour. */
const stretch = spanMs / 60_000

/** Lives through a world of so many orders. The same seed makes the same world, but for the time of day. */
export function makeWorld(
  seed: string,
  orders: number,
  chances: Partial<WorldChances> = {},
): World {
  const odds = { ...usual, ...chances }
  const random = createRandom(seed)
  let clock = Date.now() - agoMs
  const beganMs = clock
  const double = createStripeDouble({ seed, signingSecret: shopSecret, clock: () => clock })
  const dealt = dealOrders(double, orders, random.fork('orders'))
  const steps: { readonly atMs: number; readonly run: () => void }[] = []
  const made = dealt.map((order): WorldOrder => {
    const own = random.fork(`order ${order.id}`)
    const mode = own.next()
    const seeded = mode < odds.seeded ? planSeed(order, own.fork('seed')) : null
    const events: Stripe.Event[] = []
    const life =
      seeded?.live === undefined
        ? planScenario(order.scenario, new OrderLife(double, order, own)).steps
        : seeded.live(double, own)
    const beginMs = own.integer(0, 30_000)
    for (const step of life) steps.push(heard(step, beginMs, double, events))
    return { order, events, seed: seeded }
  })
  const others: Stripe.Event[] = []
  planOthers(double, others, orders, random.fork('others'), (step, beginMs) =>
    steps.push(heard(step, beginMs, double, others)),
  )
  // a stable sort: of equal times the earlier planned is first
  for (const step of steps.sort((a, b) => a.atMs - b.atMs)) {
    clock = Math.max(clock, beganMs + Math.min(step.atMs * stretch, spanMs))
    step.run()
  }
  clock = Date.now()
  const fates = dealFates(made, others, odds, random.fork('fates'))
  const world = { seed, double, orders: made, others, fates }
  double.setListLag((object) => (fates.get(object.id) === 'hidden' ? Infinity : 0))
  const racing = eventsOf(world).filter(({ id }) => fates.get(id) === 'racing')
  return {
    ...world,
    arrivals: dealArrivals(world, random.fork('arrivals')),
    racing: random.fork('racing').shuffle(racing),
  }
}

function heard(
  step: Step,
  beginMs: number,
  double: StripeDouble,
  events: Stripe.Event[],
): { atMs: number; run: () => void } {
  return {
    atMs: beginMs + step.atMs,
    run: () => events.push(...double.hold(() => step.run()).events),
  }
}

function planOthers(
  double: StripeDouble,
  others: Stripe.Event[],
  orders: number,
  random: Random,
  add: (step: Step, beginMs: number) => void,
): void {
  const { result: prices, events } = double.hold(() => prepareCatalog(double))
  others.push(...events)
  for (let at = 0; at < Math.ceil(orders / 8); at++) {
    const own = random.fork(`team ${at}`)
    const beginMs = own.integer(0, 30_000)
    for (const step of planSubscription(double, `team-${at}`, prices, own)) add(step, beginMs)
  }
}

/** An order that something contradictory is done to loses nothing, unless it is asked for. */
function dealFates(
  orders: readonly WorldOrder[],
  others: readonly Stripe.Event[],
  odds: WorldChances,
  random: Random,
): Map<string, Fate> {
  const fates = new Map<string, Fate>()
  const deal = (): Fate => {
    const drawn = random.next()
    if (drawn < odds.dropped) return 'dropped'
    if (drawn < odds.dropped + odds.hidden) return 'hidden'
    return drawn < odds.dropped + odds.hidden + odds.racing ? 'racing' : 'delivered'
  }
  for (const { events, seed } of orders) {
    const loses = random.chance(seed === null ? odds.lossy : odds.mixed)
    for (const event of events) fates.set(event.id, loses ? deal() : 'delivered')
  }
  for (const { id } of others) {
    const drawn = random.next()
    fates.set(
      id,
      drawn < odds.dropped / 2
        ? 'dropped'
        : drawn < (odds.dropped + odds.hidden) / 2
          ? 'hidden'
          : 'delivered',
    )
  }
  return fates
}

/** In any order, a quarter of them again. */
function dealArrivals(world: Omit<World, 'arrivals' | 'racing'>, random: Random): Stripe.Event[] {
  const delivered = eventsOf(world).filter(({ id }) => world.fates.get(id) === 'delivered')
  const again = delivered.filter(() => random.chance(0.25))
  return random.shuffle([...delivered, ...again])
}

/** Every event that the provider made in this world. */
export function eventsOf({ orders, others }: Pick<World, 'orders' | 'others'>): Stripe.Event[] {
  return [...orders.flatMap(({ events }) => events), ...others]
}
