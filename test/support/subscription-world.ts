/**
 * Worlds of subscription lives as one shop hears of them: changes at the provider tick by tick, and their
 * events late, in another order, again, or never. A seed makes the same world each time; what races is what
 * the machine makes of it.
 */
import type { Random } from '../../src/testing/stripe-double/random.ts'
import { planLife } from './subscription-lives.ts'
import type { Life, LifeStep, SubscriptionObject } from './subscription-living.ts'
import type { FactEvent, SubscriptionEvent } from './subscription-workflow.ts'

/** How events come. */
export interface Arrival {
  /** How much of them is late, by how many ticks at most. */
  readonly late: number
  readonly lateTicks: number
  /** How much of them comes again, and never. */
  readonly again: number
  readonly lost: number
}

/** A step at the provider, or a delivery. */
export type WorldAct =
  | { readonly act: 'change'; readonly tick: number; readonly life: Life; readonly step: LifeStep }
  | {
      readonly act: 'deliver'
      readonly tick: number
      readonly life: Life
      readonly event: ToldBody
    }

/** What is delivered. */
export type ToldBody = SubscriptionEvent | FactEvent

/** A world. */
export interface SubscriptionWorld {
  readonly lives: readonly Life[]
  readonly ticks: number
  /** In the order of their ticks; of equal ones changes come first. */
  readonly acts: readonly WorldAct[]
  /** Every event there ever was, in the order in which it happened, by life. */
  readonly told: ReadonlyMap<Life, readonly ToldBody[]>
}

/** How big a world is, and how it tells. */
export interface WorldShape {
  readonly lives: number
  readonly ticks: number
  readonly arrival: Arrival
  /** The accounts that lives are spread over; null: the source's own. */
  readonly accounts?: readonly (string | null)[]
  /** Unix seconds of tick 0. */
  readonly base: number
}

/** Makes a world. */
export function makeSubscriptionWorld(random: Random, shape: WorldShape): SubscriptionWorld {
  const accounts = shape.accounts ?? [null]
  const lives = Array.from({ length: shape.lives }, (_, at): Life => {
    // the same ids in every account: what is mixed up shows
    const account = accounts[at % accounts.length] ?? ''
    const number = Math.floor(at / accounts.length) + 1
    const org = random.chance(0.2) ? String(Math.max(1, number - 1)) : String(number)
    const place = { account, id: `sub_${number}`, org, base: shape.base, ticks: shape.ticks }
    return planLife(random.fork(`life ${at}`), place)
  })
  const told = new Map(lives.map((life) => [life, eventsOf(life, shape.base)]))
  const acts: WorldAct[] = []
  for (const life of lives) {
    const own = random.fork(`arrival ${life.account} ${life.id}`)
    for (const step of life.steps) acts.push({ act: 'change', tick: step.tick, life, step })
    for (const { tick, event } of arrivalsOf(told.get(life) ?? [], shape, own))
      acts.push({ act: 'deliver', tick, life, event })
  }
  const first = { change: 0, deliver: 1 }
  acts.sort((a, b) => a.tick - b.tick || first[a.act] - first[b.act])
  return { lives, ticks: shape.ticks, acts, told }
}

function arrivalsOf(
  events: readonly ToldBody[],
  { arrival, base, ticks }: WorldShape,
  random: Random,
): { readonly tick: number; readonly event: ToldBody }[] {
  const deliver = (event: ToldBody): { tick: number; event: ToldBody } => {
    const late = random.chance(arrival.late) ? random.integer(1, arrival.lateTicks) : 0
    return { tick: Math.min(ticks, event.created - base + late), event }
  }
  const arrivals = events
    .filter(() => !random.chance(arrival.lost))
    .flatMap((event) => [deliver(event), ...(random.chance(arrival.again) ? [deliver(event)] : [])])
  // of one tick in any order: a sort by ticks keeps it
  return random.shuffle(arrivals)
}

/** The events of a life, each with the object as it was. */
function eventsOf(life: Life, base: number): ToldBody[] {
  let last: SubscriptionObject | null = null
  let made = 0
  return life.steps.flatMap((step) => {
    const head = { created: base + step.tick, livemode: false as const, ...accountOf(life) }
    const id = (): string => `evt_${life.account}${life.id}_${++made}`
    const object: SubscriptionObject | null = step.object ?? last
    last = object
    const looks =
      object === null
        ? []
        : step.tells.map((type) => ({ ...head, id: id(), type, data: { object } }))
    return [...looks, ...step.facts.map((fact) => factEvent(life, fact, { ...head, id: id() }))]
  })
}

/** A connected account's events carry it. */
export function accountOf({ account }: Pick<Life, 'account'>): { readonly account?: string } {
  return account === '' ? {} : { account }
}

/** The event of a fact. */
export function factEvent(
  life: Life,
  fact: Life['steps'][number]['facts'][number],
  head: Pick<FactEvent, 'id' | 'created' | 'account' | 'livemode'>,
): FactEvent {
  const metadata = { subscription: life.id }
  return fact.fact === 'paid'
    ? {
        ...head,
        type: 'invoice.paid',
        data: { object: { id: fact.invoice, amount: fact.amount, metadata } },
      }
    : {
        ...head,
        type: 'refund.created',
        data: {
          object: {
            id: fact.refund,
            amount: fact.amount,
            metadata: { ...metadata, invoice: fact.invoice },
          },
        },
      }
}
