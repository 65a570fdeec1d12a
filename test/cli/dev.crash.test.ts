import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { stripeEvent } from '../../src/testing/stripe-events.ts'
import { createTestDatabase, type TestDatabase } from '../support/test-database.ts'
import { makeTestDir, removeDataDir } from '../support/data-dirs.ts'
import { oncePool } from '../support/once-pool.ts'
import {
  childrenOf,
  isAlive,
  isReady,
  post,
  runProcess,
  Spawned,
  untilReady,
  type DevJson,
  type Ended,
} from './spawned-dev.ts'

let dataDir: string
let env: Record<string, string>
let running: Spawned[] = []

beforeAll(() => {
  dataDir = makeTestDir()
  env = { HOOKLEDGER_DATA_DIR: dataDir }
})

afterEach(async () => {
  for (const each of running) each.child.kill('SIGTERM')
  for (const each of running) await each.ended
  running = []
})

afterAll(() => removeDataDir(dataDir))

function spawned(line: readonly string[], more: Record<string, string> = {}): Spawned {
  const process = new Spawned(line, { ...env, ...more })
  running.push(process)
  return process
}

const hookledger = (...line: string[]): Promise<Ended> => runProcess(line, env)

const poison = join(import.meta.dirname, 'poison.config.ts')

async function dev(
  line: readonly string[] = [],
  more: Record<string, string> = {},
): Promise<{ process: Spawned; at: DevJson }> {
  const process = spawned(['dev', ...line], more)
  return { process, at: await untilReady(process, dataDir) }
}

/** The worker is the child that runs node; the database server is another. */
function workerOf(parent: number): number | undefined {
  return childrenOf(parent).find((pid) => isWorker(pid))
}

function isWorker(pid: number): boolean {
  try {
    return existsSync(`/proc/${pid}`) && childCommand(pid).includes('internal-work')
  } catch {
    return false
  }
}

function childCommand(pid: number): string {
  return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
}

/** The states of all events, by event id. */
async function states(at: { readonly databaseUrl: string }): Promise<Map<string, string>> {
  return oncePool(at.databaseUrl, async (pool) => {
    const { rows } = await pool.query<{ event_id: string; state: string }>(
      'select event_id, state from hookledger.webhook_inbox',
    )
    return new Map(rows.map((row) => [row.event_id, row.state]))
  })
}

/** An event that does to the handler of the poison configuration what its name says. */
function product(name: string, id: string): { readonly id: string } {
  return stripeEvent('product.created', { id, object: 'product', name } as never, {
    eventId: `evt_${id}`,
  })
}

/** Waits until a worker has something in its hands. */
async function untilInWork(process: Spawned, at: DevJson): Promise<void> {
  await process.until(() =>
    oncePool(
      at.databaseUrl,
      async (pool) => (await pool.query('select 1 from hookledger.inbox_batches')).rowCount,
    ),
  )
}

describe('hookledger dev', () => {
  it('receives, fulfills once, explains, and ends with exit 0 and nothing left behind', async () => {
    const { process, at } = await dev()
    expect(process.stdout).toContain(`hookledger at ${at.url}`)
    expect(at.databaseUrl).toMatch(/^postgres:/)
    expect(
      (
        await fetch(`${at.providerUrl}/v1/events`, {
          headers: { authorization: 'Bearer sk_test_x' },
        })
      ).status,
    ).toBe(200)

    const sent = await hookledger(
      'send',
      'stripe',
      'checkout.session.completed',
      '--order',
      '1001',
      '--times',
      '3',
      '--json',
    )
    expect(sent.code).toBe(0)
    const { event_id: id } = JSON.parse(sent.stdout) as { event_id: string }
    await process.until(async () => (await states(at)).get(id) === 'processed')
    const story = await hookledger('explain', '1001')
    expect(story.stdout).toContain('order 1001 of workflow license is paid, which entitles')
    expect(story.stdout).toContain('the last of 3 times')
    // one license, one email
    await process.until(async () => (await mailService(at)).emails > 0)
    expect(await mailService(at)).toMatchObject({
      emails: 1,
      sent: [{ order: '1001', template: 'license' }],
    })
    expect((await hookledger('audit')).code).toBe(0)
    expect((await (await fetch(`${at.url}/metrics`)).text()).split('\n')).toContain(
      'hookledger_inbox_events_total{source="stripe",outcome="fulfilled"} 1',
    )

    const second = await hookledger('dev')
    expect([second.code, second.stdout]).toEqual([1, ''])
    expect(second.stderr).toMatch(
      /^hookledger: another hookledger dev at [^\n]+ \(HKL_SERVER_IN_USE\)\n$/,
    )

    const worker = workerOf(process.pid) ?? 0
    process.child.kill('SIGTERM')
    expect(await process.ended).toMatchObject({ code: 0, signal: null })
    expect(existsSync(join(dataDir, 'dev.json'))).toBe(false)
    expect(isAlive(worker)).toBe(false)
  })

  it('goes on where it was after a kill -9, its worker gone with it', async () => {
    const { process: first } = await dev()
    const worker = workerOf(first.pid) ?? 0
    first.child.kill('SIGKILL')
    await first.ended
    for (let tries = 0; isAlive(worker) && tries < 200; tries++) await sleep(50)
    expect(isAlive(worker)).toBe(false)
    expect((await hookledger('status')).code).toBe(2)

    await dev()
    expect((await hookledger('explain', '1001')).stdout).toContain('is paid, which entitles')
    expect((await hookledger('audit')).code).toBe(0)
  })

  it('starts another worker when one is killed, and loses nothing that was received meanwhile', async () => {
    const { process, at } = await dev()
    const first = workerOf(process.pid) ?? 0
    globalThis.process.kill(first, 'SIGKILL')
    const sent = await hookledger(
      'send',
      'stripe',
      'checkout.session.completed',
      '--order',
      '1002',
      '--json',
    )
    const { event_id: id } = JSON.parse(sent.stdout) as { event_id: string }
    await process.until(async () => (await states(at)).get(id) === 'processed')
    expect(workerOf(process.pid)).not.toBe(first)
    expect(await isReady(at.url)).toBe(true)
  })

  it('treats the same signal from npm and the terminal as one', async () => {
    const { process } = await dev()
    process.child.kill('SIGINT')
    process.child.kill('SIGINT')
    process.child.kill('SIGTERM')
    expect(await process.ended).toMatchObject({ code: 0, signal: null })
  })

  it('lets events that end or block their worker end dead, alone, while all others flow', async () => {
    const { process, at } = await dev(['--config', poison])
    const harmless = Array.from({ length: 6 }, (_, n) => product('fine', `fine_${n}`))
    const events = [
      product('exit', 'exit'),
      ...harmless.slice(0, 3),
      product('loop', 'loop'),
      ...harmless.slice(3),
    ]
    for (const event of events) expect(await post(at.url, event)).toBe(200)
    await process.until(async () => {
      const now = await states(at)
      return now.get('evt_exit') === 'dead' && now.get('evt_loop') === 'dead'
    })
    const dead = (await hookledger('dead', '--json')).stdout.trimEnd().split('\n')
    expect(dead.map((row) => (JSON.parse(row) as { event_id: string }).event_id).sort()).toEqual([
      'evt_exit',
      'evt_loop',
    ])
    const now = await states(at)
    for (const event of harmless) expect(now.get(event.id)).toBe('processed')
    expect(process.stderr).toContain('the event loop did not turn for 1000 ms inside a batch')
    expect((await hookledger('dead', 'show', 'evt_loop')).stdout).toContain(
      'only an operator can bring it back',
    )
  })

  it('starts its database again when that is killed, and takes events as before', async () => {
    const { process, at } = await dev()
    const server =
      childrenOf(process.pid).find((pid) => childCommand(pid).includes('bin/postgres')) ?? 0
    globalThis.process.kill(server, 'SIGKILL')
    await process.until(async () => (await post(at.url, product('fine', 'after_kill'))) === 200)
    // an event of a type that every configuration handles: which one is the newest does not matter here
    const sent = await hookledger(
      'send',
      'stripe',
      'checkout.session.completed',
      '--order',
      'after-kill',
    )
    expect(sent.code).toBe(0)
    await process.until(async () =>
      (await hookledger('explain', 'after-kill')).stdout.includes('is paid'),
    )
    expect((await hookledger('audit')).code).toBe(0)
  })

  it('finishes what is in hand at the first signal, and stops at once, just as safe, at another one', async () => {
    const first = await dev(['--config', poison], { SLOW_MS: '2000', WATCHDOG_MS: '60000' })
    expect(await post(first.at.url, product('slow', 'finished'))).toBe(200)
    await untilInWork(first.process, first.at)
    first.process.child.kill('SIGTERM')
    expect(await first.process.ended).toMatchObject({ code: 0, signal: null })

    const second = await dev(['--config', poison], { SLOW_MS: '60000', WATCHDOG_MS: '60000' })
    expect((await states(second.at)).get('evt_finished')).toBe('processed')
    expect(await post(second.at.url, product('slow', 'cut'))).toBe(200)
    await untilInWork(second.process, second.at)
    second.process.child.kill('SIGINT')
    await sleep(1200)
    second.process.child.kill('SIGINT')
    expect(await second.process.ended).toMatchObject({ code: 130, signal: null })

    const third = await dev(['--config', poison])
    await third.process.until(async () => (await states(third.at)).get('evt_cut') === 'processed')
    expect((await hookledger('audit')).code).toBe(0)
  })
})

/** What the simulated mail service says of itself. */
interface MailService {
  readonly calls: number
  readonly emails: number
  readonly sent: readonly { readonly operation: string; readonly order: string }[]
}

async function mailService(at: DevJson): Promise<MailService> {
  return (await (await fetch(at.emailUrl)).json()) as MailService
}

describe('the emails of hookledger dev', () => {
  let ownDir: string

  beforeAll(() => {
    ownDir = makeTestDir()
  })

  afterAll(() => removeDataDir(ownDir))

  async function simulating(orders: number): Promise<{ process: Spawned; at: DevJson }> {
    const process = spawned(['dev', '--simulate', '--orders', String(orders)], {
      HOOKLEDGER_DATA_DIR: ownDir,
    })
    return { process, at: await untilReady(process, ownDir) }
  }

  it('arrive once for every license and refund, although everything is killed in the middle of them', async () => {
    for (let round = 0; round < 2; round++) {
      const { process, at } = await simulating(120)
      const { emails } = await mailService(at)
      await process.until(async () => (await mailService(at)).emails >= emails + 15)
      for (const pid of [...childrenOf(process.pid), process.pid])
        globalThis.process.kill(pid, 'SIGKILL')
      await process.ended
    }

    const { process, at } = await simulating(15)
    await process.until(() => process.stdout.endsWith('simulation finished\n'))
    expect(process.stdout).toContain("every email is in the mail service's own log once")
    expect(process.stdout).toMatch(/^ {2}emails +\d+ operations, \d+ calls, \d+ arrived, each/m)
    const effects = await oncePool(at.databaseUrl, async (pool) => {
      const { rows } = await pool.query<{ order_id: string; state: string; operation: string }>(
        `select f.order_id, o.state, o.operation_id::text as operation
         from hookledger.fulfillment_effects f left join hookledger.outbox o
           on (o.order_id, o.effect_type, o.effect_reference) = (f.order_id, f.effect_type, f.effect_reference)
         where f.effect_type in ('license', 'refund') or f.effect_type = 'credits' and exists (
           select 1 from hookledger.orders w where w.order_id = f.order_id and w.workflow = 'saas')`,
      )
      return rows
    })
    const { sent, emails, calls } = await mailService(at)
    expect(effects.length).toBeGreaterThan(40)
    expect(new Set(effects.map((effect) => effect.state))).toEqual(new Set(['sent']))
    const told = effects.map(({ operation, order_id: order }) => ({ operation, order }))
    const arrived = sent.map(({ operation, order }) => ({ operation, order }))
    const byId = (a: { operation: string }, b: { operation: string }): number =>
      a.operation < b.operation ? -1 : 1
    expect(arrived.sort(byId)).toEqual(told.sort(byId))
    expect(new Set(sent.map(({ operation }) => operation)).size).toBe(emails)
    // what went wrong was tried again: no proof without it
    expect(calls).toBeGreaterThan(emails)
    const audited = await runProcess(['audit'], { HOOKLEDGER_DATA_DIR: ownDir })
    expect(audited.code).toBe(0)
  }, 240_000)
})

describe('hookledger start', () => {
  let database: TestDatabase

  beforeAll(async () => {
    database = await createTestDatabase()
  })

  afterAll(() => database.drop())

  it('refuses a database that nobody migrated, and says what to run', async () => {
    const ended = await runProcess(['start'], { ...env, DATABASE_URL: database.url })
    expect([ended.code, ended.stdout]).toEqual([1, ''])
    expect(ended.stderr).toContain('run "hookledger migrate"')
  })

  it('receives in one process and works in another, many at once', async () => {
    const on = { DATABASE_URL: database.url }
    expect((await runProcess(['migrate'], { ...env, ...on })).code).toBe(0)
    const receiver = spawned(['start', '--roles', 'receive'], on)
    const workers = [
      spawned(['start', '--roles', 'work'], on),
      spawned(['start', '--roles', 'work'], on),
    ]
    const url = await receiver.until(() => /serves (\S+) /.exec(receiver.stderr)?.[1])
    await Promise.all(workers.map((worker) => worker.until(() => worker.stderr.includes('serves'))))
    expect(workerOf(receiver.pid)).toBeUndefined()
    const sent = await runProcess(
      [
        'send',
        'stripe',
        'checkout.session.completed',
        '--order',
        '1',
        '--times',
        '5',
        '--url',
        `${url}/webhooks/stripe`,
      ],
      { ...env, ...on },
    )
    expect(sent.code).toBe(0)
    await receiver.until(async () =>
      (await runProcess(['explain', '1'], { ...env, ...on })).stdout.includes('is paid'),
    )
    const elsewhere = /serves (\S+) /.exec(workers[0]?.stderr ?? '')?.[1] ?? ''
    expect(
      (await fetch(`${elsewhere}/webhooks/stripe`, { method: 'POST', body: '{}' })).status,
    ).toBe(404)
    expect(await isReady(elsewhere)).toBe(true)
    expect((await runProcess(['audit'], { ...env, ...on })).code).toBe(0)
    for (const each of [receiver, ...workers]) {
      each.child.kill('SIGTERM')
      expect(await each.ended).toMatchObject({ code: 0, signal: null })
    }
  })
})
