/**
 * Histories that a provider can produce as well, made from those that a workflow has: the same facts told twice, told at
 * other times, and everything paid back.
 */
import { chargeRefunded, refundCreated } from '../../testing/stripe-events.ts'
import { factsOfBody } from '../../workflow/body-event.ts'
import { shuffled, type Random } from '../../workflow/orderings.ts'
import type { History, Workflow } from '../../workflow/workflow.ts'
import type { Standing } from '../messages.ts'

type Body = Readonly<Record<string, unknown>>

/** What `gather` finds out, for events under other ids too. */
function gatheredToo(
  history: History,
  ids: ReadonlyMap<string, string>,
): Pick<History, 'gathered'> {
  const { gathered } = history
  if (gathered === undefined) return {}
  const more = [...ids].flatMap(([id, twin]) => (id in gathered ? [[twin, gathered[id]]] : []))
  return { gathered: { ...gathered, ...(Object.fromEntries(more) as object) } }
}

/** Every event again under another id, as Stripe says that it may happen; null where an event has no id. */
export function toldTwice(history: History): History | null {
  const ids = new Map<string, string>()
  const twins = history.events.map((event) => {
    const { id } = event as Body
    if (typeof id !== 'string') return null
    ids.set(id, `${id}_again`)
    return { ...event, id: `${id}_again` }
  })
  if (twins.some((each) => each === null)) return null
  return {
    ...history,
    name: `${history.name}, told twice`,
    events: [...history.events, ...twins.filter((each) => each !== null)],
    ...gatheredToo(history, ids),
  }
}

/** The same events made at other times; null where they do not say when they were made. */
export function atOtherTimes(history: History, random: Random | 'reversed'): History | null {
  const count = history.events.length
  const bodies = history.events as readonly Body[]
  if (count < 2 || bodies.some((body) => typeof body['created'] !== 'number')) return null
  const places =
    random === 'reversed'
      ? Array.from({ length: count }, (_, at) => count - 1 - at)
      : shuffled(count, random)
  const first = Math.min(...bodies.map((body) => Number(body['created'])))
  return {
    ...history,
    name: `${history.name}, at other times`,
    events: bodies.map((body, at) => ({ ...body, created: first + (places[at] ?? 0) * 60 })),
  }
}

/** The same events made just now, where they say when they were made. */
export function madeNow(history: History): History {
  const now = Math.ceil(Date.now() / 1000)
  const events = history.events.map((body) =>
    'created' in body ? { ...body, created: now } : body,
  )
  return { ...history, events }
}

/** The events that say that everything was paid back, as Stripe tells it. */
export function refundsOf(standing: readonly Standing[], livemode: boolean): readonly object[] {
  return standing.flatMap(({ payment, amount, currency }) => {
    const refund = {
      id: `re_drill_${payment}`,
      paymentIntent: payment,
      amount,
      currency: currency.toLowerCase(),
      livemode,
    }
    const refunded = chargeRefunded({
      paymentIntent: payment,
      amount,
      currency: currency.toLowerCase(),
      livemode,
    })
    return [refundCreated(refund), refunded]
  })
}

/** Whether a workflow follows objects of the provider: what they are decides then, and no refund of one payment. */
export function isMirror(workflow: Workflow): boolean {
  return [...workflow.handlers.values()].some((handler) => handler.mirror !== undefined)
}

/** Whether something of a history is paid back already: of what is left nobody can pay back the whole. */
export function isPaidBack(history: History): boolean {
  return history.events.some((event) => /refund|dispute/.test(factsOfBody(event).eventType))
}

/** Whether an event says that it happened for real. */
export function isLive(history: History): boolean {
  return history.events.some((event) => factsOfBody(event).environment === 'live')
}
