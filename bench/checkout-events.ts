/** Stripe-shaped events of one size, each of an order of its own. */
import { checkoutSessionCompleted } from '../src/testing/stripe-events.ts'

/** An event and the bytes that a provider would send. */
export interface CheckoutEvent {
  readonly id: string
  readonly order: string
  readonly body: Buffer
}

/** Bytes of a body: what a checkout session with a few lines of metadata comes to. */
export const bodyBytes = 2700

/** The event number `index` of a run; `order` when it is not an order of its own. */
export function checkoutEvent(run: string, index: number, order?: string): CheckoutEvent {
  const id = `evt_${run}_${index.toString().padStart(8, '0')}`
  const orderId = order ?? `order-${run}-${index}`
  const event = checkoutSessionCompleted({
    order: orderId,
    id: `cs_${run}_${index}`,
    eventId: id,
    email: `buyer${index}@example.com`,
    paymentIntent: `pi_${run}_${index}`,
  } as never) as unknown as { data: { object: { metadata: Record<string, string> | null } } }
  const { object } = event.data
  object.metadata = { ...object.metadata, note: '' }
  const missing = bodyBytes - Buffer.byteLength(JSON.stringify(event))
  object.metadata['note'] = 'n'.repeat(Math.max(0, missing))
  return { id, order: orderId, body: Buffer.from(JSON.stringify(event)) }
}

/** `count` events, each of its own order. */
export function checkoutEvents(run: string, count: number): CheckoutEvent[] {
  return Array.from({ length: count }, (_, index) => checkoutEvent(run, index))
}
