import { createHookledger, type Hookledger } from 'hookledger'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { oidc } from '../../src/server/console/oidc.ts'
import { openBrowser, type ConsoleBrowser } from '../support/browser.ts'
import { startIdentityProvider, type IdentityProvider } from '../support/identity-provider.ts'
import { createShop, shopOptions, type Shop } from '../support/shop.ts'

let shop: Shop
let provider: IdentityProvider
let hookledger: Hookledger
let served: ConsoleBrowser

beforeAll(async () => {
  shop = await createShop()
  served = await openBrowser(async (origin) => {
    provider = await startIdentityProvider(`${origin}/console/auth/done`)
    const { issuer, clientId, clientSecret } = provider
    hookledger = createHookledger({
      ...shopOptions,
      database: shop.pool,
      console: {
        publicUrl: origin,
        signIn: oidc({
          issuer,
          clientId,
          clientSecret,
          scope: 'openid profile email groups',
          roles: ({ groups }) =>
            (groups as string[]).filter((each) => each === 'admin' || each === 'viewer') as never,
        }),
      },
    })
    return hookledger
  })
}, 120_000)
afterAll(async () => {
  await served.close()
  await provider.stop()
  await hookledger.stop()
  await shop.close()
})

const person = (name: string, ...groups: string[]): object => ({
  sub: name,
  email: `${name}@example.com`,
  email_verified: true,
  groups,
})

it('leads somebody to their provider and back to the page that they asked for, and out again', async () => {
  provider.person = person('ada', 'admin') as never
  const ada = await served.look({ as: null })
  await ada.go('/orders?state=paid')
  expect(await ada.page.locator('nav').getByText('Orders').count()).toBe(0)
  await ada.page.getByRole('link', { name: 'Continue' }).click()
  await ada.page.getByText('ada@example.com').first().waitFor()
  await ada.settled()
  expect(ada.page.url()).toContain('/console/orders?state=paid')
  const [cookie] = (await ada.context.cookies()).filter(({ name }) =>
    name.includes('hookledger-session'),
  )
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })

  provider.person = person('mallory', 'viewer') as never
  const mallory = await served.look({ as: null })
  await mallory.go('/')
  await mallory.page.getByRole('link', { name: 'Continue' }).click()
  await mallory.page.getByText('mallory@example.com').first().waitFor()

  // an admin ends what somebody else has open
  await ada.go('/sessions')
  const row = ada.page.getByRole('row').filter({ hasText: 'mallory@example.com' })
  await row.getByRole('button', { name: 'End' }).click()
  await ada.page.getByRole('dialog').locator('button.danger').click()
  await row.waitFor({ state: 'detached' })
  await mallory.go('/')
  expect(await mallory.page.getByRole('link', { name: 'Continue' }).count()).toBe(1)

  await ada.page.getByRole('button', { name: 'Signed in as ada@example.com' }).click()
  await ada.page.getByRole('button', { name: /sign out/i }).click()
  await ada.page.getByRole('link', { name: 'Continue' }).waitFor()
  const { rows } = await shop.pool.query<{ open: string }>(
    'select count(*) as open from console_sessions where ended_at is null',
  )
  expect(rows).toEqual([{ open: '0' }])
})

it('says so where somebody has no role, or refuses', async () => {
  for (const somebody of [person('bob', 'nobody'), null]) {
    provider.person = somebody as never
    const bob = await served.look({ as: null })
    await bob.go('/')
    await bob.page.getByRole('link', { name: 'Continue' }).click()
    await bob.page.getByRole('alert').waitFor()
    expect(await bob.page.locator('nav').getByText('Orders').count()).toBe(0)
    await bob.close()
  }
})
