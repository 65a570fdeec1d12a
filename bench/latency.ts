/**
 * `latency`: 50 deliveries a second, from the moment a delivery is sent to the commit of its effect; our
 * receiver and worker in one process, against the usual handler, which does everything in the request.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createDatabase } from '../src/postgres/pool.ts'
import { migrate } from '../src/postgres/migrate.ts'
import { partsOf } from '../src/hookledger.ts'
import { createHookledgerServer } from '../src/server/server.ts'
import { migrateHandler, startHandler } from './accept-servers.ts'
import { checkoutEvents, type CheckoutEvent } from './checkout-events.ts'
import { openOrders } from './contestants/business-writes.ts'
import { poolSize } from './contest.ts'
import { median, percentile, rounded } from './figures.ts'
import { benchHookledger } from './license.ts'
import { exchange, open, requestBytes } from './raw-client.ts'
import type { BenchContext, Report } from './report.ts'
import { createBenchPool, dropSchemas } from './server.ts'

const perSecond = 50

/** Milliseconds from sending to commit, by event id. */
type Clock = Map<string, { readonly sentAt: number; committedAt?: number }>

/** Runs the comparison. */
export async function benchLatency({ server, options, log }: BenchContext): Promise<Report> {
  const ours: number[][] = []
  const theirs: number[][] = []
  for (let round = 0; round < options.rounds; round++) {
    const runs = [
      async () =>
        ours.push(await runOurs(server.url, `ours_${process.pid}_${round}`, options.seconds)),
      async () =>
        theirs.push(
          await runHandler(server.url, `theirs_${process.pid}_${round}`, options.seconds),
        ),
    ]
    for (const run of round % 2 === 0 ? runs : runs.reverse()) await run()
    log(
      `round ${round + 1}: ours p50 ${shown(ours.at(-1), 0.5)} ms, handler p50 ${shown(theirs.at(-1), 0.5)} ms`,
    )
  }
  const of = (rounds: readonly number[][], share: number): number =>
    rounded(median(rounds.map((times) => percentile(times, share))))
  return {
    bench: 'latency',
    unit: 'ms from delivery to committed effect',
    conditions: { rate: `${perSecond} events/s`, pool: String(poolSize) },
    results: [
      { name: 'hookledger', p50: of(ours, 0.5), p99: of(ours, 0.99) },
      { name: 'express_handler', p50: of(theirs, 0.5), p99: of(theirs, 0.99) },
    ],
    ratios: {
      // as speeds, so that more is better here too: the floor is three times the handler's time
      p50_vs_handler: rounded(of(theirs, 0.5) / of(ours, 0.5)),
      p99_vs_handler: rounded(of(theirs, 0.99) / of(ours, 0.99)),
    },
    floors: { p50_vs_handler: 1 / 3 },
  }
}

function shown(times: readonly number[] | undefined, share: number): number {
  return rounded(percentile(times ?? [], share))
}

async function runOurs(url: string, schema: string, seconds: number): Promise<number[]> {
  const pool = createBenchPool(url, poolSize)
  const hookledger = benchHookledger(pool, schema)
  const clock: Clock = new Map()
  try {
    await migrate(createDatabase(pool, schema), { environment: 'test', partitionsAheadDays: 35 })
    const parts = partsOf(hookledger)
    const events = checkoutEvents(schema, seconds * perSecond)
    parts.signals.on('inbox.event.decided', ({ eventId }) => stamp(clock, eventId))
    await hookledger.start()
    await openOrders(pool, schema, events)
    const server = createHookledgerServer({
      limits: parts.config.limits,
      ready: () => Promise.resolve(true),
      ingest: (request) => hookledger.ingest(request),
    })
    const { port } = await server.listen(0, '127.0.0.1')
    await sendSteadily(port, events, clock)
    await server.stop(1000)
    return await timesOf(clock, events.length)
  } finally {
    await hookledger.stop()
    await pool.end()
    await dropSchemas(url, [schema])
  }
}

async function runHandler(url: string, schema: string, seconds: number): Promise<number[]> {
  const pool = createBenchPool(url, poolSize)
  const clock: Clock = new Map()
  try {
    await migrateHandler(pool, schema)
    const events = checkoutEvents(schema, seconds * perSecond)
    const server = await startHandler(pool, schema, (eventId) => stamp(clock, eventId))
    await sendSteadily(server.port, events, clock)
    await server.stop()
    return await timesOf(clock, events.length)
  } finally {
    await pool.end()
    await dropSchemas(url, [schema])
  }
}

function stamp(clock: Clock, eventId: string): void {
  const times = clock.get(eventId)
  if (times !== undefined) times.committedAt ??= performance.now()
}

async function sendSteadily(
  port: number,
  events: readonly CheckoutEvent[],
  clock: Clock,
): Promise<void> {
  const sockets = await Promise.all(Array.from({ length: 16 }, () => open(port)))
  const startedAt = performance.now()
  const answers: Promise<number>[] = []
  for (const [index, event] of events.entries()) {
    await sleep(Math.max(0, startedAt + (index * 1000) / perSecond - performance.now()))
    const socket = sockets[index % sockets.length]
    if (socket === undefined) continue
    const request = requestBytes(event)
    clock.set(event.id, { sentAt: performance.now() })
    answers.push(exchange(socket, request))
  }
  for (const status of await Promise.all(answers))
    if (status !== 200) throw new Error(`answered ${status}`)
  for (const socket of sockets) socket.destroy()
}

/** The first second is left out: connections and code are cold. */
async function timesOf(clock: Clock, expected: number): Promise<number[]> {
  for (let tries = 0; tries < 200; tries++) {
    const all = [...clock.values()]
    if (all.length === expected && all.every(({ committedAt }) => committedAt !== undefined)) {
      return all
        .slice(perSecond)
        .map(({ sentAt, committedAt = Number.NaN }) => committedAt - sentAt)
    }
    await sleep(50)
  }
  throw new Error('some deliveries had no effect')
}
