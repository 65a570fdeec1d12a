/** The console in somebody's app and in the stand-alone server: where it answers, what the page carries, when it is not made. */
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { partsOf } from '../../../src/hookledger.ts'
import {
  createConsole,
  mountConsole,
  type ConsoleMountOptions,
} from '../../../src/server/console/console.ts'
import { oidc } from '../../../src/server/console/oidc.ts'
import { createHookledgerServer } from '../../../src/server/server.ts'
import { sendRaw } from '../../http/raw-request.ts'
import { builtConsole } from '../../support/built-console.ts'
import { createShop, shopOptions, type Shop } from '../../support/shop.ts'
import { createHookledger } from 'hookledger'

let shop: Shop
beforeAll(async () => {
  await builtConsole()
  shop = await createShop()
}, 120_000)
afterAll(() => shop.close())

const servers: Server[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
})

async function listening(app: RequestListener): Promise<number> {
  const server = createServer(app)
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return (server.address() as AddressInfo).port
}

const ada = { actor: 'ada', roles: ['operator'] as const }
const mount = (options: ConsoleMountOptions = {}) =>
  createConsole(shop.hookledger, { authorize: () => ada, ...options })
const get = (path: string): Promise<Response> => mount().fetch(new Request(`https://a.test${path}`))

describe('the page', () => {
  it('is at every path below /console, so that any of its own addresses can be opened', async () => {
    for (const path of [
      '/console',
      '/console/',
      '/console/orders/1001',
      '/console/a/b?x=<script>',
    ]) {
      const response = await get(path)
      expect([path, response.status]).toEqual([path, 200])
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
      expect(response.headers.get('cache-control')).toBe('no-store')
    }
  })

  it('may load nothing but its own files, and be in nobody’s frame', async () => {
    const { headers } = await get('/console')
    expect(headers.get('content-security-policy')).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    )
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('referrer-policy')).toBe('no-referrer')
  })

  it('names its files and its prefix where it is mounted, and has nothing in it that is run', async () => {
    const ops = mount({ prefix: '/internal/ops' })
    const html = await (await ops.fetch(new Request('https://a.test/internal/ops/console'))).text()
    expect(html).not.toContain('__hookledger_prefix__')
    expect(html).toContain('<meta name="hookledger-prefix" content="/internal/ops"')
    expect(html).not.toMatch(/<script(?![^>]*\bsrc=)[^>]*>\s*\S/)
    expect(html).not.toMatch(/\son\w+=|style=|javascript:/)
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, each]) => each ?? '')
    expect(files.length).toBeGreaterThan(1)
    for (const file of files) {
      expect(file).toMatch(/^\/internal\/ops\/console\/assets\/[\w.-]+$/)
      const response = await ops.fetch(new Request(`https://a.test${file}`))
      expect([file, response.status]).toEqual([file, 200])
      expect(response.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
    }
  })

  it.each(['/console/assets/nothing.js', '/console/assets/', '/console/assets/..%2findex.html'])(
    'has no file %s',
    async (path) => {
      expect((await get(path)).status).toBe(404)
    },
  )

  it('is only read', async () => {
    const response = await mount().fetch(new Request('https://a.test/console', { method: 'POST' }))
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
  })
})

describe('a console below a prefix', () => {
  it.each(['/ops/consoles', '/ops/apis', '/ops', '/console', '/api/session', '/opsconsole', '/'])(
    'has nothing at %s',
    async (path) => {
      const ops = mount({ prefix: '/ops' })
      expect((await ops.fetch(new Request(`https://a.test${path}`))).status).toBe(404)
      expect(ops.isOwn(path)).toBe(false)
    },
  )

  it.each(['ops', '/ops/', '/o ps', '//ops', '/"><script>', '/ops?x', '/../ops#'])(
    'refuses the prefix %s',
    (prefix) => {
      expect(() => mount({ prefix })).toThrow('prefix must be a path')
    },
  )
})

describe('inside an app', () => {
  it('answers in Express what is its own, and leaves the rest to the app', async () => {
    const app = express()
    app.use(mount({ prefix: '/ops' }).node)
    app.get('/ops/other', (_, response) => void response.send('of the app'))
    const port = await listening(app)
    const session = await fetch(`http://127.0.0.1:${port}/ops/api/session`)
    expect(await session.json()).toMatchObject({ actor: 'ada', door: 'app' })
    expect(await (await fetch(`http://127.0.0.1:${port}/ops/other`)).text()).toBe('of the app')
    expect((await fetch(`http://127.0.0.1:${port}/ops/console`)).status).toBe(200)
  })

  it('answers in Express also where it is mounted below its prefix', async () => {
    const app = express()
    app.use('/ops', mount({ prefix: '/ops' }).node)
    const port = await listening(app)
    expect((await fetch(`http://127.0.0.1:${port}/ops/api/session`)).status).toBe(200)
  })

  it('acts over a connection as its page does, from its own origin only', async () => {
    const port = await listening(mount().node)
    const url = `http://127.0.0.1:${port}`
    const { csrf } = (await (await fetch(`${url}/api/session`)).json()) as { csrf: string }
    const end = (origin: string): Promise<Response> =>
      fetch(`${url}/api/session/end`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', origin, 'x-hookledger-csrf': csrf },
        body: '{}',
      })
    expect((await end(url)).status).toBe(200)
    expect((await end('http://127.0.0.1:1')).status).toBe(403)
  })

  it('takes no host that is none, and goes on', async () => {
    const port = await listening(mount().node)
    for (const host of ['', 'a b', 'a/b', '%', '[', '<script>'])
      expect((await sendRaw(port, `GET /api/session HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)).status).toBe(400) // prettier-ignore
    expect((await fetch(`http://127.0.0.1:${port}/api/session`)).status).toBe(200)
  })
})

describe('beside webhooks', () => {
  it('is served by the stand-alone server, and nothing else of it changes', async () => {
    const own = mountConsole(partsOf(shop.hookledger), { isLocal: true })
    const server = createHookledgerServer({
      ingest: (request) => shop.hookledger.ingest(request),
      limits: { bodyBytes: 4096, headerBytes: 16_384, requestTimeoutMs: 2000 },
      ready: async () => true,
      routes(request, response, path) {
        if (!own.isOwn(path)) return false
        own.node(request, response)
        return true
      },
    })
    const { port } = await server.listen(0, '127.0.0.1')
    const url = `http://127.0.0.1:${port}`
    expect(await (await fetch(`${url}/api/session`)).json()).toMatchObject({
      door: 'loopback',
      roles: ['admin'],
    })
    const rebound = await sendRaw(
      port,
      'GET /api/orders HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n',
    )
    expect(rebound.status).toBe(401)
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
    expect((await fetch(`${url}/elsewhere`)).status).toBe(404)
    await server.stop(0)
  })
})

describe('a console that anybody could open', () => {
  const signIn = oidc({ issuer: 'https://login.test', clientId: 'c', roles: () => ['viewer'] })
  const made = (options: object): (() => unknown) => {
    const hookledger = createHookledger({ ...shopOptions, database: shop.pool, ...options })
    return () => createConsole(hookledger)
  }

  it('is not made, with what to set in one line', () => {
    expect(made({})).toThrow(
      expect.objectContaining({
        code: 'HKL_CONSOLE_OPEN',
        message: expect.stringMatching(/^[^\n]*console\.signIn[^\n]*console\.authorize[^\n]*$/),
      }),
    )
  })

  it.each([
    ['without an address of its own', { signIn }, 'publicUrl is missing'],
    ['over http', { signIn, publicUrl: 'http://ops.example.com' }, 'publicUrl must be https'],
    ['with a path', { signIn, publicUrl: 'https://ops.example.com/x' }, 'an origin without a path'],
    ['with two answers', { signIn, authorize: () => null }, 'give one of them'],
    ['with a misspelled option', { signin: signIn }, 'did you mean "signIn"'],
    ['with no function', { authorize: true }, 'authorize must be a function'],
    ['with sessions of a year', { signIn, publicUrl: 'https://a.test', sessionHours: 9000 }, 'sessionHours must be'], // prettier-ignore
  ])('or that signs in %s is refused', (_, settings, message) => {
    expect(made({ console: settings })).toThrow(message)
  })

  it.each([
    [{ issuer: 'http://login.test' }, 'issuer must be an https address'],
    [{ issuer: 'login.test' }, 'issuer must be an https address'],
    [{ clientId: '' }, 'clientId is missing'],
    [{ clientSecret: '' }, 'clientSecret is empty'],
    [{ roles: ['admin'] }, 'roles must be a function'],
    [{ scope: 'email' }, 'scope must contain openid'],
  ])('oidc(%j) is refused', (wrong, message) => {
    const right = { issuer: 'https://login.test', clientId: 'c', roles: () => ['viewer'] as const }
    expect(() => oidc({ ...right, ...wrong } as never)).toThrow(message)
  })
})
