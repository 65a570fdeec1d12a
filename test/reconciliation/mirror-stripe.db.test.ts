/** Subscriptions of the simulated Stripe of which most events never arrived: passes over its records alone. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { custom, stripe } from 'hookledger'
import { setup } from '../../examples/saas/credits.ts'
import { saas } from '../../examples/saas/saas.ts'
import { reportTeams, type TeamsReport } from '../../src/cli/simulate-teams.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { PassOptions, RunReport } from '../../src/reconciliation/pass-report.ts'
import { audit, defaultAuditLimits } from '../../src/report/audit.ts'
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

const secret = 'whsec_of_lost_events_0123456789'
const orgs = teamScenarios.map((scenario) => `org-${scenario}`)
const objects = [
  'checkout.session',
  'subscription',
  'invoice',
  'invoice_payment',
  'payment_intent',
  'refund',
  'dispute',
]
let double: StripeDouble
let served: ServedDouble
let bench: Bench

beforeAll(async () => {
  // everything happened half an hour ago: every pass lists all of it
  const clock = (): number => Date.now() - 1_800_000
  double = createStripeDouble({ signingSecret: secret, seed: 'lost', clock })
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
    gather: { callsPerSecond: 10_000, callsPerSecondPerAccount: 10_000 },
    reconcile: { callsPerSecond: 10_000, lagMs: 0 },
  })
  await bench.pool.query(
    `update hookledger.installation set created_at = now() - interval '3 hours'`,
  )
  await setup(bench.pool)
  await live()
}, 60_000)
afterAll(async () => {
  await bench.close()
  await served.close()
  double.close()
})

/** Every organization's life; a fifth of the events arrives. */
async function live(): Promise<void> {
  const random = createRandom('lost')
  const prices = prepareTeamCatalog(double)
  const lives = teamScenarios.map((scenario) => {
    const own = random.fork(scenario)
    return planTeam(scenario, new TeamLife(double, `org-${scenario}`, prices, own), own).steps
  })
  for (let at = 0; lives.some((steps) => at < steps.length); at++) {
    const { events } = double.hold(() => lives.forEach((steps) => steps[at]?.run()))
    for (const event of events.filter(() => random.chance(0.2))) {
      const rawBody = Buffer.from(stripeBody(event))
      const headers = signStripe(rawBody.toString(), secret)
      await bench.hookledger.ingest({ source: 'stripe', headers, rawBody })
    }
    await bench.hookledger.runOnce({ budgetMs: 2000 })
  }
}

async function pass(options: Partial<PassOptions> = {}): Promise<RunReport> {
  const reconciler = await partsOf(bench.hookledger).reconciler({ decides: true })
  const { runs } = await reconciler.pass({ how: 'manual', actor: 'test', ...options })
  const [run] = runs
  if (run === undefined) throw new Error('there was no run')
  return run
}

const report = async (): Promise<TeamsReport> => (await reportTeams(bench.db, double, orgs))!

describe('a pass over subscriptions whose events were lost', () => {
  it('brings every order to what the provider has, by objects alone', async () => {
    expect((await report()).differences).not.toEqual([])
    expect(await pass({ kinds: objects })).toMatchObject({ state: 'complete', error: null })
    // what the first brings may be what something of the second waits for
    await pass({ kinds: objects })
    expect((await report()).differences).toEqual([])
    const looks = await bench.pool.query(
      `select 1 from hookledger.inbox_events where event_id like 'object:subscription:%:look-%' and via = 'reconciliation'`,
    )
    expect(looks.rows.length).toBeGreaterThan(5)
  })

  it('changes nothing when it is done again, and neither do the events when they are found', async () => {
    expect(await pass({ kinds: objects })).toMatchObject({ injected: 0, opened: 0 })
    expect(await pass({ kinds: objects })).toMatchObject({ injected: 0, opened: 0 })
    const before = await bench.pool.query(
      'select order_id, state from hookledger.orders order by 1',
    )
    expect((await pass()).injected).toBeGreaterThan(0)
    expect(await pass()).toMatchObject({ state: 'complete', injected: 0, opened: 0 })
    const after = await bench.pool.query('select order_id, state from hookledger.orders order by 1')
    expect(after.rows).toEqual(before.rows)
    expect((await report()).differences).toEqual([])
  })

  it('leaves no finding open, and every promise as it is', async () => {
    const open = await bench.pool.query(
      `select kind, order_id, evidence from hookledger.findings where state in ('open', 'repairing')`,
    )
    expect(open.rows).toEqual([])
    const { checks } = await audit(bench.db, { ...defaultAuditLimits, pendingMs: 60_000 })
    expect(checks.filter((check) => !check.holds)).toEqual([])
  })

  it('gives no other grace for another unpaid period, and is quiet about it', async () => {
    const late = double
      .all('subscription')
      .find(({ metadata }) => metadata['org'] === 'org-past_due_too_long')!
    const until = async (): Promise<unknown> =>
      (
        await bench.pool.query(
          'select state, entitlement, valid_until from hookledger.entitlements e join hookledger.orders using (order_id) where order_id = $1',
          [late.id],
        )
      ).rows
    const before = await until()
    expect(before).toMatchObject([{ state: 'past_due', entitlement: 'team' }])
    const start = late.items.data[0]!.current_period_start
    double.renewSubscription(late.id, { outcome: 'failed' })
    const now = double.all('subscription').find(({ id }) => id === late.id)!
    expect(now).toMatchObject({ status: 'past_due' })
    expect(now.items.data[0]!.current_period_start).toBeGreaterThan(start)
    await pass()
    await pass()
    expect(await until()).toEqual(before)
    expect(await pass({ kinds: objects })).toMatchObject({ injected: 0, opened: 0 })
    const open = await bench.pool.query(
      `select kind from hookledger.findings where state in ('open', 'repairing')`,
    )
    expect(open.rows).toEqual([])
  })
})
