import { afterEach, describe, expect, it } from 'vitest'
import type { EntitlementChange, Hookledger } from 'hookledger'
import { createHookledger } from 'hookledger'
import { Adoption } from '../../src/compose/adopt.ts'
import { createRedecider } from '../../src/compose/redecide.ts'
import { endShadow } from '../../src/compose/shadow.ts'
import { partsOf } from '../../src/hookledger.ts'
import { skip, type Decision } from '../../src/workflow/decision.ts'
import { checkoutSessionCompleted } from '../../src/testing/stripe-events.ts'
import { createProbe, probe, probeWorkflow, type ProbeHooks } from '../support/probe.ts'
import { createRepairBench } from '../support/repair-bench.ts'
import { createShop, shopOptions } from '../support/shop.ts'
import { writeTemporary } from '../support/temporary-file.ts'

const by = { reason: 'the outage of May 3', actor: 'ada' }
const ada = 'email:ada@example.com'

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})
const closed = <T extends { close(): Promise<void> }>(bench: T): T => {
  closing.push(() => bench.close())
  return bench
}

/** What a process that works hears after somebody else has written. */
async function heardBy(hookledger: Hookledger): Promise<string[]> {
  const heard: EntitlementChange[] = []
  const stop = hookledger.onEntitlementsChanged((change) => heard.push(change))
  for (let round = 0; round < 3; round += 1) await hookledger.runOnce({ budgetMs: 5000 })
  // listeners are told beside the work
  await new Promise((resolve) => setTimeout(resolve, 30))
  stop()
  return heard.map(({ subject, orderId, because }) => `${subject} ${orderId} ${because}`)
}

const noted = `select subject, order_id, because,
  decision_id = (select max(decision_id) from ledger_decisions d where d.order_id = c.order_id) as of_the_decision
  from entitlement_changes c order by change_id`

describe('a change of entitlements is noted in its commit, and told once by whoever works,', () => {
  it('where an event is decided anew', async () => {
    const hooks: ProbeHooks = { decide: () => skip('no price is known') as Decision }
    const bench = closed(await createProbe({ workflows: [probeWorkflow(hooks)] }))
    await bench.deliver(probe('pay', { id: 'evt_1', order: 'o1' }))
    await bench.work()
    delete hooks.decide
    const parts = partsOf(bench.hookledger)
    const redecider = createRedecider((await parts.contexts()).work, parts.signals)
    const plan = await redecider.plan({ id: 'evt_1' }, by)
    if (plan.kind !== 'planned') throw new Error('it was decided anew already')
    await redecider.apply(plan, by)
    expect(await bench.rows(noted)).toEqual([
      { subject: 'user:o1', order_id: 'o1', because: 'redecide', of_the_decision: true },
    ])
    expect(await heardBy(bench.hookledger)).toEqual(['user:o1 o1 redecide'])
    expect(await bench.rows(noted)).toEqual([])
  })

  it('where a repair grants what was paid there', async () => {
    const bench = closed(await createRepairBench())
    const payment = bench.provider.pay('r1')
    const finding = await bench.find({ kind: 'paid_there', payment })
    await bench.repairs.apply(finding, by)
    expect(await bench.rows(noted)).toEqual([
      {
        subject: 'email:r1@example.com',
        order_id: 'r1',
        because: 'repair',
        of_the_decision: true,
      },
    ])
    expect(await heardBy(bench.hookledger)).toEqual(['email:r1@example.com r1 repair'])
    expect(await bench.rows(noted)).toEqual([])
  })

  it('where an order is adopted', async () => {
    const shop = closed(await createShop())
    const file = writeTemporary(
      JSON.stringify({
        order: '1001',
        workflow: 'license',
        state: 'paid',
        effects: [{ type: 'license' }],
        entitlements: [{ subject: ada, entitlement: 'pro' }],
      }),
    )
    const adoption = new Adoption(shop.db, partsOf(shop.hookledger).config, file)
    await adoption.write(await adoption.check(), by)
    expect(await shop.rows(noted)).toEqual([
      { subject: ada, order_id: '1001', because: 'adopt', of_the_decision: true },
    ])
    expect(await heardBy(shop.hookledger)).toEqual([`${ada} 1001 adopt`])
    // the same file again changes nothing
    await adoption.write(await adoption.check(), by)
    expect(await shop.rows(noted)).toEqual([])
  })

  it('where a shadow ends, and nowhere while it lasts', async () => {
    const shop = closed(await createShop({ shadow: ['license', 'credits'] }))
    await shop.deliver(checkoutSessionCompleted({ order: '1001', email: 'ada@example.com' }))
    expect(await heardBy(shop.hookledger)).toEqual([])
    const after = createHookledger({ ...shopOptions, database: shop.pool })
    closing.unshift(() => after.stop({ timeoutMs: 2000 }))
    await partsOf(after).register()
    await endShadow(shop.db, partsOf(after).config, 'license', by)
    expect(await shop.rows(noted)).toEqual([
      { subject: ada, order_id: '1001', because: 'shadow', of_the_decision: true },
    ])
    expect(await heardBy(after)).toEqual([`${ada} 1001 shadow`])
    expect(await shop.rows(noted)).toEqual([])
  })
})
