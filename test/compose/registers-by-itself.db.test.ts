import { afterEach, describe, expect, it } from 'vitest'
import { money } from 'hookledger'
import { signStripe } from '../../src/testing/sign.ts'
import { checkoutSessionCompleted, stripeBody } from '../../src/testing/stripe-events.ts'
import { createBench, type Bench } from '../support/hookledger-database.ts'
import { shopOptions, shopSecret } from '../support/shop.ts'

let bench: Bench | undefined
afterEach(async () => {
  await bench?.close()
  bench = undefined
})

/** A schema that was migrated, and a Hookledger that nothing has started. */
async function unstarted(): Promise<Bench> {
  bench = await createBench(shopOptions)
  return bench
}

function delivery(order: string): { body: string; headers: Readonly<Record<string, string>> } {
  const body = stripeBody(checkoutSessionCompleted({ order }))
  return { body, headers: signStripe(body, shopSecret) }
}

describe('a host that never starts a worker', () => {
  it('works off events with runOnce on a schema that was only migrated', async () => {
    const { hookledger, rows } = await unstarted()
    const { body, headers } = delivery('1')
    await hookledger.ingest({ source: 'stripe', headers, rawBody: Buffer.from(body) })
    expect(await hookledger.runOnce({ budgetMs: 10_000 })).toEqual({
      events: 1,
      operations: 1,
      idle: true,
    })
    expect(await rows(`select state from orders`)).toEqual([{ state: 'paid' }])
  })

  it('works off an event after its answer with waitUntil', async () => {
    const { hookledger, rows } = await unstarted()
    const { body, headers } = delivery('1')
    const request = new Request('http://shop/webhooks/stripe', { method: 'POST', body, headers })
    const work: Promise<unknown>[] = []
    const response = await hookledger.receive(request, {
      source: 'stripe',
      waitUntil: (each) => work.push(each),
    })
    expect(response.status).toBe(200)
    await Promise.all(work)
    expect(await rows(`select state from orders`)).toEqual([{ state: 'paid' }])
  })

  it('opens an order inside a checkout before anything else has run', async () => {
    const { hookledger, pool, rows } = await unstarted()
    const client = await pool.connect()
    try {
      await client.query('begin')
      const order = {
        id: '1',
        workflow: 'license',
        subject: 'user:1',
        expected: money(4900, 'usd'),
      }
      expect(await hookledger.openOrder(client, order)).toBe('created')
      await client.query('commit')
    } finally {
      client.release()
    }
    expect(await rows(`select order_id, state from orders`)).toEqual([
      { order_id: '1', state: 'pending' },
    ])
  })
})
