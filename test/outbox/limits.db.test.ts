import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createOutboxBench, type OutboxBench } from '../support/dispatch-bench.ts'
import { busy, done, scripted } from '../support/scripted-destination.ts'

const narrow = scripted({ concurrency: 3 })
const rated = scripted({ ratePerSecond: 20, concurrency: 50 })
const fragile = scripted({ breakerFailures: 3, breakerMs: 400, concurrency: 1 })
const destinations = { narrow, rated, fragile }
let bench: OutboxBench

beforeAll(async () => {
  bench = await createOutboxBench(destinations)
})
afterAll(() => bench.close())
beforeEach(async () => {
  for (const each of Object.values(destinations)) each.reset()
  await bench.clear()
})

describe('concurrency', () => {
  it('holds over all dispatchers', async () => {
    narrow.otherwise(async () => {
      await new Promise((resolve) => setTimeout(resolve, 10))
      return done
    })
    for (let n = 0; n < 30; n++) await bench.add('narrow', `c:${n}`)
    const dispatchers = await Promise.all(
      [1, 2, 3].map(async () => {
        const { partsOf } = await import('../../src/hookledger.ts')
        return partsOf(bench.another(destinations)).dispatcher()
      }),
    )
    for (const each of dispatchers) each.start()
    await expect.poll(() => narrow.arrived.length, { timeout: 15_000 }).toBe(30)
    await Promise.all(dispatchers.map((each) => each.stop(5000)))
    expect(narrow.peak()).toBeLessThanOrEqual(3)
    expect(narrow.peak()).toBeGreaterThan(1)
  })
})

describe('rate', () => {
  it('lets no more through than so many a second, over all dispatchers', async () => {
    for (let n = 0; n < 25; n++) await bench.add('rated', `r:${n}`)
    const others = [bench.another(destinations), bench.another(destinations)]
    const until = Promise.all(others.map((each) => each.start()))
    await until
    await expect.poll(() => rated.arrived.length, { timeout: 15_000 }).toBe(25)
    await Promise.all(others.map((each) => each.stop()))
    const times = rated.arrived.map((call) => call.at)
    // in any second: a second's worth, and what had gathered
    for (const from of times)
      expect(times.filter((at) => at >= from && at < from + 1000).length).toBeLessThanOrEqual(23)
    expect(Math.max(...times) - Math.min(...times)).toBeGreaterThan(1000)
  })
})

describe('the breaker', () => {
  it('leaves a destination alone after failures in a row, then tries one call, then goes on', async () => {
    const told: string[] = []
    const { signals } = bench.parts
    const stops = [
      signals.on('outbox.destination.paused', ({ failures }) => told.push(`paused ${failures}`)),
      signals.on('outbox.destination.resumed', () => told.push('resumed')),
    ]
    fragile.next(busy, busy, busy, busy)
    for (let n = 0; n < 8; n++) await bench.add('fragile', `b:${n}`)
    const dispatcher = await bench.parts.dispatcher()
    dispatcher.start()
    await expect.poll(() => fragile.arrived.length, { timeout: 15_000 }).toBe(8)
    await dispatcher.stop(5000)
    for (const stop of stops) stop()
    const times = fragile.arrived.map((call) => call.at)
    expect((times[3] ?? 0) - (times[2] ?? 0)).toBeGreaterThanOrEqual(350) // one alone, and it failed
    expect((times[4] ?? 0) - (times[3] ?? 0)).toBeGreaterThanOrEqual(350)
    expect(told).toEqual(['paused 3', 'paused 4', 'resumed'])
    const [row] = await bench.rows(
      `select failures, closed_until, under_way from outbox_destinations where destination = 'fragile'`,
    )
    expect(row).toEqual({ failures: 0, closed_until: null, under_way: 0 })
  })
})

describe('Retry-After', () => {
  it('is kept, up to the longest pause of the contract, by the clock of the database', async () => {
    narrow.next({ kind: 'retry', error: '429', status: 429, retryAfterMs: 30_000 })
    narrow.next({ kind: 'retry', error: '429', status: 429, retryAfterMs: 86_400_000 })
    const waits = async (id: string): Promise<number> => {
      const [row] = await bench.rows<{ ms: number }>(
        `select extract(epoch from next_attempt_at - clock_timestamp())::double precision * 1000 as ms
         from outbox_operations where operation_id = $1`,
        [id],
      )
      return row?.ms ?? 0
    }
    const near = await bench.add('narrow', 'near')
    await bench.run()
    const far = await bench.add('narrow', 'far')
    await bench.run()
    expect(await waits(near)).toBeGreaterThan(25_000)
    expect(await waits(far)).toBeGreaterThan(50_000)
    expect(await waits(far)).toBeLessThanOrEqual(60_000)
  })
})

describe('stopping', () => {
  it('takes nothing more and finishes the calls in hand', async () => {
    let finish: () => void = () => {}
    narrow.next(() => new Promise((resolve) => (finish = () => resolve(done))))
    const id = await bench.add('narrow', 'in hand')
    const dispatcher = await bench.parts.dispatcher()
    dispatcher.start()
    await expect.poll(() => narrow.arrived.length).toBe(1)
    const stopped = dispatcher.stop(5000)
    await bench.add('narrow', 'not any more')
    finish()
    expect(await stopped).toBe(true)
    expect(await bench.operation(id)).toMatchObject({ state: 'sent' })
    expect(narrow.arrived).toHaveLength(1)
  })

  it('ends within its bound a call that does not, and writes that nobody knows', async () => {
    narrow.next(() => new Promise(() => {}))
    const id = await bench.add('narrow', 'hangs')
    const dispatcher = await bench.parts.dispatcher()
    dispatcher.start()
    await expect.poll(() => narrow.arrived.length).toBe(1)
    expect(await dispatcher.stop(2000)).toBe(true)
    expect(await bench.operation(id)).toMatchObject({ state: 'uncertain', lease: null })
    expect(await bench.attempts(id)).toMatchObject([
      { error: 'no answer before the dispatcher stopped' },
    ])
  })
})
