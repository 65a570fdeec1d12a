import { describe, expect, test } from 'vitest'
import { expectedTeams } from '../../../src/testing/simulation/expected-teams.ts'
import { runSimulation } from '../../../src/testing/simulation/run-simulation.ts'
import { prepareTeamCatalog, TeamLife } from '../../../src/testing/simulation/team-life.ts'
import {
  planTeam,
  teamScenario,
  teamScenarios,
  type TeamScenario,
} from '../../../src/testing/simulation/team-scenarios.ts'
import { createRandom } from '../../../src/testing/stripe-double/random.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../../src/testing/stripe-double/stripe-double.ts'
import { createWebhookSender } from '../../../src/testing/stripe-double/webhook-sender.ts'
import { receiveWebhooks } from './webhook-receiver.ts'

const day = 86_400_000

/** What each scenario leaves, written down by hand: the states, the entitlements, paid invoices, refunds that stand. */
const ends: Record<TeamScenario, [states: string, may: string, receipts: number, refunds: number]> =
  {
    monthly: ['active', 'team', 3, 0],
    upgraded: ['active', 'team', 3, 0],
    more_seats: ['active', 'team', 2, 0],
    in_trial: ['trialing', 'team', 0, 0],
    trial_paid: ['active', 'team', 1, 0],
    trial_past_due: ['past_due', 'team', 0, 0],
    recovered: ['active', 'team', 3, 0],
    past_due_too_long: ['past_due', '', 1, 0],
    unpaid: ['unpaid', '', 1, 0],
    lost_for_good: ['canceled', '', 1, 0],
    leaving: ['active', 'team', 2, 0],
    left: ['canceled', '', 1, 0],
    stayed: ['active', 'team', 1, 0],
    canceled: ['canceled', '', 2, 0],
    paused: ['paused', '', 1, 0],
    resumed: ['active', 'team', 2, 0],
    first_refunded: ['active', 'team', 3, 1],
    partly_refunded: ['active', 'team', 2, 1],
    refund_returned: ['active', 'team', 2, 0],
    disputed: ['active', 'team', 2, 0],
    never_paid: ['incomplete_expired', '', 0, 0],
    paid_late: ['active', 'team', 1, 0],
    two_subscriptions: ['active active active', 'pro team', 3, 0],
  }

function lived(scenario: TeamScenario): StripeDouble {
  const double = createStripeDouble({ signingSecret: 'whsec_test', seed: scenario })
  const random = createRandom(scenario)
  const prices = prepareTeamCatalog(double)
  const life = planTeam(scenario, new TeamLife(double, 'org-1', prices, random), random)
  for (const step of life.steps) step.run()
  return double
}

describe('the life of an organization', () => {
  test.each(teamScenarios)('%s ends as it is meant to', (scenario) => {
    const { subscriptions, teams } = expectedTeams(lived(scenario), Date.now())
    const [team] = teams
    expect([
      subscriptions.map((each) => each.state).join(' '),
      [...team!.entitlements.keys()].sort().join(' '),
      team!.receipts,
      team!.refunds,
    ]).toEqual(ends[scenario])
  })

  test('is dated back: its last period is the present one', () => {
    for (const scenario of ['monthly', 'recovered', 'in_trial', 'first_refunded'] as const) {
      const [subscription] = lived(scenario).all('subscription')
      const [item] = subscription!.items.data
      expect(item!.current_period_start * 1000).toBeLessThan(Date.now())
      expect(item!.current_period_end * 1000).toBeGreaterThan(Date.now())
    }
  })

  test('is dealt to every organization in turn', () => {
    const dealt = Array.from({ length: teamScenarios.length }, (_, at) => teamScenario(at))
    expect(new Set(dealt).size).toBe(teamScenarios.length)
    expect(teamScenario(teamScenarios.length)).toBe(teamScenario(0))
  })
})

describe('what must be true of organizations', () => {
  test('past due, access ends three days after the start of the unpaid period', () => {
    const double = lived('trial_past_due')
    const [subscription] = double.all('subscription')
    const start = subscription!.items.data[0]!.current_period_start * 1000
    const may = (at: number) => expectedTeams(double, at).teams[0]!.entitlements.size
    expect([may(start + 3 * day - 1000), may(start + 3 * day)]).toEqual([1, 0])
  })

  test('seats of several subscriptions add up', () => {
    const { entitlements } = expectedTeams(lived('two_subscriptions'), Date.now()).teams[0]!
    expect(Object.fromEntries(entitlements)).toEqual({ team: 7, pro: 1 })
  })

  test('a refund takes the credits of its invoice, in whole units of what is left', () => {
    const credits = (scenario: TeamScenario) =>
      expectedTeams(lived(scenario), Date.now()).teams[0]!.credits
    const paid = (scenario: TeamScenario) =>
      lived(scenario)
        .all('invoice')
        .filter((invoice) => invoice.status === 'paid')
        .map((invoice) => invoice.amount_paid / 100)
    const [first = 0, ...rest] = paid('first_refunded')
    expect(first).toBeGreaterThan(0)
    expect(credits('first_refunded')).toBe(rest.reduce((sum, each) => sum + each, 0))
    const all = paid('partly_refunded').reduce((sum, each) => sum + each, 0)
    expect(credits('partly_refunded')).toBe(all - 7)
    expect(credits('refund_returned')).toBe(
      paid('refund_returned').reduce((sum, each) => sum + each, 0),
    )
  })

  test('others are left out', () => {
    const double = lived('monthly')
    expect(expectedTeams(double, Date.now(), new Set(['org-2'])).teams).toEqual([])
  })
})

describe('a run with organizations', () => {
  test('plays all of them beside the orders, and does not touch what the orders are', async () => {
    await using receiver = await receiveWebhooks('whsec_test')
    const run = async (organizations: number) => {
      const double = createStripeDouble({ signingSecret: 'whsec_test', seed: 'organizations' })
      const sender = createWebhookSender({
        url: receiver.url,
        signingSecret: 'whsec_test',
        firstRetryMs: 5,
      })
      const result = await runSimulation({
        double,
        sender,
        orders: 8,
        organizations,
        seed: 'organizations',
        spreadMs: 0,
      })
      await sender.close()
      return { double, result }
    }
    const { double, result } = await run(teamScenarios.length)
    const without = await run(0)
    expect(result.counts).toMatchObject({ organizations: teamScenarios.length, undelivered: 0 })
    expect(new Set(result.organizations).size).toBe(teamScenarios.length)
    const { subscriptions } = expectedTeams(double, Date.now(), new Set(result.organizations))
    expect(subscriptions).toHaveLength(teamScenarios.length + 2)
    expect(without.result.organizations).toEqual([])
    expect(without.result.orders).toEqual(result.orders)
    expect(without.result.expected).toEqual(result.expected)
    const types = new Set(receiver.received.map((event) => event.type))
    for (const type of [
      'customer.subscription.paused',
      'customer.subscription.deleted',
      'invoice_payment.paid',
      'invoice.voided',
    ])
      expect(types).toContain(type)
  }, 30_000)
})
