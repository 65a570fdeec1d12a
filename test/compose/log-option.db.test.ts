import { afterEach, describe, expect, it } from 'vitest'
import { checkoutSessionCompleted } from '../../src/testing/stripe-events.ts'
import { createShop, type Shop } from '../support/shop.ts'

let shop: Shop | undefined
afterEach(() => shop?.close())

describe('log', () => {
  it('tells the app one line an outcome, of events and of operations, without a body', async () => {
    const lines: [object, string][] = []
    const write = (fields: object, message: string): void => void lines.push([fields, message])
    shop = await createShop({ log: { debug: () => {}, info: write, warn: write, error: write } })
    await shop.deliver(checkoutSessionCompleted({ order: 'log-1', email: 'canary@example.com' }))
    await shop.work()
    const outcomes = lines.filter(([, message]) => message.includes('log-1'))
    expect(outcomes.map(([fields]) => fields)).toMatchObject([
      { to: 'paid' },
      { destination: 'email', outcome: 'sent' },
    ])
    expect(JSON.stringify(outcomes)).not.toContain('client_reference_id')
    expect(JSON.stringify(outcomes)).not.toContain('template')
  })
})
