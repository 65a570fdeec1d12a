/** Signing in with a real provider of identities: who comes in, what the browser holds, and every way it can fail. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createHookledger, type Hookledger } from 'hookledger'
import type { Role } from '../../../src/compose/console-options.ts'
import { partsOf } from '../../../src/hookledger.ts'
import { createConsole, type Console } from '../../../src/server/console/console.ts'
import { oidc } from '../../../src/server/console/oidc.ts'
import {
  startIdentityProvider,
  TestBrowser,
  type IdentityProvider,
} from '../../support/identity-provider.ts'
import { createShop, shopOptions, type Shop } from '../../support/shop.ts'

const origin = 'https://ops.example.com'
const sessionCookie = '__Host-hookledger-session'
const wayCookie = '__Host-hookledger-sign-in'
const ada = { sub: 'u1', email: 'ada@example.com', email_verified: true, groups: ['ops'] }
const bob = { sub: 'u2', email: 'bob@example.com', email_verified: true, groups: ['admins'] }

let shop: Shop
let provider: IdentityProvider
let hookledger: Hookledger
let mounted: Console
let browser: TestBrowser
const told: { readonly actor: string | null; readonly outcome: string; readonly reason: string }[] =
  []

/** Which roles the groups of somebody give. */
const rolesOf = (claims: Readonly<Record<string, unknown>>): Role[] => {
  const groups = (claims['groups'] ?? []) as string[]
  if (groups.includes('broken')) throw new Error('a secret of the directory')
  return [
    ...(groups.includes('ops') ? (['operator'] as const) : []),
    ...(groups.includes('admins') ? (['admin'] as const) : []),
  ]
}

function consoleWith(issuer: string): Hookledger {
  const { clientId, clientSecret } = provider
  return createHookledger({
    ...shopOptions,
    database: shop.pool,
    console: {
      publicUrl: origin,
      signIn: oidc({
        issuer,
        clientId,
        clientSecret,
        scope: 'openid profile email groups',
        roles: rolesOf,
      }),
    },
  })
}

beforeAll(async () => {
  shop = await createShop()
  provider = await startIdentityProvider(`${origin}/ops/console/auth/done`)
  hookledger = consoleWith(provider.issuer)
  mounted = createConsole(hookledger, { prefix: '/ops' })
  partsOf(hookledger).signals.on('console.sign_in.ended', (ended) => told.push(ended))
})
afterAll(async () => {
  await provider.stop()
  await shop.close()
})
beforeEach(() => {
  browser = new TestBrowser(mounted, origin)
  provider.person = ada
})
afterEach(async () => {
  told.length = 0
  await shop.pool.query('delete from console_sessions; delete from console_sign_ins')
})

const begin = '/ops/console/auth/begin'
const signIn = (by: TestBrowser = browser): Promise<string> => by.follow(begin)
interface Session {
  readonly actor: string | null
  readonly roles: string[]
  readonly csrf: string
  readonly sign_in_path: string
  readonly door: string
}
const whoIs = (by: TestBrowser): Promise<Session> => by.get('/ops/api/session')
const act = (by: TestBrowser, path: string, csrf: string): Promise<Response> =>
  by.ask(`/ops/api${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin, 'x-hookledger-csrf': csrf },
    body: '{}',
  })

describe('signing in', () => {
  it('is where the page says, for whom nobody knows', async () => {
    expect(await whoIs(browser)).toMatchObject({
      actor: null,
      door: 'oidc',
      sign_in_path: '/console/auth/begin',
    })
    expect((await browser.ask('/ops/api/orders')).status).toBe(401)
  })

  it('goes to the provider with a challenge, a state and a nonce, none of which the browser can read', async () => {
    const response = await browser.ask(begin)
    expect(response.status).toBe(303)
    const url = new URL(response.headers.get('location') ?? '')
    expect(url.origin).toBe(provider.issuer)
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      redirect_uri: `${origin}/ops/console/auth/done`,
      code_challenge_method: 'S256',
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      state: expect.stringMatching(/^[\w-]{20,}$/),
      nonce: expect.stringMatching(/^[\w-]{20,}$/),
      response_type: 'code',
    })
    const [cookie] = browser.given
    expect(cookie).toMatch(
      /^__Host-hookledger-sign-in=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Secure; Max-Age=600$/,
    )
    expect(response.headers.get('cache-control')).toBe('no-store')
  })

  it('lets somebody in with the roles of their groups, under their verified address', async () => {
    expect(await signIn()).toBe(`${origin}/ops/console`)
    expect(await whoIs(browser)).toMatchObject({ actor: 'ada@example.com', roles: ['operator'] })
    expect((await browser.ask('/ops/api/orders')).status).toBe(200)
    expect(told).toMatchObject([{ actor: 'ada@example.com', outcome: 'signed_in' }])
  })

  it('gives a cookie that no script, no other host and no other site can use', async () => {
    await signIn()
    const cookie = browser.given.find((text) => text.startsWith(sessionCookie))
    expect(cookie).toMatch(
      /^__Host-hookledger-session=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Secure; Max-Age=43200$/,
    )
    expect(browser.cookie(wayCookie)).toBeUndefined()
  })

  it('keeps no more than a hash of what the browser holds', async () => {
    await signIn()
    const token = browser.cookie(sessionCookie) ?? 'none'
    const { csrf } = await whoIs(browser)
    const rows = await shop.rows<{ row: string }>('select s::text as row from console_sessions s')
    expect(rows).toHaveLength(1)
    for (const secret of [token, csrf, Buffer.from(token, 'base64url').toString('hex')])
      expect(rows[0]?.row).not.toContain(secret)
    expect(await shop.rows('select * from console_sign_ins')).toEqual([])
  })

  it('names somebody whose address nobody has verified by their subject', async () => {
    provider.person = { ...ada, email: 'ceo@example.com', email_verified: false }
    await signIn()
    expect((await whoIs(browser)).actor).toBe('u1')
  })

  it('ends the session that was there before, and begins one with a new id', async () => {
    await signIn()
    const before = browser.cookie(sessionCookie) ?? ''
    await signIn()
    expect(browser.cookie(sessionCookie)).not.toBe(before)
    const old = new TestBrowser(mounted, origin)
    old.hold(sessionCookie, before)
    expect((await whoIs(old)).actor).toBeNull()
  })

  it('takes no session that the browser brings along', async () => {
    const chosen = 'A'.repeat(43)
    browser.hold(sessionCookie, chosen)
    await signIn()
    expect(browser.cookie(sessionCookie)).not.toBe(chosen)
    const attacker = new TestBrowser(mounted, origin)
    attacker.hold(sessionCookie, chosen)
    expect((await whoIs(attacker)).actor).toBeNull()
  })
})

describe('somebody', () => {
  it('without a role does not come in, and the page is told why', async () => {
    provider.person = { ...ada, groups: [] }
    expect(await signIn()).toBe(`${origin}/ops/console?sign_in=refused`)
    expect((await whoIs(browser)).actor).toBeNull()
    expect(told).toMatchObject([{ outcome: 'refused', reason: 'ada@example.com has no role' }])
    expect(await shop.rows('select * from console_sessions')).toEqual([])
  })

  it('whose roles cannot be found out does not come in, and the log has no secret of it', async () => {
    provider.person = { ...ada, groups: ['broken'] }
    expect(await signIn()).toBe(`${origin}/ops/console?sign_in=refused`)
    expect(told).toMatchObject([{ outcome: 'refused', reason: 'roles or actor threw a Error' }])
  })

  it('who refuses at the provider is back at the page, and not in', async () => {
    provider.person = null
    expect(await signIn()).toBe(`${origin}/ops/console?sign_in=provider`)
    expect((await whoIs(browser)).actor).toBeNull()
    expect(told).toMatchObject([{ outcome: 'failed' }])
  })
})

describe('what comes back', () => {
  const isBack = (next: string): boolean => next.startsWith(`${origin}/ops/console/auth/done`)

  it('is worth nothing to a browser that did not begin it', async () => {
    const back = await browser.follow(begin, isBack)
    const other = new TestBrowser(mounted, origin)
    expect(await other.follow(back)).toBe(`${origin}/ops/console?sign_in=expired`)
    await other.ask(begin)
    expect(await other.follow(back)).toBe(`${origin}/ops/console?sign_in=provider`)
    expect((await whoIs(other)).actor).toBeNull()
  })

  it('counts once', async () => {
    const back = await browser.follow(begin, isBack)
    const way = browser.cookie(wayCookie) ?? ''
    expect(await browser.follow(back)).toBe(`${origin}/ops/console`)
    const again = new TestBrowser(mounted, origin)
    again.hold(wayCookie, way)
    expect(await again.follow(back)).toBe(`${origin}/ops/console?sign_in=expired`)
  })

  it.each(['state', 'code', 'iss'])('with another %s lets nobody in', async (name) => {
    const url = new URL(await browser.follow(begin, isBack))
    url.searchParams.set(name, 'another')
    expect(await browser.follow(url.href)).toBe(`${origin}/ops/console?sign_in=provider`)
    expect((await whoIs(browser)).actor).toBeNull()
  })

  it('too late lets nobody in', async () => {
    const back = await browser.follow(begin, isBack)
    await shop.pool.query(`update console_sign_ins set began_at = now() - interval '11 minutes'`)
    expect(await browser.follow(back)).toBe(`${origin}/ops/console?sign_in=expired`)
  })
})

describe('beginning', () => {
  it('again and again forgets the oldest, so that nobody is kept out by it', async () => {
    await shop.pool.query(
      `insert into console_sign_ins (browser_sha256, state, nonce, verifier, began_at)
       select sha256(n::text::bytea), 's', 'n', 'v', now() - n * interval '1 millisecond' from generate_series(1, 12000) n`,
    )
    expect(await signIn()).toBe(`${origin}/ops/console`)
    const [row] = await shop.rows<{ count: string }>('select count(*) from console_sign_ins')
    expect(Number(row?.count)).toBeLessThanOrEqual(10_001)
  })

  it('while the provider is away says so at the page, and works again with it', async () => {
    const lost = createConsole(consoleWith('http://127.0.0.1:9'), { prefix: '/ops' })
    const there = new TestBrowser(lost, origin)
    expect(await there.follow(begin)).toBe(`${origin}/ops/console?sign_in=provider`)
    expect(await signIn()).toBe(`${origin}/ops/console`)
  })
})

describe('a session', () => {
  beforeEach(() => signIn())

  it('ends with signing out, here and for whoever copied the cookie', async () => {
    const copied = new TestBrowser(mounted, origin)
    copied.hold(sessionCookie, browser.cookie(sessionCookie) ?? '')
    expect((await whoIs(copied)).actor).toBe('ada@example.com')
    const response = await act(browser, '/session/end', (await whoIs(browser)).csrf)
    expect([response.status, await response.json()]).toEqual([200, { ended: true }])
    expect(browser.cookie(sessionCookie)).toBeUndefined()
    expect((await whoIs(copied)).actor).toBeNull()
    expect(await shop.rows('select actor, ended_by from console_sessions')).toEqual([
      { actor: 'ada@example.com', ended_by: 'ada@example.com' },
    ])
  })

  it('does not end by the page of another site', async () => {
    const { csrf } = await whoIs(browser)
    const response = await browser.ask('/ops/api/session/end', {
      method: 'POST',
      headers: { 'content-type': 'application/json', origin: 'https://evil.test', 'x-hookledger-csrf': csrf }, // prettier-ignore
      body: '{}',
    })
    expect(response.status).toBe(403)
    expect((await whoIs(browser)).actor).toBe('ada@example.com')
  })

  it.each([
    ['unused for an hour', `last_seen_at = now() - interval '61 minutes'`],
    ['twelve hours old, however much it is used', `expires_at = now() - interval '1 second'`],
  ])('that is %s is nobody’s', async (_, change) => {
    await shop.pool.query(`update console_sessions set ${change}`)
    expect((await whoIs(browser)).actor).toBeNull()
    expect((await browser.ask('/ops/api/orders')).status).toBe(401)
  })

  it('that is used does not end by idleness', async () => {
    await shop.pool.query(
      `update console_sessions set last_seen_at = now() - interval '59 minutes'`,
    )
    await whoIs(browser)
    const [row] = await shop.rows<{ fresh: boolean }>(
      `select last_seen_at > now() - interval '1 minute' as fresh from console_sessions`,
    )
    expect(row?.fresh).toBe(true)
  })

  it('has a token of its own for acts, and not that of another session of the same person', async () => {
    const other = new TestBrowser(mounted, origin)
    await signIn(other)
    const { csrf } = await whoIs(other)
    expect((await act(browser, '/session/end', csrf)).status).toBe(403)
    expect((await act(browser, '/session/end', (await whoIs(browser)).csrf)).status).toBe(200)
  })

  it.each(['', 'short', `${'A'.repeat(43)}'`, 'A'.repeat(101), '%00', 'ä'])(
    'is nobody’s for the cookie %j',
    async (value) => {
      browser.hold(sessionCookie, encodeURIComponent(value))
      expect((await whoIs(browser)).actor).toBeNull()
    },
  )

  it('is nobody’s where the cookie comes twice', async () => {
    const own = browser.cookie(sessionCookie)
    const cookie = `${sessionCookie}=${own}; ${sessionCookie}=${'A'.repeat(43)}`
    const response = await mounted.fetch(
      new Request(`${origin}/ops/api/session`, { headers: { cookie } }),
    )
    expect(await response.json()).toMatchObject({ actor: null })
  })

  it('is seen and ended by an administrator, and by nobody else', async () => {
    provider.person = bob
    const admin = new TestBrowser(mounted, origin)
    await signIn(admin)
    expect((await browser.ask('/ops/api/sessions')).status).toBe(403)
    const { items } = await admin.get<{ items: { session_id: string; actor: string }[] }>(
      '/ops/api/sessions',
    )
    expect(items.map(({ actor }) => actor).sort()).toEqual(['ada@example.com', 'bob@example.com'])
    const id = items.find(({ actor }) => actor === 'ada@example.com')?.session_id ?? ''
    const { csrf } = await whoIs(admin)
    expect((await act(browser, `/sessions/${id}/end`, (await whoIs(browser)).csrf)).status).toBe(
      403,
    )
    expect((await act(admin, `/sessions/${id}/end`, csrf)).status).toBe(200)
    expect((await act(admin, `/sessions/${id}/end`, csrf)).status).toBe(404)
    expect((await whoIs(browser)).actor).toBeNull()
    expect(
      await shop.rows(`select ended_by from console_sessions where ended_at is not null`),
    ).toEqual([{ ended_by: 'bob@example.com' }])
  })
})
