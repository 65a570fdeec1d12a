import type { createServer } from 'node:http'
import { type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Express } from 'express'
import type { FastifyInstance } from 'fastify'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Hookledger } from 'hookledger'
import { stripeDelivery } from '../../src/testing/deliveries.ts'
import { signStripe } from '../../src/testing/sign.ts'
import { checkoutSessionCompleted, stripeBody } from '../../src/testing/stripe-events.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import { oncePool } from '../support/once-pool.ts'
import type { TestDatabase } from '../support/test-database.ts'
import { writeExamples, type ExampleProject } from './example-project.ts'
import { page } from './pages.ts'

const secret = 'whsec_of_the_documents_0123456789'
let database: TestDatabase
let project: ExampleProject | undefined
const closing: (() => unknown)[] = []

beforeEach(async () => {
  database = await createHookledgerDatabase()
  vi.stubEnv('DATABASE_URL', database.url)
  vi.stubEnv('STRIPE_WEBHOOK_SECRET', secret)
  vi.stubEnv('PORT', '0')
})
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
  vi.unstubAllEnvs()
  project?.remove()
  await database.drop()
})

/** The files of a document, loaded by name; what they opened is closed after the test. */
async function open(path: string): Promise<ExampleProject> {
  project = writeExamples(page(path))
  return project
}

async function configuration(
  of: ExampleProject,
  file = 'hookledger.config.ts',
): Promise<Hookledger> {
  const { hookledger } = (await of.load(file)) as { hookledger: Hookledger }
  closing.push(() => hookledger.stop())
  return hookledger
}

/** Closes the pool that a document makes for itself, after Hookledger has stopped using it. */
async function closePool(of: ExampleProject): Promise<void> {
  const { pool } = (await of.load('database.ts')) as {
    pool: { end(): Promise<void>; on(event: 'error', listener: () => void): void }
  }
  pool.on('error', () => {})
  closing.push(() => pool.end())
}

function delivery(order: string): RequestInit {
  const body = stripeBody(checkoutSessionCompleted({ order, email: 'ada@example.com' }))
  return { method: 'POST', body, headers: signStripe(body, secret) }
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function listening(server: Server): Promise<string> {
  if (!server.listening) await new Promise<void>((resolve) => server.once('listening', resolve))
  closing.push(() => new Promise((resolve) => server.close(resolve)))
  return urlOf(server)
}

async function stored(): Promise<number> {
  return oncePool(database.url, async (pool) => {
    const { rows } = await pool.query<{ events: number }>(
      'select count(*)::int as events from hookledger.webhook_inbox',
    )
    return rows[0]?.events ?? 0
  })
}

describe('docs/guides/testing.md', () => {
  it('sells on a schema that was only migrated', async () => {
    const { load } = await open('docs/guides/testing.md')
    const { createShop, secret: itsSecret } = (await load('shop.ts')) as {
      createShop: () => Hookledger
      secret: string
    }
    const shop = createShop()
    closing.push(() => shop.stop())
    const sold = checkoutSessionCompleted({ order: '1001', email: 'ada@example.com' })
    await shop.ingest(stripeDelivery(sold, { secret: itsSecret }))
    await shop.runOnce({ budgetMs: 5000 })
    const granted = await shop.entitlements('email:ada@example.com')
    expect(granted.map(({ entitlement }) => entitlement)).toEqual(['pro'])
  })
})

describe('docs/guides/existing-app.md', () => {
  let files: ExampleProject
  beforeEach(async () => {
    files = await open('docs/guides/existing-app.md')
    await closePool(files)
    await configuration(files)
  })

  it('receives in Express, before its body parser', async () => {
    const { app } = (await files.load('express.ts')) as { app: Express }
    const url = await listening(app.listen(0))
    expect((await fetch(`${url}/webhooks/stripe`, delivery('1'))).status).toBe(200)
    expect(await stored()).toBe(1)
  })

  it('receives in Fastify', async () => {
    const { app } = (await files.load('fastify.ts')) as { app: FastifyInstance }
    closing.push(() => app.close())
    const url = await app.listen({ port: 0, host: '127.0.0.1' })
    expect((await fetch(`${url}/webhooks/stripe`, delivery('1'))).status).toBe(200)
    expect(await stored()).toBe(1)
  })

  it('receives a Request, and bytes', async () => {
    const { POST } = (await files.load('route.ts')) as {
      POST: (request: Request) => Promise<Response>
    }
    expect((await POST(new Request('http://app/hook', delivery('1')))).status).toBe(200)
    const { server, deliver } = (await files.load('node.ts')) as {
      server: ReturnType<typeof createServer>
      deliver: (headers: Headers, rawBody: Uint8Array) => Promise<number>
    }
    const { headers, body } = delivery('2')
    expect(await deliver(new Headers(headers), Buffer.from(String(body)))).toBe(200)
    const url = await listening(server.listen(0, '127.0.0.1'))
    expect((await fetch(url, delivery('3'))).status).toBe(200)
    expect(await stored()).toBe(3)
  })

  it('opens an order in the checkout, is paid, and gives access', async () => {
    await oncePool(database.url, (pool) =>
      pool.query('create table checkouts (id text primary key, user_id text)'),
    )
    const { server } = (await files.load('main.ts')) as { server: Server }
    const url = await listening(server)
    const checkout = {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"id":"1","user":"42"}',
    }
    expect((await fetch(`${url}/checkout`, checkout)).status).toBe(201)
    expect((await fetch(`${url}/webhooks/stripe`, delivery('1'))).status).toBe(200)
    await vi.waitFor(
      async () => {
        const access = await fetch(`${url}/access/42`, { headers: { connection: 'close' } })
        expect(await access.json()).toEqual(['pro'])
      },
      { timeout: 10_000, interval: 50 },
    )
  })
})

describe('README.md', () => {
  it('has an app that grants one license for three deliveries', async () => {
    const files = await open('README.md')
    await configuration(files)
    const { server } = (await files.load('app.ts')) as { server: Server }
    const url = await listening(server)
    for (let copy = 0; copy < 3; copy++) {
      expect((await fetch(`${url}/webhooks/stripe`, delivery('1001'))).status).toBe(200)
    }
    await vi.waitFor(
      async () => {
        const access = await fetch(`${url}/access/ada@example.com`, {
          headers: { connection: 'close' },
        })
        expect(await access.json()).toEqual([{ entitlement: 'pro', quantity: 1, validUntil: null }])
      },
      { timeout: 10_000, interval: 50 },
    )
    const effects = await oncePool(database.url, (pool) =>
      pool.query('select 1 from hookledger.fulfillment_effects'),
    )
    expect(effects.rowCount).toBe(1)
  })
})
