/**
 * A subscription's life as plain data in Stripe's shape: what the object is after each step, and what is told
 * of it; and the one who leads it.
 */
import type { Random } from '../../src/testing/stripe-double/random.ts'

/** The part of a subscription that anybody here reads, in Stripe's shape. */
export interface SubscriptionObject {
  readonly id: string
  readonly object: 'subscription'
  readonly status: string
  readonly customer: string
  /** `version` counts the changes: which present an answer shows. */
  readonly metadata: { readonly org: string; readonly version: string }
  readonly items: { readonly object: 'list'; readonly data: readonly ItemObject[] }
  readonly cancel_at_period_end: boolean
  readonly cancel_at: number | null
  readonly trial_end: number | null
  readonly created: number
  readonly livemode: false
  /** Only in the shape of older versions, which have it here and not on the items. */
  readonly current_period_start?: number
  readonly current_period_end?: number
}

interface ItemObject {
  readonly id: string
  readonly object: 'subscription_item'
  readonly price: {
    readonly id: string
    readonly lookup_key: string | null
    readonly product: string
  }
  readonly quantity: number
  readonly current_period_start?: number
  readonly current_period_end?: number
}

/** Something that counts once, whatever the subscription is. */
export type LifeFact =
  | { readonly fact: 'paid'; readonly invoice: string; readonly amount: number }
  | {
      readonly fact: 'refunded'
      readonly refund: string
      readonly invoice: string
      readonly amount: number
    }

/** One change at the provider, and what the provider tells of it. */
export interface LifeStep {
  /** When, in ticks of the world; equal ones are the same second. */
  readonly tick: number
  /** What the object is from now on; null: the provider knows it no longer. */
  readonly object: SubscriptionObject | null
  /** The types of the events that carry it as a snapshot (of what is gone, the last one). */
  readonly tells: readonly string[]
  readonly facts: readonly LifeFact[]
}

/** A subscription from its creation to the end of the world. */
export interface Life {
  readonly account: string
  readonly id: string
  readonly org: string
  readonly steps: readonly LifeStep[]
}

/** Where a life is led. */
export interface LifePlace {
  readonly account: string
  readonly id: string
  readonly org: string
  /** Unix seconds of tick 0. */
  readonly base: number
  /** The last tick at which anything may happen. */
  readonly ticks: number
}

/** A period, in seconds. */
export const month = 30 * 86_400

/** Every price that lives are led on. */
export const lifePrices = {
  team: { id: 'price_team', lookup_key: 'team_monthly', product: 'prod_team' },
  pro: { id: 'price_pro', lookup_key: 'pro_monthly', product: 'prod_pro' },
  yearly: { id: 'price_pro_yearly', lookup_key: null, product: 'prod_pro' },
} as const

type PriceName = keyof typeof lifePrices

/** What a move changes; the rest of the subscription stays. */
interface Draft {
  status: string
  plans: { name: PriceName; quantity: number }[]
  periodStart: number
  cancelAtPeriodEnd: boolean
  cancelAt: number | null
  trialEnd: number | null
}

/** A life as it is being led. */
export class Living {
  readonly random: Random
  readonly place: LifePlace
  readonly steps: LifeStep[] = []
  readonly invoices: { readonly id: string; readonly amount: number }[] = []
  readonly refunded = new Set<string>()
  readonly draft: Draft
  readonly isOldShape: boolean
  isGone = false
  #tick: number
  #changes = 0
  #facts: LifeFact[] = []

  constructor(random: Random, place: LifePlace) {
    this.random = random
    this.place = place
    this.#tick = random.integer(0, Math.max(0, Math.floor(place.ticks / 3)))
    this.isOldShape = random.chance(0.25)
    const main = random.pick(['team', 'team', 'pro', 'yearly'] as const)
    this.draft = {
      status: 'incomplete',
      plans: [
        { name: main, quantity: main === 'team' ? random.integer(1, 9) : 1 },
        ...(main === 'team' && random.chance(0.2) ? [{ name: 'pro' as const, quantity: 1 }] : []),
      ],
      periodStart: place.base + this.#tick,
      cancelAtPeriodEnd: false,
      cancelAt: null,
      trialEnd: null,
    }
  }

  /** Created, with a trial or to be paid. */
  begin(): void {
    if (this.random.chance(0.25)) {
      this.draft.status = 'trialing'
      this.draft.trialEnd = this.draft.periodStart + 14 * 86_400
    }
    this.step(['customer.subscription.created'])
  }

  /** Often nothing: many changes fall into one second. */
  wait(): void {
    if (this.random.chance(0.3)) return
    this.#tick = Math.min(this.place.ticks, this.#tick + this.random.integer(1, 6))
  }

  /** An invoice is paid. */
  earn(amount: number): void {
    const id = `in_${this.place.id}_${this.invoices.length + 1}`
    this.invoices.push({ id, amount })
    this.#facts.push({ fact: 'paid', invoice: id, amount })
  }

  /** The subscription stays as it is, and nothing is told of it. */
  giveBack(): void {
    const invoice = this.invoices.find(({ id }) => !this.refunded.has(id))
    const object = this.steps.at(-1)?.object
    if (invoice === undefined || object == null) return
    this.refunded.add(invoice.id)
    const { id, amount } = invoice
    this.#facts.push({ fact: 'refunded', refund: `re_${id}`, invoice: id, amount })
    this.#push(object, [])
  }

  /** The subscription is as its draft from now on. */
  step(tells: readonly string[]): void {
    this.#changes++
    this.#push(this.#object(), tells)
  }

  /** The provider knows it no longer, and tells that it was deleted. */
  vanish(): void {
    this.isGone = true
    this.#push(null, ['customer.subscription.deleted'])
  }

  #push(object: SubscriptionObject | null, tells: readonly string[]): void {
    this.steps.push({ tick: this.#tick, object, tells, facts: this.#facts })
    this.#facts = []
  }

  #object(): SubscriptionObject {
    const { draft, place } = this
    const period = {
      current_period_start: draft.periodStart,
      current_period_end: draft.trialEnd ?? draft.periodStart + month,
    }
    return {
      id: place.id,
      object: 'subscription',
      status: draft.status,
      customer: `cus_${place.org}`,
      metadata: { org: place.org, version: String(this.#changes) },
      items: {
        object: 'list',
        data: draft.plans.map(({ name, quantity }) => ({
          id: `si_${place.id}_${name}`,
          object: 'subscription_item',
          price: lifePrices[name],
          quantity,
          ...(this.isOldShape ? {} : period),
        })),
      },
      cancel_at_period_end: draft.cancelAtPeriodEnd,
      cancel_at: draft.cancelAtPeriodEnd ? period.current_period_end : draft.cancelAt,
      trial_end: draft.trialEnd,
      created: place.base,
      livemode: false,
      ...(this.isOldShape ? period : {}),
    }
  }
}
