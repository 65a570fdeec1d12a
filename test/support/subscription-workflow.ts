/**
 * The workflow that proofs of mirrors run: it follows a subscription as the provider has it now, counts each
 * paid invoice and each refund once, and gives access by status and price. Its parts can be replaced, so that
 * a test can put a mistake in.
 */
import { fulfill, defer, effect, mirrored } from '../../src/workflow/decision.ts'
import type { MirrorDecision } from '../../src/workflow/decision.ts'
import { defineUntypedWorkflow } from '../../src/workflow/define-workflow.ts'
import type { FetchInput } from '../../src/workflow/gathering.ts'
import { name, orderId, type Resolution } from '../../src/workflow/resolution.ts'
import { stripeSubscription } from '../../src/providers/stripe-subscription/stripe-subscription.ts'
import type { AnyEvent, EventHandler, MirrorInput, Workflow } from '../../src/workflow/workflow.ts'
import type { SubscriptionObject } from './subscription-living.ts'
import type { SubscriptionApi } from './subscription-provider.ts'

/** An event of a subscription, as lives tell it. */
export interface SubscriptionEvent {
  readonly id: string
  readonly type: string
  readonly created: number
  readonly account?: string
  readonly livemode: false
  readonly data: { readonly object: SubscriptionObject }
}

/** An event of something that counts once. */
export interface FactEvent {
  readonly id: string
  readonly type: string
  readonly created: number
  readonly account?: string
  readonly livemode: false
  readonly data: {
    readonly object: {
      readonly id: string
      readonly amount: number
      readonly metadata: { readonly subscription: string; readonly invoice?: string }
    }
  }
}

/** What a test may replace. */
export interface SubscriptionParts {
  readonly fetch?: (input: FetchInput<SubscriptionApi>) => Promise<SubscriptionObject | null>
  /** What is decided from, instead of the answer. */
  readonly current?: (input: MirrorInput) => SubscriptionObject | null
  readonly decide?: (input: MirrorInput, usual: () => MirrorDecision) => MirrorDecision
  /** Whose order an event is about, instead of its own account's. */
  readonly order?: (event: SubscriptionEvent | FactEvent, id: string) => string
}

/** The types that only say "look again". */
export const lookTypes = [
  'customer.subscription.created',
  'customer.subscription.updated',
  'customer.subscription.deleted',
  'customer.subscription.paused',
  'customer.subscription.resumed',
  'customer.subscription.trial_will_end',
] as const

const states = {
  incomplete: {},
  trialing: { entitles: true },
  active: { entitles: true },
  past_due: { entitles: true },
  unpaid: {},
  paused: {},
  canceled: {},
  incomplete_expired: {},
  gone: {},
} as const

const grace = 3 * 86_400

/** The order of a subscription: its id, under its account where it is a connected one's. */
export function orderOf(event: { readonly account?: string }, id: string): string {
  return event.account === undefined ? id : `${event.account}/${id}`
}

/** Builds the workflow. */
export function subscriptionWorkflow(parts: SubscriptionParts = {}): Workflow {
  const order = parts.order ?? orderOf
  const facts = factHandlers(order)
  return defineUntypedWorkflow('subscriptions', {
    sources: ['stripe'],
    initial: 'incomplete',
    opens: 'event',
    states,
    transitions: {},
    effects: { credits: {}, refund: {} },
  })
    .mirror(lookTypes, {
      order: ({ event }) => {
        const look = event as unknown as SubscriptionEvent
        return orderId(order(look, look.data.object.id))
      },
      object: ({ event }) =>
        name('subscription', (event as unknown as SubscriptionEvent).data.object.id),
      fetch: (input) => (parts.fetch ?? retrieve)(input as FetchInput<SubscriptionApi>),
      decide: (input) => {
        const given = input as unknown as MirrorInput
        const usual = (): MirrorDecision =>
          decideSubscription(parts.current?.(given) ?? currentOf(given)) as MirrorDecision
        return (parts.decide?.(given, usual) ?? usual()) as MirrorDecision<never, never>
      },
    })
    .on('invoice.paid', facts.paid as never)
    .on('refund.created', facts.refunded as never)
}

/**
 * The same with the parts that users spread into their own: what Stripe's present state means is then the
 * product's, and not a test's.
 */
export function stripeWorkflow(): Workflow {
  const { workflow, types, mirror } = stripeSubscription({
    plans: {
      team_monthly: ({ quantity }) => ({ entitlement: 'team', quantity }),
      pro_monthly: 'pro',
      price_pro_yearly: 'pro',
    },
    grace: { days: 3 },
    subject: ({ subscription }) => `org:${subscription.metadata['org']}`,
    claims: ({ metadata }) => metadata['org'] !== undefined,
  })
  const facts = factHandlers(orderOf)
  return defineUntypedWorkflow('saas', {
    sources: ['stripe'],
    opens: 'event',
    ...workflow,
    effects: { credits: {}, refund: {} },
  })
    .mirror(types, mirror as never)
    .on('invoice.paid', facts.paid as never)
    .on('refund.created', facts.refunded as never)
}

type FactHandler = EventHandler<AnyEvent, never, 'credits' | 'refund', string | null>

/** What counts once: each paid invoice, and each refund after the invoice that it gives back. */
function factHandlers(
  order: NonNullable<SubscriptionParts['order']>,
): Readonly<Record<'paid' | 'refunded', FactHandler>> {
  const factOrder = ({ event }: { readonly event: unknown }): Resolution => {
    const fact = event as FactEvent
    return orderId(order(fact, fact.data.object.metadata.subscription))
  }
  return {
    paid: {
      order: factOrder,
      decide: ({ event }) => {
        const { id, amount } = (event as unknown as FactEvent).data.object
        return fulfill({ effects: [{ type: 'credits', reference: id, data: { cents: amount } }] })
      },
    },
    refunded: {
      order: factOrder,
      decide: ({ event, effects }) => {
        const { id, amount, metadata } = (event as unknown as FactEvent).data.object
        const invoice = metadata.invoice ?? ''
        if (!effects.some((each) => each.type === 'credits' && each.reference === invoice))
          return defer({ missing: effect('credits', invoice) })
        const data = { cents: amount, invoice }
        return fulfill({ effects: [{ type: 'refund', reference: id, data }] })
      },
    },
  }
}

function retrieve({ api, object }: FetchInput<SubscriptionApi>): Promise<SubscriptionObject> {
  return api.subscription(object.value)
}

function currentOf(input: MirrorInput): SubscriptionObject | null {
  return input.current as SubscriptionObject | null
}

function decideSubscription(
  current: SubscriptionObject | null,
): MirrorDecision<keyof typeof states> {
  if (current === null) return mirrored({ to: 'gone', reason: 'the provider has it no longer' })
  const { status, cancel_at: cancelAt, items, metadata } = current
  const to = status as keyof typeof states
  if (!('entitles' in states[to])) return mirrored({ to })
  const [first] = items.data
  const began = first?.current_period_start ?? current.current_period_start ?? 0
  const ends = [
    ...(status === 'past_due' ? [began + grace] : []),
    ...(cancelAt === null ? [] : [cancelAt]),
  ]
  const validUntil = ends.length === 0 ? null : new Date(Math.min(...ends) * 1000)
  const subject = `org:${metadata.org}`
  const entitle = items.data.map(({ price, quantity }) =>
    price.lookup_key === 'team_monthly'
      ? { subject, entitlement: 'team', quantity, validUntil }
      : { subject, entitlement: 'pro', validUntil },
  )
  return mirrored({ to, subject, entitle })
}
