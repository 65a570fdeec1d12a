/**
 * Events as signed deliveries, for the same door that production uses, and the ways in which providers deliver: twice,
 * and in any order. Nothing here depends on chance: a seed decides.
 */
import type { Hookledger } from '../hookledger.ts'
import { seededRandom, shuffled } from '../workflow/orderings.ts'
import { signStandardWebhook, signStripe } from './sign.ts'
import { standardWebhookBody, standardWebhookId } from './standard-webhook-events.ts'
import { stripeBody } from './stripe-events.ts'

/** What `hookledger.ingest` takes, whole: also the `{ headers, body }` of a request that a test makes itself. */
export interface SignedDelivery {
  /** The name of the source in the configuration. */
  readonly source: string
  readonly headers: Readonly<Record<string, string>>
  readonly rawBody: Uint8Array
  /** The same bytes, for `fetch` and for `play`. */
  readonly body: string
}

/** Options of {@link stripeDelivery}. */
export interface StripeDeliveryOptions {
  /** The endpoint's signing secret; several while one is rotated. */
  readonly secret: string | readonly string[]
  /** The name of the source; `stripe`. */
  readonly source?: string | undefined
  /** Unix seconds of the attempt; now. */
  readonly timestamp?: number | undefined
}

/**
 * A Stripe event as a signed delivery.
 *
 * @example await hookledger.ingest(stripeDelivery(checkoutSessionCompleted({ order }), { secret }))
 */
export function stripeDelivery(event: object, options: StripeDeliveryOptions): SignedDelivery {
  const body = stripeBody(event)
  const headers = signStripe(body, options.secret, options.timestamp)
  return delivery(options.source ?? 'stripe', headers, body)
}

/** Options of {@link standardWebhookDelivery}. */
export interface StandardWebhookDeliveryOptions {
  /** `whsec_<base64>`; several while one is rotated. */
  readonly secret: string | readonly string[]
  /** The name of the source. */
  readonly source: string
  /** The event's id, the same for every attempt; it follows from the event. */
  readonly id?: string | undefined
  /** Unix seconds of the attempt; now. */
  readonly timestamp?: number | undefined
  /** Which names the headers have; `webhook`. */
  readonly names?: 'webhook' | 'svix' | undefined
}

/**
 * An event of Standard Webhooks as a signed delivery.
 *
 * @example await hookledger.ingest(standardWebhookDelivery(event, { secret, source: 'billing' }))
 */
export function standardWebhookDelivery(
  event: object,
  options: StandardWebhookDeliveryOptions,
): SignedDelivery {
  const body = standardWebhookBody(event)
  const { timestamp, names } = options
  const headers = signStandardWebhook(body, options.secret, {
    id: options.id ?? standardWebhookId(event),
    ...(timestamp !== undefined && { timestamp }),
    ...(names !== undefined && { names }),
  })
  return delivery(options.source, headers, body)
}

function delivery(
  source: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): SignedDelivery & Parameters<Hookledger['ingest']>[0] {
  return { source, headers, rawBody: new TextEncoder().encode(body), body }
}

/** Options of {@link deliverTwice}. */
export interface TwiceOptions {
  /**
   * `at once`: both copies of an event are on their way at the same moment, and the next event comes after them.
   * `later`: every event once, and then every event again. `at once`.
   */
  readonly again?: 'at once' | 'later' | undefined
}

/**
 * Delivers every event twice, as providers do; answers what `deliver` answered to the two copies of each.
 *
 * @example await deliverTwice(events, (event) => hookledger.ingest(stripeDelivery(event, { secret })))
 */
export async function deliverTwice<Event, Answer>(
  events: readonly Event[],
  deliver: (event: Event) => Answer | Promise<Answer>,
  { again = 'at once' }: TwiceOptions = {},
): Promise<(readonly [Answer, Answer])[]> {
  const answers: [Answer, Answer][] = []
  if (again === 'at once') {
    for (const event of events) answers.push(await Promise.all([deliver(event), deliver(event)]))
    return answers
  }
  const first: Answer[] = []
  for (const event of events) first.push(await deliver(event))
  for (const [at, event] of events.entries())
    answers.push([first[at] as Answer, await deliver(event)])
  return answers
}

/**
 * The list in another order, the same one for the same seed (1). The list itself stays as it is.
 *
 * @example for (let seed = 1; seed <= 20; seed++) app.deliver(shuffle(events, seed))
 */
export function shuffle<Item>(list: readonly Item[], seed = 1): Item[] {
  return shuffled(list.length, seededRandom(seed)).map((at) => list[at] as Item)
}
