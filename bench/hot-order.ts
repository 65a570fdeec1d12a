/** `hot-order`: half of all events belong to one order; against the same number of events of as many orders. */
import { defineWorkflow, fulfill, money, orderId } from '../src/index.ts'
import { checkoutEvent, checkoutEvents } from './checkout-events.ts'
import { hookledger } from './contestants/hookledger.ts'
import { ratioOf, runContest } from './contest.ts'
import type { Contestant } from './contestants/contestant.ts'
import type { BenchContext, Report } from './report.ts'

/** A top-up: each payment has an effect of its own, so that one order can have any number of them. */
const topUp = defineWorkflow('license', {
  sources: ['stripe'],
  initial: 'pending',
  states: { pending: {}, paid: { entitles: true } },
  transitions: { pending: ['paid'] },
  effects: { license: {} },
}).on('checkout.session.completed', {
  order: ({ event }) => orderId(event.data.object.client_reference_id),
  decide: ({ event, order }) => {
    const session = event.data.object
    return fulfill({
      to: 'paid',
      payment: {
        id: String(session.payment_intent),
        money: money(session.amount_total ?? 0, session.currency ?? ''),
      },
      effects: [{ type: 'license', reference: session.id }],
      entitle: [{ subject: order.subject, entitlement: 'pro' }],
    })
  },
})

/** Runs the comparison. */
export async function benchHotOrder({ server, options, log }: BenchContext): Promise<Report> {
  const events = Math.ceil(options.events / 4)
  const base = { options: { workflows: [topUp] }, check: async () => {} }
  const even = hookledger({ ...base, name: 'even' })
  const results = await runContest(
    server,
    [
      { contestant: even, events },
      { contestant: withHotOrder(hookledger({ ...base, name: 'hot' })), events },
    ],
    options.rounds,
    log,
  )
  return {
    bench: 'hot-order',
    unit: 'events/s',
    conditions: { share: 'half of the events are of one order' },
    results: [...results.values()].map(({ name, rounds, median }) => ({
      name,
      rounds,
      median: Math.round(median),
    })),
    ratios: { hot_vs_even: ratioOf(results, 'hot', 'even') },
    floors: {},
  }
}

function withHotOrder(contestant: Contestant): Contestant {
  return {
    ...contestant,
    prepare: (round) =>
      contestant.prepare({
        ...round,
        events: checkoutEvents(round.schema, round.events.length).map((event, index) =>
          index % 2 === 0 ? event : checkoutEvent(round.schema, index, 'hot'),
        ),
      }),
  }
}
