import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { RetryAfter } from '../../../src/core/errors.ts'
import { failureOf, makeRequest, RequestsUnderWay } from '../../../src/inbox/gather/call.ts'
import type {
  FinishedFetch,
  GatherContext,
  LeasedFetch,
} from '../../../src/inbox/gather/gather-context.ts'
import { createGatherer, type Gatherer } from '../../../src/inbox/gather/gatherer.ts'
import { leaseFetches } from '../../../src/inbox/gather/lease.ts'
import { tellOverdue } from '../../../src/inbox/gather/overdue.ts'
import { settleFetches } from '../../../src/inbox/gather/settle.ts'
import { away, Refusal } from '../../support/asked-provider.ts'
import { createGatherBench, type GatherBench } from '../../support/gather-bench.ts'
import { until } from '../../support/probe.ts'

let bench: GatherBench
let ctx: GatherContext
let gatherer: Gatherer
const told: { readonly signal: string; readonly detail: object }[] = []
beforeAll(async () => {
  bench = await createGatherBench({
    gather: {
      callsPerSecond: 10_000,
      callsPerSecondPerAccount: 10_000,
      breakerFailures: 1000,
      callMs: 300,
      leaseMs: 1000,
    },
  })
  ctx = await bench.parts.gatherContext()
  gatherer = createGatherer(ctx)
  for (const signal of ['gather.request.failed', 'gather.answers.stored'] as const)
    bench.parts.signals.on(signal, (detail) => told.push({ signal, detail }))
})
afterAll(() => bench.close())
beforeEach(async () => {
  told.length = 0
  bench.provider.reset()
  await bench.reset()
})

/** One look of the gatherer at what is due now, whatever comes later. */
const once = (): Promise<unknown> => gatherer.drain(performance.now())
const findings = (): Promise<unknown[]> =>
  bench.rows(
    `select kind, class, state, order_id, evidence ->> 'error' as error, closed_because from findings where kind = 'fetch_overdue'`,
  )
const waits = async (): Promise<{ attempts: number; in_ms: number }> => {
  const [row] = await bench.rows<{ attempts: number; in_ms: number }>(
    `select attempts, (extract(epoch from due_at - clock_timestamp()) * 1000)::int as in_ms from fetches`,
  )
  return row ?? { attempts: 0, in_ms: 0 }
}

describe('a request that fails', () => {
  it('is made again later each time, and the events wait on', async () => {
    bench.provider.answer = away
    await bench.ask(bench.look('p1'))
    await once()
    const first = await waits()
    expect(first.attempts).toBe(1)
    expect(first.in_ms).toBeGreaterThan(300)
    expect(first.in_ms).toBeLessThanOrEqual(1000)
    for (let attempt = 0; attempt < 12; attempt++) {
      await bench.later(300_000)
      await once()
    }
    expect(await waits()).toMatchObject({ attempts: 13 })
    expect((await waits()).in_ms).toBeGreaterThan(145_000)
    expect((await waits()).in_ms).toBeLessThanOrEqual(300_000)
    expect(await bench.rows('select waiting from inbox_gathers')).toEqual([{ waiting: true }])
    bench.provider.answer = undefined
    bench.provider.plans.set('p1', { status: 'active' })
    await bench.later(300_000)
    await bench.work()
    expect(await bench.order('o_p1')).toMatchObject({ state: 'active', sent: 14, answered: 14 })
  })

  it('is not made again before the provider wants it', async () => {
    bench.provider.answer = () => {
      throw new Refusal({
        kind: 'later',
        isRateLimit: false,
        retryAfterMs: 90_000,
        text: 'HTTP 503',
      })
    }
    await bench.ask(bench.look('p1'))
    await once()
    expect((await waits()).in_ms).toBeGreaterThan(85_000)
  })

  it('has ended at its deadline, although its code does not listen', async () => {
    let release = (): void => {}
    bench.provider.answer = () =>
      new Promise((resolve) => (release = () => resolve({ status: 'active' })))
    await bench.ask(bench.look('p1'))
    await once()
    expect(told).toMatchObject([
      { detail: { kind: 'later', error: 'no answer within 300 ms', attempts: 1 } },
    ])
    expect(bench.provider.seen[0]?.signal.aborted).toBe(true)
    release()
    await sleep(20)
    expect(await bench.rows('select 1 from evidence')).toEqual([])
  })

  it('is told without anything of what was thrown where nobody knows what it means', async () => {
    bench.provider.answer = () => {
      throw new Error('secret sk_live_123')
    }
    await bench.ask(bench.look('p1'))
    await once()
    expect(JSON.stringify(told)).not.toContain('sk_live')
    expect(told).toMatchObject([{ detail: { kind: 'unknown', about: 'plan p1', orderId: 'o_p1' } }])
  })

  it('never takes a forgotten answer for an object that is gone', async () => {
    bench.provider.plans.set('p1', { status: 'active' })
    await bench.deliver(bench.look('p1'))
    await bench.work()
    bench.provider.answer = () => Promise.resolve(undefined).then(() => 'nothing')
    const context: GatherContext = {
      ...ctx,
      apiOf: () => ({
        client: () => ({ retrieve: () => undefined }),
        failureOf: bench.provider.calls.failureOf,
      }),
    }
    await bench.ask(bench.look('p1'))
    await createGatherer(context).drain(performance.now())
    expect(told.at(-1)).toMatchObject({
      detail: { error: expect.stringMatching(/^fetch answered undefined/) },
    })
    expect(await bench.order('o_p1')).toMatchObject({ state: 'active', has: 'team 1' })
  })
})

describe('a request that needs a person', () => {
  it('is told at once where it is refused, and is over when it is answered', async () => {
    bench.provider.answer = () => {
      throw new Refusal({ kind: 'refused', text: 'HTTP 401' })
    }
    await bench.ask(bench.look('p1'))
    await once()
    expect(await findings()).toEqual([
      {
        kind: 'fetch_overdue',
        class: 'lag',
        state: 'open',
        order_id: 'o_p1',
        error: 'HTTP 401',
        closed_because: null,
      },
    ])
    bench.provider.answer = undefined
    bench.provider.plans.set('p1', { status: 'active' })
    await bench.later(300_000)
    await once()
    expect(await findings()).toMatchObject([
      { state: 'closed', closed_because: 'the provider has answered' },
    ])
  })

  it('is told once when nobody has answered for an hour, whoever makes requests or nobody', async () => {
    await bench.ask(bench.look('p1'), bench.look('p2'))
    expect(await tellOverdue(ctx)).toBe(0)
    await bench.later(3_600_000)
    expect(await tellOverdue(ctx)).toBe(2)
    expect(await tellOverdue(ctx)).toBe(0)
    expect(await findings()).toMatchObject([
      { state: 'open', error: 'nothing was asked yet: is a gatherer running?' },
      { state: 'open' },
    ])
    await once()
    expect(await findings()).toMatchObject([{ state: 'closed' }, { state: 'closed' }])
  })
})

describe('who comes too late', () => {
  const request = async (fetch: LeasedFetch): Promise<FinishedFetch> => ({
    fetch,
    outcome: await makeRequest(ctx, fetch, new RequestsUnderWay()),
  })
  const take = async (): Promise<LeasedFetch> => {
    const { leased } = await leaseFetches(ctx, { most: 10 })
    expect(leased).toHaveLength(1)
    return leased[0] as LeasedFetch
  }

  it('tells nobody of a refusal where the request was made again meanwhile', async () => {
    bench.provider.answer = () => {
      throw new Refusal({ kind: 'refused', text: 'HTTP 401' })
    }
    await bench.ask(bench.look('p1'))
    const old = await request(await take())
    await bench.later(1000)
    bench.provider.answer = () => ({ status: 'active' })
    await settleFetches(ctx, [await request(await take())])
    await settleFetches(ctx, [old])
    expect(await findings()).toEqual([])
  })

  it('leaves what somebody asked for later to be told again, since its finding is closed', async () => {
    await bench.ask(bench.look('p1'))
    bench.provider.answer = () => ({ status: 'active' })
    const slow = await request(await take())
    await bench.ask(bench.look('p1'))
    await bench.later(3_600_000)
    await take()
    expect(await tellOverdue(ctx)).toBe(1)
    await settleFetches(ctx, [{ ...slow, fetch: { ...slow.fetch, ageMs: 3_600_000 } }])
    expect(await findings()).toMatchObject([{ state: 'closed' }])
    expect(
      await bench.rows('select leased_until is not null as leased, told from fetches'),
    ).toEqual([{ leased: true, told: false }])
    await bench.later(3_600_000)
    expect(await tellOverdue(ctx)).toBe(1)
    expect(await findings()).toMatchObject([{ state: 'open' }])
  })

  it('closes a finding that is being opened while the answer is written', async () => {
    bench.provider.answer = () => ({ status: 'active' })
    await bench.ask(bench.look('p1'))
    await bench.later(3_600_000)
    const answer = await request(await take())
    const [opening, open] = held()
    const [found, tell] = held()
    const slow: GatherContext = {
      ...ctx,
      db: {
        ...ctx.db,
        transaction: (work, options) =>
          ctx.db.transaction(work, {
            ...options,
            beforeCommit: async () => {
              tell()
              await opening
            },
          }),
      },
    }
    const telling = tellOverdue(slow)
    await found
    const settling = settleFetches(ctx, [answer])
    await until(
      () =>
        bench.rows(
          `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
        ),
      (waiting) => waiting.length > 0,
    )
    open()
    expect(await telling).toBe(1)
    await settling
    expect(await findings()).toMatchObject([{ state: 'closed' }])
  })
})

describe('what a source says of a failure', () => {
  const odd = async (failureOf: unknown): Promise<unknown> => {
    bench.provider.answer = away
    await bench.ask(bench.look('p1'))
    await createGatherer({
      ...ctx,
      apiOf: () => ({ ...bench.provider.calls, failureOf: failureOf as never }),
    }).drain(performance.now())
    return told.at(-1)?.detail
  }

  it('counts for nothing where it is no such word', async () => {
    expect(await odd(() => undefined)).toMatchObject({
      kind: 'unknown',
      error: 'a failure that its source cannot read',
    })
  })

  it('is not read from what throws when it is read', () => {
    const strange = Object.defineProperty(new Error('x'), 'constructor', { value: undefined })
    const worse = new Proxy(
      {},
      {
        getPrototypeOf: () => {
          throw new Error('secret')
        },
      },
    )
    for (const error of [strange, worse, null, undefined, 'sk_live_1']) {
      for (const api of [bench.provider.calls, undefined]) {
        expect(failureOf(error, api)).toMatchObject({ kind: 'unknown' })
        expect(failureOf(error, api).text).not.toMatch(/secret|sk_live/)
      }
    }
  })

  it('is no time where it is no number', async () => {
    for (const delayMs of [Number.NaN, -5, '60000' as never]) {
      bench.provider.reset()
      await bench.reset()
      bench.provider.answer = () => {
        throw new RetryAfter(delayMs)
      }
      await bench.ask(bench.look('p1'))
      await once()
      expect((await waits()).in_ms).toBeLessThanOrEqual(1000)
    }
  })

  it('puts nothing off for longer than the longest pause', async () => {
    const said = { kind: 'later', isRateLimit: true, retryAfterMs: 1e15, text: 'HTTP 429' }
    expect(await odd(() => said)).toMatchObject({ kind: 'later', nextInMs: 300_000 })
    const [budget] = await bench.rows<{ ms: number }>(
      `select max(extract(epoch from closed_until - clock_timestamp()) * 1000)::float8 as ms from fetch_budgets`,
    )
    expect(budget?.ms).toBeLessThanOrEqual(300_000)
  })
})

describe('gatherNow', () => {
  it('asks at once for what an event waits for, whenever that would be due', async () => {
    bench.provider.answer = away
    await bench.ask(bench.look('p1'), bench.look('p2'))
    await once()
    bench.provider.answer = undefined
    bench.provider.plans.set('p1', { status: 'active' })
    const [event] = await bench.rows<{ event_key: string }>(
      `select event_key from inbox_gathers where object_id = 'p1'`,
    )
    const key = BigInt(event?.event_key ?? 0)
    expect(await bench.parts.gatherNow([key], 5000)).toBe(true)
    await bench.parts.workOff([key])
    expect(await bench.order('o_p1')).toMatchObject({ state: 'active' })
    expect(bench.provider.asked('p2')).toBe(1)
  })

  it('waits for the request of another that is under way, and no longer than it may', async () => {
    const [slow, go] = held()
    bench.provider.answer = async () => {
      await slow
      return { status: 'active' }
    }
    await bench.ask(bench.look('p1'))
    const drained = gatherer.drain(performance.now() + 5000)
    await until(
      () => Promise.resolve(bench.provider.seen.length),
      (seen) => seen === 1,
    )
    const [event] = await bench.rows<{ event_key: string }>('select event_key from inbox_gathers')
    const key = BigInt(event?.event_key ?? 0)
    expect(await bench.parts.gatherNow([key], 50)).toBe(false)
    const waiting = bench.parts.gatherNow([key], 5000)
    go()
    expect(await waiting).toBe(true)
    await drained
    expect(bench.provider.seen).toHaveLength(1)
  })

  it('answers at once where the provider fails, and leaves the request to the usual gatherer', async () => {
    bench.provider.answer = away
    await bench.ask(bench.look('p1'))
    const [event] = await bench.rows<{ event_key: string }>('select event_key from inbox_gathers')
    expect(await bench.parts.gatherNow([BigInt(event?.event_key ?? 0)], 20_000)).toBe(false)
    expect(await waits()).toMatchObject({ attempts: 1 })
  })
})

describe('stopping', () => {
  it('finishes the requests in hand', async () => {
    const [slow, go] = held()
    bench.provider.answer = async () => {
      await slow
      return { status: 'active' }
    }
    await bench.ask(bench.look('p1'))
    const running = createGatherer(ctx)
    running.start()
    await until(
      () => Promise.resolve(bench.provider.seen.length),
      (seen) => seen === 1,
    )
    const stopped = running.stop(5000)
    go()
    expect(await stopped).toBe(true)
    expect(await bench.rows('select 1 from evidence')).toHaveLength(1)
    expect(await bench.rows('select 1 from fetches')).toEqual([])
  })

  it('ends what would take longer, and leaves it due as if nothing had been asked', async () => {
    bench.provider.answer = () => new Promise(() => {})
    await bench.ask(bench.look('p1'))
    const running = createGatherer({
      ...ctx,
      settings: { ...ctx.settings, callMs: 10_000, leaseMs: 30_000 },
    })
    running.start()
    await until(
      () => Promise.resolve(bench.provider.seen.length),
      (seen) => seen === 1,
    )
    expect(await running.stop(2000)).toBe(true)
    expect(await waits()).toMatchObject({ attempts: 0 })
    expect((await waits()).in_ms).toBeLessThanOrEqual(0)
    expect(bench.provider.seen).toHaveLength(1)
  })
})

/** A promise, and what fulfills it. */
function held(): [Promise<void>, () => void] {
  let go = (): void => {}
  const promise = new Promise<void>((resolve) => (go = resolve))
  return [promise, go]
}
