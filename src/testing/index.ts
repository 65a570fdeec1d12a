/**
 * What users import in their tests: names only.
 */
export { everyOrder, OrderMattersError } from './every-order.ts'
export type { EveryOrderOptions, EveryOrderReport } from './every-order.ts'
export { play } from './play.ts'
export type { CurrentEntitlement, Play, PlayLink, PlayOpening, PlayOptions } from './play.ts'
export type { PlayAnswering } from './play-provider.ts'
export type { Deliverable, PlayDelivery, PlaySource } from './play-sources.ts'
export type { ExplainedDecision, InboxEntry, PlayedOrder, SentOperation } from './play-views.ts'
export type { PlayDestination, PlayDestinations } from '../workflow/play-outbox.ts'
export { signStandardWebhook, signStripe } from './sign.ts'
export * from './stripe-events.ts'
export { subscription } from './stripe-subscription-objects.ts'
