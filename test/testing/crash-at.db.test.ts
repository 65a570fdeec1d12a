import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createHookledger, defineWorkflow, fulfill, http, money, orderId, stripe } from 'hookledger'
import type { Hookledger } from 'hookledger'
import {
  checkoutSessionCompleted,
  crashAt,
  crashSteps,
  deliverTwice,
  StepNotReachedError,
  stripeDelivery,
  type Step,
} from 'hookledger/testing'
import { createNodeHandler } from '../../src/http/node.ts'
import { createHookledgerDatabase } from '../support/hookledger-database.ts'
import type { TestDatabase } from '../support/test-database.ts'

const secret = 'whsec_of_crashes_0123456789'
const sold = stripeDelivery(checkoutSessionCompleted({ order: '1001' }), { secret })

const sale = defineWorkflow('sale', {
  sources: ['stripe'],
  initial: 'pending',
  opens: 'event',
  accepts: () => true,
  states: { pending: {}, paid: { entitles: true } },
  transitions: { pending: ['paid'] },
  effects: {
    license: {
      apply: async ({ db }) => {
        await db.query('insert into given (what) values (1)')
      },
    },
  },
}).on('checkout.session.completed', {
  order: ({ event }) => orderId(event.data.object.client_reference_id),
  decide: ({ event }) => {
    const { id, amount_total: amount, currency } = event.data.object
    return fulfill({
      to: 'paid',
      payment: { id, money: money(amount ?? 0, currency ?? '') },
      effects: [{ type: 'license', send: [{ to: 'email', name: 'receipt', body: { to: 'ada' } }] }],
      entitle: [{ subject: 'user:1', entitlement: 'pro' }],
    })
  },
})

let database: TestDatabase
let rows: pg.Pool
let server: Server
let keys: string[]

beforeEach(async () => {
  database = await createHookledgerDatabase()
  rows = database.pool()
  await rows.query('create table given (what int)')
  keys = []
  server = createServer((request, response) => {
    request.resume().on('end', () => {
      keys.push(String(request.headers['idempotency-key']))
      response.end('{}')
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
})
afterEach(async () => {
  await new Promise((resolve) => server.close(resolve).closeAllConnections())
  await database.drop()
})

/** A Hookledger as a starting process makes it. */
function start(over: string | pg.Pool = database.url): Hookledger {
  const { port } = server.address() as AddressInfo
  return createHookledger({
    database: over,
    sources: { stripe: stripe({ signingSecrets: [secret] }) },
    workflows: [sale],
    destinations: {
      email: http({
        url: `http://127.0.0.1:${port}/`,
        allow: [`127.0.0.1:${port}`],
        contract: { idempotency: 'key', retentionMs: 3_600_000, callMs: 300, leaseMs: 900 },
      }),
    },
  })
}

async function count(text: string): Promise<number> {
  const { rows: found } = await rows.query<{ n: number }>(`select count(*)::int as n from ${text}`)
  return found[0]?.n ?? -1
}

/** A new process goes on until the email is sent. */
async function recover(): Promise<void> {
  const next = start()
  await expect
    .poll(
      async () => {
        await next.runOnce({ budgetMs: 500 })
        return count(`hookledger.outbox where state = 'sent'`)
      },
      { timeout: 15_000, interval: 100 },
    )
    .toBe(1)
  await next.stop()
}

async function expectOnce(): Promise<void> {
  expect(await count('given')).toBe(1)
  expect(await count('hookledger.fulfillment_effects')).toBe(1)
  expect(await count(`hookledger.decisions where final and to_state = 'paid'`)).toBe(1)
  expect(new Set(keys).size).toBe(1)
}

describe('a worker that crashes', () => {
  it.each(crashSteps.work)('at %s leaves what a new one finishes once', async (step) => {
    const door = start()
    await door.ingest(sold)
    await door.stop()
    await crashAt(step, () => start().runOnce({ budgetMs: 5000 }))
    // W7 comes after the commit, and W6 sends it: the server may still do it
    if (step < 'W6') expect(await count('given')).toBe(0)
    await recover()
    await expectOnce()
  })

  it.each(['D0', 'D2', 'D4', 'D5'] satisfies Step[])(
    'at %s of a call makes the call again under the same key',
    async (step) => {
      const door = start()
      await door.ingest(sold)
      await door.stop()
      await crashAt(step, () => start().runOnce({ budgetMs: 5000 }))
      expect(await count(`hookledger.outbox where state = 'sent'`)).toBe(0)
      await recover()
      await expectOnce()
    },
  )
})

describe('a receiver that crashes', () => {
  it.each(['R3', 'R4', 'R5', 'R6', 'R7', 'R8'] satisfies Step[])(
    'at %s answers nothing, and what the provider sends again is one event',
    async (step) => {
      let answered = false
      await crashAt(step, async () => {
        await start().ingest(sold)
        answered = true
      })
      expect(answered).toBe(false)
      const door = start()
      await deliverTwice([sold], (each) => door.ingest(each))
      expect(await count('hookledger.webhook_inbox')).toBe(1)
      await door.stop()
    },
  )
})

describe('a server that crashes', () => {
  it.each(['R1', 'R2', 'R9', 'R10'] satisfies Step[])(
    'at %s cuts whoever is connected, and lets nobody in any more',
    async (step) => {
      let url = ''
      const answers: (number | 'cut')[] = []
      const listening: Server[] = []
      const send = async (): Promise<number | 'cut'> =>
        fetch(url, { method: 'POST', headers: sold.headers, body: sold.body }).then(
          ({ status }) => status,
          () => 'cut' as const,
        )
      // as the provider sends it: from outside of what dies
      let up: () => void = () => {}
      const first = new Promise<void>((resolve) => (up = resolve)).then(send)
      await crashAt(step, async () => {
        const { ingest, limits } = start()
        const dying = createServer(createNodeHandler({ ingest, limits, source: 'stripe' }))
        listening.push(dying)
        await new Promise<void>((resolve) => dying.listen(0, '127.0.0.1', resolve))
        url = `http://127.0.0.1:${(dying.address() as AddressInfo).port}/`
        up()
        await new Promise(() => {})
      })
      answers.push(await first)
      // at R9 the answer is written, and on its way or not
      const possible = { R1: ['cut'], R2: ['cut'], R9: ['cut', 200], R10: [200] }[step]
      expect(possible).toContain(answers[0])
      expect(await send()).toBe('cut')
      const stored = await count('hookledger.webhook_inbox')
      expect(stored).toBe(step === 'R9' || step === 'R10' ? 1 : 0)
      for (const each of listening) await new Promise((resolve) => each.close(resolve))
    },
  )
})

describe('a crash', () => {
  it('takes nothing with it that was called outside of it', async () => {
    const other = start()
    await other.ingest(sold)
    const held = await rows.connect()
    await crashAt('W3', () => start().runOnce({ budgetMs: 5000 }))
    expect((await held.query('select 1 as one')).rows).toEqual([{ one: 1 }])
    held.release()
    await other.runOnce({ budgetMs: 5000 })
    expect(await count('given')).toBe(1)
    await other.stop()
  })

  it('lets the dead neither pass a step nor connect again', async () => {
    let dead: Promise<unknown> = Promise.resolve()
    const door = start()
    await door.ingest(sold)
    await door.stop()
    await crashAt('W3', () => {
      const dying = start()
      dead = dying.runOnce({ budgetMs: 5000 }).then(() => dying.runOnce({ budgetMs: 5000 }))
      const after = new pg.Client({ connectionString: database.url })
      after.on('error', () => {})
      // as a loop beside it would: it goes on trying
      void new Promise((resolve) => setTimeout(resolve, 400)).then(() =>
        after.connect().then(
          () => keys.push('connected'),
          () => keys.push('refused'),
        ),
      )
      return dead
    })
    await expect.poll(() => keys).toEqual(['refused'])
    expect(await count('given')).toBe(0)
  })

  it('at the second time of a step lets the first one pass', async () => {
    const second = stripeDelivery(checkoutSessionCompleted({ order: '1002' }), { secret })
    await crashAt(
      'R6',
      async () => {
        const door = start()
        await door.ingest(sold)
        await door.ingest(second)
      },
      { nth: 2 },
    )
    const { rows: found } = await rows.query('select event_id from hookledger.webhook_inbox')
    expect(found).toHaveLength(1)
  })

  it('that does not happen is an error that says what was reached instead', async () => {
    const failure = await crashAt('D3', async () => {
      const door = start()
      await door.ingest(sold)
      await door.stop()
    }).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(StepNotReachedError)
    expect((failure as StepNotReachedError).reached).toContain('R6')
    expect(String(failure)).toMatch(/D3 was not reached.*R6/)
  })

  it('of a pool that was made outside is an error that says what to do', async () => {
    // never ended: the one that crashed holds its connection for good
    const pool = new pg.Pool({ connectionString: database.url })
    pool.on('error', () => {})
    pool.on('connect', (client) => client.on('error', () => {}))
    const door = start(pool)
    await door.ingest(sold)
    const crash = crashAt('R7', () => door.ingest(sold))
    await expect(crash).rejects.toThrow(/inside of it/)
  })

  it('refuses a step that there is not, a time that cannot be, and a second crash beside it', async () => {
    const nothing = (): Promise<void> => Promise.resolve()
    await expect(crashAt('W9' as Step, nothing)).rejects.toThrow(/"W9" is no step/)
    await expect(crashAt('W1', nothing, { nth: 0 })).rejects.toThrow(/nth/)
    let finish: () => void = () => {}
    const first = crashAt('W1', () => new Promise<void>((resolve) => (finish = resolve)))
    await expect(crashAt('W1', nothing)).rejects.toThrow(/one crash at a time/)
    finish()
    await expect(first).rejects.toThrow(StepNotReachedError)
  })

  it('passes on what the function itself throws before it', async () => {
    const thrown = crashAt('W1', () => Promise.reject(new Error('no such shop')))
    await expect(thrown).rejects.toThrow('no such shop')
  })
})
