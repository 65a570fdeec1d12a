/**
 * A few hundred orders of the shop, lived through at the simulated provider and delivered as signed
 * webhooks. The same seed makes the same orders; the result says what was done and what the shop must
 * know in the end.
 */
import type Stripe from 'stripe'
import { createRandom, type Random } from '../stripe-double/random.ts'
import type { StripeDouble } from '../stripe-double/stripe-double.ts'
import type { DeliveryResult, WebhookSender } from '../stripe-double/webhook-sender.ts'
import {
  usualChances,
  countReordered,
  planDeliveries,
  type DeliveryChances,
} from './delivery-plan.ts'
import { expectedCredits, expectedOutcomes } from './expected-outcome.ts'
import { dealOrders } from './deal-orders.ts'
import { OrderLife, type Step } from './order-life.ts'
import { planScenario } from './scenarios.ts'
import type { SimulatedOrder } from './simulated-order.ts'
import type {
  LostEvent,
  SimulationCounts,
  SimulationProgress,
  SimulationResult,
} from './simulation-report.ts'
import { planNoise } from './noise.ts'
import { planSubscription, prepareCatalog } from './subscription-lives.ts'
import { prepareTeamCatalog, TeamLife } from './team-life.ts'
import { planTeam, teamScenario } from './team-scenarios.ts'
import { Timeline, untilAborted } from './timeline.ts'

/** What a run is made of. */
export interface SimulationOptions {
  double: StripeDouble
  sender: WebhookSender
  /** 300 when absent. */
  orders?: number
  /** An eighth of the orders or so when absent: 40 for 300. */
  subscriptions?: number
  /** Organizations that subscribe to access, credits and seats; none when absent. */
  organizations?: number
  seed: string
  /** Real time that the run is spread over, in milliseconds; 24 s when absent, 0 for as fast as it goes. */
  spreadMs?: number
  chances?: Partial<DeliveryChances>
  /** The shop's own `POST /orders`; without it every order is opened by its events. */
  openOrder?: (order: SimulatedOrder) => Promise<void>
  /** Called about twice a second, and at the end. */
  onProgress?: (progress: SimulationProgress) => void
  /** Ends the run early; the result then tells of what was done. */
  signal?: AbortSignal
}

/** Simulated time that is planned, in milliseconds: a minute of the shop's life, made of weeks. */
const plannedMs = 60_000
/** The last moment at which an order begins. */
const lastBeginningMs = 34_000

/** Runs a simulation; a further run on the same double goes on with new order ids. */
export async function runSimulation(options: SimulationOptions): Promise<SimulationResult> {
  return new Simulation(options).run()
}

/** What was sent of one order or account. */
interface Track {
  readonly orderId: string | null
  /** Ids of events, in the order in which their first copies were sent. */
  readonly firstSent: string[]
  readonly sent: Promise<DeliveryResult>[]
}

class Simulation {
  readonly #options: SimulationOptions
  readonly #random: Random
  readonly #chances: DeliveryChances
  readonly #timeline = new Timeline()
  readonly #orders: SimulatedOrder[]
  readonly #accounts: string[]
  readonly #organizations: string[]
  readonly #sent: Promise<DeliveryResult>[] = []
  readonly #openings: Promise<void>[] = []
  readonly #copies = new Map<string, number>()
  readonly #position = new Map<string, number>()
  readonly #tracks: Track[] = []
  readonly #lost: LostEvent[] = []
  readonly #counts = { lost: 0, openedFirst: 0, openedLate: 0, failedOpenings: 0 }
  #begun = 0
  #acknowledged = 0
  #reportedMs = 0

  constructor(options: SimulationOptions) {
    this.#options = options
    this.#random = createRandom(options.seed).fork('simulation')
    this.#chances = { ...usualChances, ...options.chances }
    const orders = options.orders ?? 300
    this.#orders = dealOrders(options.double, orders, this.#random.fork('orders'))
    const subscriptions = options.subscriptions ?? Math.round((orders * 40) / 300)
    const first = options.double.all('subscription').length + 1001
    this.#accounts = Array.from({ length: subscriptions }, (_, at) => `team-${first + at}`)
    const organizations = { length: options.organizations ?? 0 }
    this.#organizations = Array.from(organizations, (_, at) => `org-${first + at}`)
  }

  async run(): Promise<SimulationResult> {
    const started = Date.now()
    const { spreadMs, signal } = this.#options
    for (const order of this.#orders) this.#planOrder(order)
    this.#planRest()
    if (this.#organizations.length > 0) this.#planTeams()
    await this.#timeline.run({ plannedMs, spreadMs: spreadMs ?? 24_000, ...(signal && { signal }) })
    const stopped = signal?.aborted ?? false
    if (!stopped) {
      await Promise.all(this.#openings)
      await untilAborted(Promise.all(this.#sent), signal)
    }
    this.#report(true)
    return { ...this.#truth(), counts: this.#countAll(), elapsedMs: Date.now() - started, stopped }
  }

  #planOrder(order: SimulatedOrder): void {
    const random = this.#random.fork(`order ${order.id}`)
    const beginMs = 500 + random.integer(0, lastBeginningMs)
    const life = planScenario(order.scenario, new OrderLife(this.#options.double, order, random))
    const track = this.#track(order.id)
    if (order.opening === 'shop_first' && this.#options.openOrder) {
      this.#timeline.add(beginMs - random.integer(200, 500), () => this.#open(order, 'openedFirst'))
    }
    this.#planSteps(life.steps, beginMs, random, track)
    if (order.opening !== 'shop_late' || !this.#options.openOrder) return
    // After the purchase, once everything that was sent by then has been answered.
    this.#timeline.add(beginMs + random.integer(500, 4000), () => {
      this.#openings.push(Promise.all(track.sent).then(() => this.#open(order, 'openedLate')))
    })
  }

  #planRest(): void {
    const { double } = this.#options
    const random = this.#random.fork('rest')
    const { result: prices, events } = double.hold(() => prepareCatalog(double))
    this.#deliver(events, true, random, this.#track())
    for (const account of this.#accounts) {
      const own = random.fork(account)
      const steps = planSubscription(double, account, prices, own)
      this.#planSteps(steps, 500 + own.integer(0, lastBeginningMs), own, this.#track())
    }
    const noise = planNoise(double, Math.ceil(this.#orders.length / 25), random.fork('noise'))
    for (const step of noise) this.#planSteps([step], 0, random, this.#track(), false)
  }

  #planTeams(): void {
    const { double } = this.#options
    const random = this.#random.fork('teams')
    const { result: prices, events } = double.hold(() => prepareTeamCatalog(double))
    this.#deliver(events, true, random, this.#track())
    for (const [at, org] of this.#organizations.entries()) {
      const own = random.fork(org)
      const life = planTeam(teamScenario(at), new TeamLife(double, org, prices, own), own)
      this.#planSteps(life.steps, 500 + own.integer(0, lastBeginningMs), own, this.#track())
    }
  }

  #planSteps(
    steps: readonly Step[],
    beginMs: number,
    random: Random,
    track: Track,
    isCounted = true,
  ): void {
    for (const [index, step] of steps.entries()) {
      this.#timeline.add(beginMs + step.atMs, () => {
        if (index === 0 && isCounted) this.#begun++
        const { events } = this.#options.double.hold(step.run)
        this.#deliver(events, index === steps.length - 1, random, track)
      })
    }
  }

  #deliver(events: Stripe.Event[], isLastStep: boolean, random: Random, track: Track): void {
    for (const event of events) this.#position.set(event.id, this.#position.size)
    const plan = planDeliveries(events, isLastStep, this.#chances, random)
    for (const event of plan.lost) {
      this.#counts.lost++
      this.#lost.push({ eventId: event.id, type: event.type, orderId: track.orderId })
      this.#options.sender.lose(event)
    }
    for (const { event, copy, delayMs } of plan.copies) {
      this.#timeline.add(this.#timeline.nowMs + delayMs, () => {
        if (!this.#copies.has(event.id)) track.firstSent.push(event.id)
        this.#copies.set(event.id, (this.#copies.get(event.id) ?? 0) + 1)
        track.sent.push(this.#send(event, copy))
        this.#report(false)
      })
    }
  }

  #send(event: Stripe.Event, copy: number): Promise<DeliveryResult> {
    const result = this.#options.sender.send(event, copy).then((how) => {
      if (how === 'acknowledged') this.#acknowledged++
      return how
    })
    this.#sent.push(result)
    return result
  }

  /** The shop may be down for a moment, as it may be for deliveries: an opening is tried again too. */
  async #open(order: SimulatedOrder, counter: 'openedFirst' | 'openedLate'): Promise<void> {
    for (let attempt = 1; attempt <= 5; attempt++) {
      try {
        await this.#options.openOrder!(order)
        this.#counts[counter]++
        return
      } catch {
        if (this.#options.signal?.aborted) break
        await new Promise((resolve) => setTimeout(resolve, 100 * 2 ** attempt))
      }
    }
    this.#counts.failedOpenings++
  }

  #track(orderId: string | null = null): Track {
    const track: Track = { orderId, firstSent: [], sent: [] }
    this.#tracks.push(track)
    return track
  }

  #report(isEnd: boolean): void {
    const now = Date.now()
    if (!this.#options.onProgress || (!isEnd && now - this.#reportedMs < 500)) return
    this.#reportedMs = now
    this.#options.onProgress({
      begun: this.#begun,
      total: this.#orders.length + this.#accounts.length + this.#organizations.length,
      deliveries: this.#sent.length,
      acknowledged: this.#acknowledged,
      failedAttempts: this.#options.sender.counts().failed,
    })
  }

  #truth(): Pick<
    SimulationResult,
    'orders' | 'lost' | 'outcomes' | 'credits' | 'organizations' | 'expected'
  > {
    const { double } = this.#options
    const all = expectedOutcomes(double)
    const outcomes = this.#orders.flatMap(({ id }) => all.get(id) ?? [])
    const accounts = new Set(this.#accounts)
    const credits = expectedCredits(double).filter((credit) => accounts.has(credit.account))
    const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0)
    return {
      orders: this.#orders,
      lost: this.#lost,
      outcomes: new Map(outcomes.map((outcome) => [outcome.orderId, outcome])),
      credits,
      organizations: this.#organizations,
      expected: {
        licenses: sum(outcomes.map((outcome) => outcome.licenses)),
        entitlements: outcomes.filter((outcome) => outcome.entitled).length,
        contradictions: outcomes.flatMap(({ payments }) =>
          payments.filter(({ refusal }) => refusal),
        ).length,
        paidAgain: sum(outcomes.map((outcome) => outcome.paidAgain)),
        creditedInvoices: credits.length,
        credits: sum(credits.map((credit) => credit.credits)),
      },
    }
  }

  #countAll(): SimulationCounts {
    const copies = [...this.#copies.values()]
    const deliveries = copies.reduce((sum, count) => sum + count, 0)
    const isAcknowledged = (id: string) => this.#options.sender.isAcknowledged(id)
    return {
      orders: this.#orders.length,
      subscriptions: this.#accounts.length,
      organizations: this.#organizations.length,
      events: copies.length,
      deliveries,
      duplicates: deliveries - copies.length,
      duplicatedEvents: copies.filter((count) => count > 1).length,
      reordered: this.#tracks.reduce(
        (sum, { firstSent }) => sum + countReordered(firstSent, this.#position),
        0,
      ),
      undelivered: [...this.#copies.keys()].filter((id) => !isAcknowledged(id)).length,
      ...this.#counts,
    }
  }
}
