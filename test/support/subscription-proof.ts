/**
 * A shop that follows subscriptions, over a database of its own and a provider in memory: plays worlds with
 * real workers and gatherers beside the deliveries, and says what was wrong afterwards, a line for each.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type pg from 'pg'
import { createHookledger, stripe, type Hookledger, type HookledgerOptions } from 'hookledger'
import { partsOf } from '../../src/hookledger.ts'
import type { PoolLike } from '../../src/postgres/pool.ts'
import type { Source } from '../../src/providers/provider.ts'
import { signStripe } from '../../src/testing/sign.ts'
import { stripeBody } from '../../src/testing/stripe-events.ts'
import { createRandom } from '../../src/testing/stripe-double/random.ts'
import type { Workflow } from '../../src/workflow/workflow.ts'
import { createHookledgerDatabase } from './hookledger-database.ts'
import type { SentDelivery } from './oracle.ts'
import { emptyTables } from './probe.ts'
import { sent } from './shop-history.ts'
import type { Life } from './subscription-living.ts'
import { SubscriptionProvider, type Latency } from './subscription-provider.ts'
import { subscriptionRecords } from './subscription-records.ts'
import { goneVersion, traceAccess, type ToldEvent } from './subscription-tables.ts'
import { subscriptionWorkflow } from './subscription-workflow.ts'
import type { SubscriptionWorld, ToldBody } from './subscription-world.ts'

/** How a proof differs from the usual. */
export interface SubscriptionProofOptions {
  readonly workflow?: Workflow
  readonly options?: Partial<HookledgerOptions>
  /** Puts something between the engine and the database. */
  readonly wrap?: (pool: pg.Pool) => PoolLike
  /** Changes how the source asks its provider. */
  readonly source?: (source: Source) => Source
}

/** How a world is worked on. */
export interface WorkShape {
  readonly workers: number
  readonly gatherers: number
  readonly latency: Latency
  /** How long a tick lasts at least, in milliseconds. */
  readonly tickMs: number
  /** The chance that a gatherer falls asleep with an answer in hand; 0. */
  readonly asleep?: number
  /** How long a request is its gatherer's own, in milliseconds, where that is not the campaign's usual. */
  readonly leaseMs?: number
}

/** What playing a world came to. */
export interface PlayedWorld {
  readonly world: SubscriptionWorld
  readonly provider: SubscriptionProvider
  /** Distinct events that were delivered, with the version that the object had when they came. */
  readonly told: ReadonlyMap<string, ToldEvent & { readonly life: Life; readonly body: ToldBody }>
  readonly sent: readonly SentDelivery[]
}

/** The shop and its provider. */
export interface SubscriptionProof {
  readonly pool: pg.Pool
  readonly hookledger: Hookledger
  /** Whether its workflow looks again at an event of this type. */
  looksAt(type: string): boolean
  /** Empties the tables, lives through a world and waits until nothing is left to do. */
  play(seed: string, world: SubscriptionWorld, how: WorkShape): Promise<PlayedWorld>
  /** Delivers these, with workers and gatherers beside it, until nothing is left to do. */
  tell(events: readonly ToldBody[], how: WorkShape): Promise<void>
  /** One pass, with workers and gatherers beside it, until nothing is left to do. */
  pass(): Promise<readonly string[]>
  close(): Promise<void>
}

const secret = 'whsec_subscriptions_0123456789'
const ownAccount = 'acct_shop'
/** Without budgets in the way, and quickly again after a failure. */
export const fastGather: NonNullable<HookledgerOptions['gather']> = {
  callsPerSecond: 100_000,
  callsPerSecondPerAccount: 100_000,
  firstRetryMs: 15,
  maxRetryMs: 100,
  breakerFailures: 1_000_000,
}

/** How long the machine may take until nothing is left to do, in milliseconds. */
const quietWithinMs = 60_000

/** Creates the shop. */
export async function createSubscriptionProof({
  workflow = subscriptionWorkflow(),
  options = {},
  wrap = (pool) => pool,
  source: change = (source) => source,
}: SubscriptionProofOptions = {}): Promise<SubscriptionProof> {
  const database = await createHookledgerDatabase()
  const pool = database.pool({ max: 30, options: '-c search_path=hookledger,public' })
  pool.setMaxListeners(0)
  await pool.query(`update installation set created_at = now() - interval '3 hours'`)
  await traceAccess(pool)
  let playing:
    { readonly provider: SubscriptionProvider; readonly world: SubscriptionWorld } | undefined
  const now = (): NonNullable<typeof playing> => {
    if (playing === undefined) throw new Error('no world is played')
    return playing
  }
  const source = change({
    ...stripe({
      account: ownAccount,
      environment: 'test',
      signingSecrets: [secret],
      connect: true,
    }),
    calls: {
      client: (account, signal) => now().provider.api.client(account, signal),
      failureOf: (error) => now().provider.api.failureOf(error),
    },
    records: subscriptionRecords(
      () => ({ provider: now().provider, lives: now().world.lives }),
      ownAccount,
    ),
  })
  const hookledger = createHookledger({
    environment: 'test',
    sources: { stripe: source },
    workflows: [workflow],
    reconcile: { callsPerSecond: 100_000, lagMs: 0, overlapMs: 10_800_000, sliceMs: 7_200_000 },
    gather: fastGather,
    ...options,
    database: wrap(pool),
  })
  const parts = partsOf(hookledger)
  await parts.register()

  const working = async <T>(
    { workers, gatherers }: WorkShape,
    run: () => Promise<T>,
  ): Promise<T> => {
    const crew = [
      ...(await Promise.all(Array.from({ length: workers }, () => parts.worker({ loops: 1 })))),
      ...(await Promise.all(Array.from({ length: gatherers }, () => parts.gatherer()))),
    ]
    for (const each of crew) await each.start()
    try {
      const result = await run()
      await quiet(pool)
      return result
    } finally {
      await Promise.all(crew.map((each) => each.stop(10_000)))
    }
  }
  const deliver = async (event: ToldBody): Promise<void> => {
    const body = Buffer.from(stripeBody(event))
    const headers = signStripe(body, secret)
    const { status } = await hookledger.ingest({ source: 'stripe', headers, rawBody: body })
    if (status !== 200) throw new Error(`a delivery was answered ${status}`)
  }
  return {
    pool,
    hookledger,
    looksAt: (type) => workflow.handlers.get(type)?.mirror !== undefined,
    play: async (seed, world, how) => {
      const provider = new SubscriptionProvider(createRandom(`${seed}/provider`), how.latency)
      playing = { provider, world }
      await emptyTables(pool)
      await pool.query('truncate public.access_trace')
      return working(how, () => live(world, provider, how.tickMs, deliver))
    },
    tell: (events, how) =>
      working(how, async () => {
        await Promise.all(events.map(deliver))
      }),
    pass: async () => {
      const latency = { beforeMs: 0, afterMs: 0, limited: 0, broken: 0 }
      const how = { workers: 2, gatherers: 1, latency, tickMs: 0 }
      return working(how, async () => {
        const reconciler = await parts.reconciler()
        const { runs } = await reconciler.pass({ how: 'manual', actor: 'proof' })
        return runs
          .filter(({ state }) => state !== 'complete')
          .map(({ state, error }) => `pass: ${state} ${error ?? ''}`)
      })
    },
    close: async () => {
      await hookledger.stop({ timeoutMs: 2000 })
      await database.drop()
    },
  }
}

async function live(
  world: SubscriptionWorld,
  provider: SubscriptionProvider,
  tickMs: number,
  deliver: (event: ToldBody) => Promise<void>,
): Promise<PlayedWorld> {
  const told = new Map<string, ToldEvent & { readonly life: Life; readonly body: ToldBody }>()
  const deliveries: SentDelivery[] = []
  let at = 0
  for (let tick = 0; tick <= world.ticks; tick++) {
    const flight: Promise<void>[] = []
    for (; world.acts[at]?.tick === tick; at++) {
      const act = world.acts[at]
      if (act === undefined) break
      const { life } = act
      if (act.act === 'change') {
        provider.put(life.account || ownAccount, life.id, act.step.object)
        continue
      }
      const { event } = act
      const present = provider.present(life.account || ownAccount, life.id)
      const version = present === null ? goneVersion : Number(present.metadata.version)
      if (!told.has(event.id)) told.set(event.id, { eventId: event.id, version, life, body: event })
      deliveries.push({ ...sent(event), account: life.account || ownAccount })
      flight.push(deliver(event))
    }
    await Promise.all(flight)
    await sleep(tickMs)
  }
  return { world, provider, told, sent: deliveries }
}

/** Waits until nothing is ready, asked for or under way. */
async function quiet(pool: pg.Pool): Promise<void> {
  const until = performance.now() + quietWithinMs
  for (;;) {
    const { rows } = await pool.query<{ busy: boolean }>(
      `select exists (select from inbox_ready) or exists (select from inbox_delayed) or exists (select from inbox_suspects)
        or exists (select from inbox_gathers where waiting) or exists (select from fetches) as busy`,
    )
    if (rows[0]?.busy === false) return
    if (performance.now() > until) return
    await sleep(15)
  }
}
