/** The demo shop's own history, made as the demonstration makes it: many at once, late, twice and out of order. */
import { expect, it } from 'vitest'
import { money } from 'hookledger'
import { runConfiguredDryRun } from '../../src/compose/dry-run.ts'
import { partsOf } from '../../src/hookledger.ts'
import type { DryRunDifference } from '../../src/inbox/dry-run-compare.ts'
import { demoChances } from '../../src/testing/simulation/delivery-plan.ts'
import { runSimulation } from '../../src/testing/simulation/run-simulation.ts'
import { createStripeDouble } from '../../src/testing/stripe-double/stripe-double.ts'
import type { WebhookSender } from '../../src/testing/stripe-double/webhook-sender.ts'
import { createShop, shopSecret } from '../support/shop.ts'

it('finds nothing in the demo shop’s simulation under the shop’s own code', async () => {
  const shop = await createShop()
  const double = createStripeDouble({ signingSecret: shopSecret, seed: 'dry run' })
  try {
    const acknowledged = new Set<string>()
    const sender: WebhookSender = {
      send: async (event) => {
        if ((await shop.deliver(event)) !== 200) return 'gave_up'
        acknowledged.add(event.id)
        return 'acknowledged'
      },
      lose: () => {},
      isAcknowledged: (id) => acknowledged.has(id),
      counts: () => ({ attempts: 0, acknowledged: acknowledged.size, failed: 0, gaveUp: 0 }),
      idle: async () => {},
      close: async () => {},
    }
    let isOver = false
    const working = (async () => {
      while (!isOver) await shop.hookledger.runOnce({ budgetMs: 200 })
    })()
    const { counts } = await runSimulation({
      double,
      sender,
      orders: 60,
      seed: 'dry run',
      spreadMs: 1000,
      chances: demoChances,
      openOrder: async ({ id, subject, amount, currency }) => {
        const opening = { id, workflow: 'license', subject, expected: money(amount, currency) }
        await shop.hookledger.openOrder(shop.pool, opening)
      },
    })
    isOver = true
    await working
    await shop.work()
    expect(counts.openedFirst).toBeGreaterThan(0)
    expect(counts.openedLate).toBeGreaterThan(0)

    const found: DryRunDifference[] = []
    const { config } = partsOf(shop.hookledger)
    const report = await runConfiguredDryRun(shop.db, config, new Date(0), {
      onDifference: (each) => found.push(each),
    })
    expect(found).toEqual([])
    expect(report.orders).toBeGreaterThanOrEqual(60)
  } finally {
    double.close()
    await shop.close()
  }
}, 60_000)
