/** A small history of the shop, delivered and worked off, with what was sent of it. */
import { createHash } from 'node:crypto'
import { stripeBody } from '../../src/testing/stripe-events.ts'
import type { OracleHistory, SentDelivery } from './oracle.ts'
import { askedEffects } from './oracle-license.ts'

/** How a delivery of an event appears in a history. */
export function sent(
  event: object,
  outcome: SentDelivery['outcome'] = 'ok',
  account = 'stripe',
): SentDelivery {
  const { id, livemode } = event as { readonly id: string; readonly livemode: boolean }
  return {
    account,
    environment: livemode ? 'live' : 'test',
    eventId: id,
    sha256: createHash('sha256').update(stripeBody(event)).digest('hex'),
    outcome,
  }
}

/** The history of license events that were each answered 2xx, once for each time they are in the list. */
export function acknowledged(events: readonly object[]): OracleHistory {
  return { deliveries: events.map((event) => sent(event)), effects: askedEffects(events) }
}
