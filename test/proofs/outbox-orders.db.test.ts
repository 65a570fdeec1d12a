import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { money } from '../../src/core/money.ts'
import { defer, fulfill, operation, type Decision } from '../../src/workflow/decision.ts'
import type { DecideInput, Workflow } from '../../src/workflow/workflow.ts'
import {
  startAdversary,
  type Act,
  type AdversarialDestination,
} from '../support/adversarial-destination.ts'
import { createOutboxProof, type OutboxProof } from '../support/outbox-proof.ts'
import { probe, probeWorkflow, until } from '../support/probe.ts'
import { seededRandom } from '../support/seeded-random.ts'

/** Letters that make sense only while the order is paid, parcels that always do, and what waits for a parcel. */
function workflow(): Workflow {
  return probeWorkflow({
    decide: ({ event, order, operations }: DecideInput): Decision | undefined => {
      if (event['type'] === 'pay')
        return fulfill({
          to: 'paid',
          payment: { id: `pay_${order.id}`, money: money(4900, 'usd') },
          effects: [
            {
              type: 'grant',
              send: [
                { to: 'letter', body: { order: order.id }, while: ['paid'] },
                { to: 'parcel', body: { order: order.id } },
              ],
            },
          ],
          entitle: [{ subject: `user:${order.id}`, entitlement: 'pro' }],
        }) as Decision
      if (event['type'] !== 'after') return undefined
      const parcel = operations.find(({ destination }) => destination === 'parcel')
      if (parcel?.state !== 'sent')
        return defer({ missing: operation('grant', { to: 'parcel' }) }) as Decision
      return fulfill({ effects: [{ type: 'after', data: { ...parcel.receipt } }] }) as Decision
    },
  })
}

const orders = 40
const faults: readonly Act[] = [
  'works_and_resets',
  'works_and_answers_500',
  'resets',
  'answers_500',
  'works_and_says_nothing',
  { does: 'asks_to_wait', status: 429, retryAfter: '0' },
]

let bench: OutboxProof
let letter: AdversarialDestination
let parcel: AdversarialDestination
beforeAll(async () => {
  const random = seededRandom(42)
  const script = (): Act =>
    random() < 0.4 ? (faults[Math.floor(random() * faults.length)] ?? 'works') : 'works'
  // every fifth parcel is refused for good, whatever else happens on the way
  const seen = new Map<string, number>()
  letter = await startAdversary({ script })
  parcel = await startAdversary({
    script: ({ operation: id }) => {
      const number = seen.get(id) ?? seen.size
      seen.set(id, number)
      return number % 5 === 4 ? 'refuses' : script()
    },
  })
  // few at a time, so that orders leave their state while their letters wait
  const declared = { contract: { concurrency: 2 } }
  bench = await createOutboxProof(
    { letter: { adversary: letter, declared }, parcel: { adversary: parcel } },
    workflow(),
  )
  const ids = await bench.pay(orders)
  await bench.start(2)
  await bench.probe.deliver(...ids.map((order) => probe('after', { order })))
  await bench.probe.deliver(
    ...ids.filter((_, at) => at % 2 === 1).map((order) => probe('refund', { order })),
  )
  await bench.expectQuiet(40_000)
  await until(
    () => bench.probe.rows(`select 1 from inbox_ready`),
    (rows) => rows.length === 0,
  )
}, 90_000)
afterAll(async () => {
  await bench.close()
  await Promise.all([letter.close(), parcel.close()])
})

const states = (destination: string): Promise<Record<string, unknown>[]> =>
  bench.probe.rows(
    `select w.state, o.state as of_order, count(*)::int as n from outbox_operations w
     join orders o on o.order_id = w.order_id where w.destination = $1 group by 1, 2 order by 1, 2`,
    [destination],
  )

describe('operations of orders that go on meanwhile', () => {
  it('are canceled where their order left the states in which they make sense, and only before they were done', async () => {
    const rows = await states('letter')
    const count = (state: string): number =>
      rows.filter((row) => row['state'] === state).reduce((sum, row) => sum + Number(row['n']), 0)
    expect(count('canceled')).toBeGreaterThan(0)
    expect(count('sent') + count('canceled')).toBe(orders)
    expect(rows.filter((row) => row['state'] === 'canceled')).toEqual([
      { state: 'canceled', of_order: 'refunded', n: count('canceled') },
    ])
    // no canceled one was done: what was done is what was sent
    expect(letter.log.applications().size).toBe(count('sent'))
  })

  it('are sent whatever their order does, where nothing else was said', async () => {
    const dead = orders / 5
    const rows = await states('parcel')
    expect(rows.map(({ state }) => state)).not.toContain('canceled')
    const sent = rows.filter(({ state }) => state === 'sent')
    expect(sent.map((row) => row['of_order'])).toEqual(['paid', 'refunded'])
    expect(sent.reduce((sum, row) => sum + Number(row['n']), 0)).toBe(orders - dead)
    expect(parcel.log.applications().size).toBe(orders - dead)
  })

  it('wake what waits for them, each time with their receipt; what waits for a dead one waits on', async () => {
    const rows = await bench.probe.rows<{
      parcel: string
      after: string
      read: boolean
      n: number
    }>(
      `select p.state as parcel, i.state as after, coalesce(f.data ->> 'id' = p.receipt ->> 'id', false) as read, count(*)::int as n
       from webhook_inbox i join outbox_operations p on p.order_id = i.order_id and p.destination = 'parcel'
       left join fulfillment_effects f on f.order_id = i.order_id and f.effect_type = 'after'
       where i.event_type = 'after' group by 1, 2, 3 order by 1`,
    )
    expect(rows).toEqual([
      { parcel: 'dead', after: 'deferred', read: false, n: orders / 5 },
      { parcel: 'sent', after: 'processed', read: true, n: orders - orders / 5 },
    ])
  })
})
