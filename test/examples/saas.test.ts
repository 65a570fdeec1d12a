import type Stripe from 'stripe'
import { describe, expect, it } from 'vitest'
import { histories } from '../../examples/saas/histories.ts'
import { saas } from '../../examples/saas/saas.ts'
import {
  everyOrder,
  invoicePaid,
  play,
  subscription,
  subscriptionDeleted,
  subscriptionUpdated,
  type Play,
} from '../../src/testing/index.ts'
import { expectedTeams, type ExpectedTeam } from '../../src/testing/simulation/expected-teams.ts'
import { prepareTeamCatalog, TeamLife } from '../../src/testing/simulation/team-life.ts'
import { planTeam, teamScenarios } from '../../src/testing/simulation/team-scenarios.ts'
import { createRandom } from '../../src/testing/stripe-double/random.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../src/testing/stripe-double/stripe-double.ts'
import { checkConfluence } from '../../src/workflow/confluence.ts'

/** The app in memory, with this provider. */
function appOf(double: StripeDouble): Play {
  return play([saas], {
    now: new Date(),
    entitlements: { team: 'sum' },
    sources: {
      stripe: {
        present: ({ value }) => double.find('subscription', value) ?? null,
      },
    },
  })
}

/** Whole units of what is left of each invoice, as the ledger has it. */
function creditsIn(app: Play, org: string): number {
  const left = new Map<string, bigint>()
  for (const { type, reference, amount, data, reversed } of app
    .orders()
    .flatMap((order) => order.effects)) {
    if (data['org'] !== org || reversed) continue
    const [invoice, sign] = type === 'credits' ? [reference, 1n] : [String(data['invoice']), -1n]
    left.set(invoice, (left.get(invoice) ?? 0n) + sign * (amount ?? 0n))
  }
  return [...left.values()].reduce((sum, amount) => sum + Number(amount / 100n), 0)
}

function found(app: Play, { org }: ExpectedTeam) {
  const entitlements = app.entitlements(`org:${org}`)
  return {
    entitlements: new Map(entitlements.map((each) => [each.entitlement, each.quantity])),
    credits: creditsIn(app, org),
  }
}

describe('the subscriptions of organizations', () => {
  it('end the same in whichever order the events of their histories come', () => {
    const report = checkConfluence([saas], histories)
    expect(report.failures).toEqual([])
    expect(report.checked).toBeGreaterThan(100)
  })

  it('are told by the present state, however old the snapshot is', () => {
    const team = { id: 'sub_1', metadata: { org: '7' }, price: 'team_monthly', quantity: 3 }
    const app = play([saas], {
      sources: { stripe: { present: () => subscription({ ...team, quantity: 5 }) } },
    })
    app.deliver(subscriptionUpdated({ ...team, status: 'past_due' }))
    expect(app.order('sub_1').state).toBe('active')
    expect(app.entitlements('org:7')).toMatchObject([{ entitlement: 'team', quantity: 5 }])
  })

  it('are left alone where their metadata names no organization', () => {
    const app = play([saas], { sources: { stripe: { present: () => null } } })
    const [entry] = app.deliver(subscriptionUpdated({ id: 'sub_2', metadata: {} }))
    expect(entry?.state).toBe('deferred')
    expect(app.orders()).toEqual([])
  })

  it('that are gone entitle to nothing, and their credits stay', () => {
    const metadata = { org: '7' }
    let current: Stripe.Subscription | null = subscription({ id: 'sub_3', metadata })
    const app = play([saas], { sources: { stripe: { present: () => current } } })
    const paid = { subscription: 'sub_3', subscriptionMetadata: metadata, amount: 4900 }
    app.deliver([subscriptionUpdated({ id: 'sub_3', metadata }), invoicePaid(paid)])
    expect(app.entitlements('org:7')).toMatchObject([{ entitlement: 'pro' }])
    current = null
    app.deliver(subscriptionDeleted({ id: 'sub_3', metadata }))
    expect(app.order('sub_3').state).toBe('gone')
    expect(app.entitlements('org:7')).toEqual([])
    expect(creditsIn(app, '7')).toBe(49)
  })

  it.each(teamScenarios)('%s: ends as the provider says, in any order, with copies', (scenario) => {
    const random = createRandom(`saas ${scenario}`)
    for (let run = 0; run < 5; run++) {
      const double = createStripeDouble({ signingSecret: 'whsec_test', seed: `${scenario} ${run}` })
      const prices = prepareTeamCatalog(double)
      const life = planTeam(scenario, new TeamLife(double, 'org-1', prices, random), random)
      const { events } = double.hold(() => life.steps.forEach((step) => step.run()))
      const app = appOf(double)
      const late = random.shuffle([...events, ...events.filter(() => random.chance(0.3))])
      for (const event of late) app.deliver(event)
      const truth = expectedTeams(double, Date.now())
      for (const { id, state } of truth.subscriptions) expect(app.order(id).state).toBe(state)
      const [team] = truth.teams
      const { entitlements, credits } = team!
      expect(found(app, team!)).toEqual({ entitlements, credits })
      expect(app.findings()).toEqual([])
    }
  })

  it('change while their events come: each look sees what is there then', () => {
    const random = createRandom('changing')
    for (const scenario of teamScenarios) {
      const double = createStripeDouble({ signingSecret: 'whsec_test', seed: scenario })
      const prices = prepareTeamCatalog(double)
      const life = planTeam(scenario, new TeamLife(double, 'org-1', prices, random), random)
      const app = appOf(double)
      const waiting: Stripe.Event[] = []
      for (const step of life.steps) {
        waiting.push(...double.hold(step.run).events)
        for (const event of random.shuffle(waiting.splice(0))) {
          // half of them come after the next step, when they are snapshots of the past
          if (random.chance(0.5)) waiting.push(event)
          else app.deliver(event)
        }
      }
      for (const event of waiting) app.deliver(event)
      const truth = expectedTeams(double, Date.now())
      for (const { id, state } of truth.subscriptions)
        expect([scenario, app.order(id).state]).toEqual([scenario, state])
      const [team] = truth.teams
      const { entitlements, credits } = team!
      expect([scenario, found(app, team!)]).toEqual([scenario, { entitlements, credits }])
    }
  })
})

describe('everyOrder', () => {
  it('plays a life at the simulated provider in every order', () => {
    const double = createStripeDouble({ signingSecret: 'whsec_test', seed: 'every order' })
    const random = createRandom('every order')
    const life = new TeamLife(double, 'org-1', prepareTeamCatalog(double), random)
    life.begin({ periods: 1 }).renew('failed').refundFirst()
    const { events } = double.hold(() => life.steps.forEach((step) => step.run()))
    const types = /^(?:customer\.subscription|invoice\.paid|invoice_payment|refund\.created)/
    const [current] = double.all('subscription')
    const report = everyOrder(
      events.filter((event) => types.test(event.type)),
      saas,
      { present: { [`subscription ${current!.id}`]: current! }, samples: 200 },
    )
    expect(report.sampled).toBe(true)
    expect(report.orders).toBeGreaterThan(199)
  })
})
