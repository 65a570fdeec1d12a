/**
 * What must compile and what must not; checked by the compiler, not run.
 */
import { expectTypeOf } from 'vitest'
import type Stripe from 'stripe'
import type { EventBody, EventNames, NamedEvent, Source } from '../../src/providers/provider.ts'
import type { StandardWebhooksSource } from '../../src/providers/standard-webhooks.ts'
import { standardWebhooks } from '../../src/providers/standard-webhooks.ts'
import type { StripeSource } from '../../src/providers/stripe.ts'
import { stripe } from '../../src/providers/stripe.ts'
import { refund } from '../../src/testing/stripe-charge-objects.ts'
import { stripeEvent } from '../../src/testing/stripe-events.ts'
import type { UntypedBody } from '../../src/workflow/event.ts'

// A Stripe source types each event with Stripe's own types.
expectTypeOf<EventNames<StripeSource>>().toEqualTypeOf<Stripe.Event['type']>()
type Completed = EventBody<StripeSource, 'checkout.session.completed'>
expectTypeOf<Completed>().toEqualTypeOf<Stripe.CheckoutSessionCompletedEvent>()
expectTypeOf<Completed['data']['object']['client_reference_id']>().toEqualTypeOf<string | null>()
expectTypeOf<
  EventBody<StripeSource, 'refund.created'>['data']['object']
>().toEqualTypeOf<Stripe.Refund>()
// @ts-expect-error a misspelled event type
export type Misspelled = EventBody<StripeSource, 'checkout.session.complete'>

// Standard Webhooks takes its types from the user, or none.
interface Paid {
  readonly type: 'invoice.paid'
  readonly data: { readonly id: string }
}
const typed = standardWebhooks<{ 'invoice.paid': Paid }>({ secrets: ['whsec_'] })
expectTypeOf<EventNames<typeof typed>>().toEqualTypeOf<'invoice.paid'>()
expectTypeOf<EventBody<typeof typed, 'invoice.paid'>>().toEqualTypeOf<Paid>()
expectTypeOf<EventNames<StandardWebhooksSource>>().toEqualTypeOf<string>()
expectTypeOf<EventBody<StandardWebhooksSource, 'anything'>>().toEqualTypeOf<UntypedBody>()

// Every source is a Source; one of which nothing is known sends untyped bodies.
expectTypeOf<StripeSource>().toExtend<Source>()
expectTypeOf(typed).toExtend<Source>()
expectTypeOf<EventBody<Source, 'anything'>>().toEqualTypeOf<UntypedBody>()
expectTypeOf<ReturnType<Source['name']>>().toEqualTypeOf<readonly NamedEvent[]>()

// Secrets come from the environment as they are.
stripe({
  signingSecrets: [process.env['STRIPE_WEBHOOK_SECRET']],
  apiKey: process.env['STRIPE_API_KEY'],
})
standardWebhooks({ secrets: [process.env['WEBHOOK_SECRET']] })
// @ts-expect-error a source cannot do without secrets
stripe({})
// @ts-expect-error one secret still is a list
stripe({ signingSecrets: 'whsec_' })
// @ts-expect-error there are two environments
stripe({ signingSecrets: ['whsec_'], environment: 'production' })
// @ts-expect-error a misspelled option
stripe({ signingSecrets: ['whsec_'], tolerance: 300 })

// Factories tie the object to the type.
expectTypeOf(stripeEvent('refund.created', refund())).toEqualTypeOf<Stripe.RefundCreatedEvent>()
expectTypeOf(stripeEvent('made.up', { id: 'x' }).data.object).toExtend<
  Readonly<Record<string, unknown>>
>()
// @ts-expect-error a refund is no checkout session
stripeEvent('checkout.session.completed', refund())
