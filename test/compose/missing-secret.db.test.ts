import { afterEach, describe, expect, it } from 'vitest'
import { createHookledger, stripe } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import { createShop, shopOptions, type Shop } from '../support/shop.ts'

let shop: Shop | undefined
afterEach(() => shop?.close())

describe('a source without its signing secret', () => {
  const sources = { stripe: stripe({ signingSecrets: [undefined] }) }

  it('stops a start and a receiver, and nothing that only reads', async () => {
    shop = await createShop()
    const hookledger = createHookledger({ ...shopOptions, sources, database: shop.pool })
    expect(await hookledger.entitlements('user:1')).toEqual([])
    expect(partsOf(hookledger).config.sources.has('stripe')).toBe(true)
    await expect(hookledger.start()).rejects.toMatchObject({ code: 'HKL_CONFIG_SECRET' })
    expect(() => partsOf(hookledger).receiver()).toThrow(
      expect.objectContaining({ code: 'HKL_CONFIG_SECRET' }),
    )
  })
})
