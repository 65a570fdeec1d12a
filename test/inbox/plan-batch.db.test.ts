import { afterEach, describe, expect, it } from 'vitest'
import {
  defineWorkflow,
  fulfill,
  move,
  names,
  orderId,
  standardWebhooks,
  waitFor,
} from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { signStandardWebhook } from '../../src/testing/sign.ts'
import { createBench, type Bench } from '../support/hookledger-database.ts'

const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`

interface Body {
  readonly type: string
  readonly data: { readonly order?: string; readonly token: string }
}

const sale = defineWorkflow('sale', {
  sources: ['shop'],
  initial: 'open',
  opens: 'app',
  states: { open: {}, paid: {} },
  transitions: { open: ['paid'] },
  effects: { sold: {}, shipped: {} },
})
  .on('paid', {
    order: ({ event }) => orderId((event as unknown as Body).data.order ?? ''),
    learn: ({ event }) => names({ token: (event as unknown as Body).data.token }),
    decide: () => fulfill({ to: 'paid', effects: [{ type: 'sold' }] }),
  })
  .on('shipped', {
    order: ({ event }) => waitFor(names({ token: (event as unknown as Body).data.token })),
    decide: () => move({ to: 'paid', once: { type: 'shipped' } }),
  })

let bench: Bench | undefined
afterEach(() => bench?.close())

async function deliver(hookledger: Bench['hookledger'], id: string, body: Body): Promise<void> {
  const text = JSON.stringify(body)
  const headers = signStandardWebhook(text, secret, { id })
  expect(
    (await hookledger.ingest({ source: 'shop', headers, rawBody: Buffer.from(text) })).status,
  ).toBe(200)
}

describe('names in a batch', () => {
  it.each([
    ['in one batch', false],
    ['one at a time', true],
  ])('are not bound by an event whose order nobody opened (%s)', async (_, oneByOne) => {
    bench = await createBench({
      environment: 'test',
      sources: { shop: standardWebhooks({ secrets: [secret] }) },
      workflows: [sale],
    })
    const { hookledger, pool, rows } = bench
    await partsOf(hookledger).register()
    await hookledger.openOrder(pool, { id: 'Y', workflow: 'sale', subject: 'user:1' })
    const events: [string, Body][] = [
      ['m1', { type: 'paid', data: { order: 'X', token: 'N' } }],
      ['m2', { type: 'paid', data: { order: 'Y', token: 'N' } }],
      ['m3', { type: 'shipped', data: { token: 'N' } }],
    ]
    for (const [id, body] of events) {
      await deliver(hookledger, id, body)
      if (oneByOne) await hookledger.runOnce({ budgetMs: 5000 })
    }
    await hookledger.runOnce({ budgetMs: 5000 })
    expect(await rows(`select order_id, state from orders`)).toEqual([
      { order_id: 'Y', state: 'paid' },
    ])
    expect(await rows(`select event_id, state from webhook_inbox order by event_id`)).toEqual([
      { event_id: 'm1', state: 'deferred' },
      { event_id: 'm2', state: 'processed' },
      { event_id: 'm3', state: 'processed' },
    ])
    expect(await rows(`select kind from findings`)).toEqual([])
  })
})
