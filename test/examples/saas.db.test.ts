import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { custom, stripe } from 'hookledger'
import { setup } from '../../examples/saas/credits.ts'
import { saas } from '../../examples/saas/saas.ts'
import { reportTeams, subscriptionsOf, type TeamsReport } from '../../src/cli/simulate-teams.ts'
import { audit, defaultAuditLimits } from '../../src/report/audit.ts'
import { isWorkedOff } from '../../src/report/summary.ts'
import { signStripe } from '../../src/testing/sign.ts'
import { prepareTeamCatalog, TeamLife } from '../../src/testing/simulation/team-life.ts'
import { planTeam, teamScenarios } from '../../src/testing/simulation/team-scenarios.ts'
import { createRandom } from '../../src/testing/stripe-double/random.ts'
import { serveStripeDouble, type ServedDouble } from '../../src/testing/stripe-double/serve.ts'
import {
  createStripeDouble,
  type StripeDouble,
} from '../../src/testing/stripe-double/stripe-double.ts'
import { stripeBody } from '../../src/testing/stripe-events.ts'
import { createBench, type Bench } from '../support/hookledger-database.ts'

const secret = 'whsec_of_organizations_0123456789'
const orgs = teamScenarios.map((scenario) => `org-${scenario}`)
let double: StripeDouble
let served: ServedDouble
let bench: Bench

/** Every organization's life, one step of each after the other; every event twice, late, in no order. */
async function live(): Promise<void> {
  const random = createRandom('organizations')
  const prices = prepareTeamCatalog(double)
  const lives = teamScenarios.map((scenario) => {
    const own = random.fork(scenario)
    return planTeam(scenario, new TeamLife(double, `org-${scenario}`, prices, own), own).steps
  })
  const waiting: object[] = []
  for (let at = 0; lives.some((steps) => at < steps.length); at++) {
    const { events } = double.hold(() => lives.forEach((steps) => steps[at]?.run()))
    waiting.push(...events, ...events.filter(() => random.chance(0.3)))
    await deliver(random.shuffle(waiting.splice(0, Math.ceil(waiting.length / 2))))
  }
  await deliver(random.shuffle(waiting))
}

async function deliver(events: readonly object[]): Promise<void> {
  await Promise.all(
    events.map(async (event) => {
      const rawBody = Buffer.from(stripeBody(event))
      const headers = signStripe(rawBody.toString(), secret)
      const { status } = await bench.hookledger.ingest({ source: 'stripe', headers, rawBody })
      expect(status).toBe(200)
    }),
  )
  await work()
}

async function work(): Promise<void> {
  do await bench.hookledger.runOnce({ budgetMs: 1000 })
  while (!(await isWorkedOff(bench.db)))
}

async function report(): Promise<TeamsReport> {
  return (await reportTeams(bench.db, double, orgs))!
}

beforeAll(async () => {
  double = createStripeDouble({ signingSecret: secret, seed: 'organizations' })
  served = await serveStripeDouble(double)
  bench = await createBench({
    environment: 'test',
    sources: {
      stripe: stripe({
        environment: 'test',
        signingSecrets: [secret],
        apiKey: 'sk_test_123',
        apiBase: served.url,
      }),
    },
    workflows: [saas],
    destinations: { email: custom({ contract: { idempotency: 'none' }, call: async () => {} }) },
    entitlements: { team: 'sum' },
    gather: { callsPerSecond: 1000, callsPerSecondPerAccount: 1000 },
  })
  await setup(bench.pool)
  await live()
}, 60_000)

afterAll(async () => {
  await bench.close()
  await served.close()
  double.close()
})

describe('organizations on a real database', () => {
  it('end as the provider has them: states, access, seats, credits and refunds', async () => {
    const found = await report()
    expect(found.differences).toEqual([])
    expect(found.organizations).toBe(teamScenarios.length)
    expect(found.subscriptions).toBe(teamScenarios.length + 2)
    expect(Object.keys(found.states).length).toBeGreaterThan(6)
    expect(found.seats).toBeGreaterThan(20)
  })

  it('were asked about less often than events spoke of them', async () => {
    const { hints, requests, example } = await report()
    expect(requests).toBeLessThan(hints)
    const calls = double.log.entries('api_call').filter((call) => call.method === 'GET')
    const looks = calls.filter(({ path }) => path.startsWith('/v1/subscriptions/'))
    expect(looks.length).toBe(requests)
    // of those that were past due, their invoices as well
    expect(calls.length - looks.length).toBeLessThan(requests / 4)
    expect(subscriptionsOf(double, orgs)).toContain(example)
  })

  it('leave every promise as it is', async () => {
    const { checks } = await audit(bench.db, { ...defaultAuditLimits, pendingMs: 60_000 })
    expect(checks.filter((check) => !check.holds)).toEqual([])
  })

  it('are looked at again by every event that comes, which changes nothing', async () => {
    const before = await report()
    const [id] = subscriptionsOf(double, ['org-monthly'])
    const again = double.hold(() => double.changeSubscription(id!, { metadata: { note: '1' } }))
    await deliver(again.events)
    const after = await report()
    expect(after.requests).toBe(before.requests + 1)
    expect({ ...after, hints: 0, requests: 0 }).toEqual({ ...before, hints: 0, requests: 0 })
  })

  it('that somebody changed by hand are named, one line each', async () => {
    const [moved] = subscriptionsOf(double, ['org-paused'])
    await bench.pool.query(`update orders set state = 'unpaid' where order_id = $1`, [moved])
    await bench.pool.query(`delete from saas.credit_entries where org = 'org-monthly'`)
    const monthly = subscriptionsOf(double, ['org-monthly'])
    await bench.pool.query(`update entitlements set active = false where order_id = any ($1)`, [
      monthly,
    ])
    const { differences } = await report()
    expect(differences).toEqual([
      `subscription ${moved} of org-paused is unpaid, the provider says paused`,
      expect.stringMatching(/^org-monthly may use: nothing, the provider says \d team$/),
      expect.stringMatching(/^org-monthly has credits: 0, the provider says \d+$/),
    ])
  })
})
