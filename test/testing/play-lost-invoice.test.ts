import { describe, expect, it } from 'vitest'
import type Stripe from 'stripe'
import { saas } from '../../examples/saas/saas.ts'
import { play, type Play } from '../../src/testing/index.ts'
import { prepareTeamCatalog, TeamLife } from '../../src/testing/simulation/team-life.ts'
import { createRandom } from '../../src/testing/stripe-double/random.ts'
import { createStripeDouble } from '../../src/testing/stripe-double/stripe-double.ts'

const day = 86_400_000

/**
 * An organization that paid once and had its money back. Its invoice came without the organization, which was
 * written on the subscription only later: nothing was credited, but which order the payment is of is known.
 */
function withoutCredits(): { readonly app: Play; readonly invoice: Stripe.Event } {
  const double = createStripeDouble({ signingSecret: 'whsec_test', seed: 'lost invoice' })
  const random = createRandom('lost invoice')
  const life = new TeamLife(double, 'org-1', prepareTeamCatalog(double), random)
  life.begin({ periods: 1 }).refundFirst()
  const { events } = double.hold(() => life.steps.forEach((step) => step.run()))
  const app = play([saas], {
    now: new Date(),
    sources: { stripe: { present: ({ value }) => double.find('subscription', value) ?? null } },
  })
  const [invoice] = events.filter(({ type }) => type === 'invoice.paid')
  if (invoice === undefined) throw new Error('nothing was paid')
  const told = /^(?:customer\.subscription|invoice_payment)/
  app.deliver(events.filter(({ type }) => told.test(type)))
  app.deliver(withoutOrg(invoice))
  app.deliver(events.filter(({ type }) => type === 'refund.created'))
  return { app, invoice }
}

/** The same invoice in an event of its own, before anybody had written down whose it is. */
function withoutOrg(event: Stripe.Event): Stripe.Event {
  const copy = structuredClone(event) as Stripe.InvoicePaidEvent
  const details = copy.data.object.parent?.subscription_details
  if (details == null) throw new Error('the invoice is of no subscription')
  details.metadata = {}
  return { ...copy, id: `${event.id}_early` }
}

const refundsOf = (app: Play): string[] =>
  app
    .inbox()
    .filter(({ eventType }) => eventType === 'refund.created')
    .map(({ state }) => state)

const overdue = (app: Play): readonly unknown[] =>
  app.findings().filter(({ kind }) => kind === 'wait_overdue')

describe('a refund of a subscription whose invoice was not credited', () => {
  it('waits on past its deadline, with a finding, since its order is known', () => {
    const { app } = withoutCredits()
    expect(refundsOf(app)).toEqual(['deferred'])
    expect(overdue(app)).toEqual([])
    app.advance(2 * day)
    expect(refundsOf(app)).toEqual(['deferred'])
    expect(overdue(app)).toMatchObject([
      { figures: { type: 'refund.created', waits_for: expect.stringContaining('effect credits') } },
    ])
  })

  it('is decided when the invoice comes, however late', () => {
    const { app, invoice } = withoutCredits()
    app.advance(30 * day)
    app.deliver(invoice)
    expect(refundsOf(app)).toEqual(['processed'])
  })
})
