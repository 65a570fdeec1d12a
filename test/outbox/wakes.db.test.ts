import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { defer, fulfill, operation, type Decision } from '../../src/workflow/decision.ts'
import type { DecideInput } from '../../src/workflow/workflow.ts'
import { partsOf } from '../../src/hookledger.ts'
import {
  clearHooks,
  createProbe,
  decideProbe,
  probe,
  probeWorkflow,
  type Probe,
  type ProbeHooks,
} from '../support/probe.ts'
import { done, scripted, unknown } from '../support/scripted-destination.ts'

const email = scripted()
const hooks: ProbeHooks = {}
let bench: Probe

beforeAll(async () => {
  bench = await createProbe({
    workflows: [probeWorkflow(hooks)],
    destinations: { email },
    // a net that caught what a wake-up should have would hide that it was lost
    limits: { deferralMs: 3_600_000 },
  })
})
afterAll(() => bench.close())
beforeEach(async () => {
  clearHooks(hooks)
  email.reset()
  await bench.reset()
  hooks.decide = decide
})

/** `pay` sends; `custom` waits until what was sent has a receipt, and records it. */
function decide(input: DecideInput): Decision {
  const { event, operations } = input
  if (event['type'] === 'pay') {
    const decided = decideProbe(input)
    if (!('effects' in decided) || decided.effects === undefined) return decided
    const effects = decided.effects.map((each) => ({
      ...each,
      send: [{ to: 'email', name: 'receipt', body: { order: input.order.id } }],
    }))
    return { ...decided, effects } as Decision
  }
  const [sent] = operations.filter((each) => each.state === 'sent')
  if (sent === undefined) return defer({ missing: operation('grant', { name: 'receipt' }) })
  return fulfill({
    effects: [{ type: 'note', reference: String(sent.receipt?.['id']) }],
  }) as Decision
}

const states = (): Promise<unknown[]> =>
  bench.rows(`select event_type as type, state from webhook_inbox order by event_key`)

/** Decides what is ready, and dispatches nothing. */
async function decideReady(): Promise<void> {
  const rows = await bench.rows<{ key: string }>('select event_key as key from inbox_ready')
  await partsOf(bench.hookledger).workOff(rows.map(({ key }) => BigInt(key)))
}

describe('an event that waits for an operation', () => {
  it('is decided as soon as that is sent, with its receipt', async () => {
    await bench.deliver(probe('pay', { order: '1' }), probe('custom', { order: '1' }))
    await decideReady()
    expect(await states()).toEqual([
      { type: 'pay', state: 'processed' },
      { type: 'custom', state: 'deferred' },
    ])
    const result = await bench.hookledger.runOnce({ budgetMs: 10_000 })
    expect(result).toEqual({ events: 1, operations: 1, idle: true })
    expect(await states()).toEqual([
      { type: 'pay', state: 'processed' },
      { type: 'custom', state: 'processed' },
    ])
    expect(
      await bench.rows(
        `select effect_reference as receipt from fulfillment_effects where effect_type = 'note'`,
      ),
    ).toEqual([{ receipt: 'receipt_1' }])
    expect(await bench.rows('select * from outbox_wakes')).toEqual([])
  })

  it('stays waiting while nobody knows', async () => {
    email.next(unknown)
    await bench.deliver(probe('pay', { order: '1' }), probe('custom', { order: '1' }))
    await bench.hookledger.runOnce({ budgetMs: 10_000 })
    expect((await states())[1]).toEqual({ type: 'custom', state: 'deferred' })
  })

  it('is not missed by an end that meets its decision, at whatever moment', async () => {
    const hookledger = bench.hookledger
    await hookledger.start()
    try {
      for (let round = 0; round < 15; round++) {
        const order = `race-${round}`
        email.next(async () => {
          await new Promise((resolve) => setTimeout(resolve, round * 2))
          return done
        })
        await bench.deliver(probe('pay', { order }))
        await bench.deliver(probe('custom', { order }))
      }
      await expect
        .poll(
          async () => bench.rows(`select event_id from webhook_inbox where state <> 'processed'`),
          {
            timeout: 20_000,
          },
        )
        .toEqual([])
      expect(await bench.rows('select * from outbox_wakes')).toEqual([])
    } finally {
      await hookledger.stop()
    }
  })

  it('is woken once its order is free, when somebody holds that at the moment', async () => {
    await bench.deliver(probe('pay', { order: '9' }), probe('custom', { order: '9' }))
    await decideReady()
    const client = await bench.pool.connect()
    await client.query('begin')
    await client.query(`select from orders where order_id = '9' for update`)
    await bench.hookledger.runOnce({ budgetMs: 5000 })
    expect(await bench.rows('select order_id from outbox_wakes')).toEqual([{ order_id: '9' }])
    await client.query('rollback')
    client.release()
    await bench.hookledger.runOnce({ budgetMs: 5000 })
    await bench.hookledger.runOnce({ budgetMs: 5000 })
    expect((await states())[1]).toEqual({ type: 'custom', state: 'processed' })
  })
})
