/**
 * Worlds of subscriptions after one another until so many histories (a subscription's whole life) were played,
 * or the time is up. The seed decides which; HOOKLEDGER_SEED tries others. A failure names the world to play
 * again.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { installFailpoints } from '../../src/core/failpoints.ts'
import { createRandom, type Random } from '../../src/testing/stripe-double/random.ts'
import {
  goneUntold,
  orderOfLife,
  wrongAfterADay,
  wrongAfterPass,
  wrongAfterPlay,
} from './subscription-judging.ts'
import {
  createSubscriptionProof,
  fastGather,
  type SubscriptionProof,
  type SubscriptionProofOptions,
  type WorkShape,
} from './subscription-proof.ts'
import { changesBetween, settledState } from './reconcile-tables.ts'
import { makeSubscriptionWorld, type Arrival } from './subscription-world.ts'

const seed = process.env['HOOKLEDGER_SEED'] || '1'

/** What a campaign came to. */
export interface MirrorCampaign {
  readonly histories: number
  readonly events: number
  readonly calls: number
  /** Of each kind of arrival, how many histories. */
  readonly arrivals: ReadonlyMap<string, number>
  /** Losses that only a pass could heal. */
  readonly healed: number
  readonly wrong: readonly string[]
}

/** How events can come: what is named here is covered. */
export const arrivals: Readonly<Record<string, Arrival>> = {
  'in order': { late: 0, lateTicks: 1, again: 0, lost: 0 },
  'neighbors swapped': { late: 0.15, lateTicks: 4, again: 0.1, lost: 0 },
  shuffled: { late: 1, lateTicks: 60, again: 0.2, lost: 0 },
  'lost in part': { late: 0.3, lateTicks: 20, again: 0.2, lost: 0.3 },
  'nearly all lost': { late: 0.5, lateTicks: 60, again: 0, lost: 0.8 },
}

/** How fast a provider answers. */
const latencies = [
  { beforeMs: 0, afterMs: 0, limited: 0, broken: 0 },
  { beforeMs: 10, afterMs: 10, limited: 0.02, broken: 0.02 },
  { beforeMs: 5, afterMs: 250, limited: 0, broken: 0.05 },
  { beforeMs: 150, afterMs: 5, limited: 0.1, broken: 0 },
] as const

/** So long ago a world began: everything in it is older than any lag, and younger than the installation. */
const agoSeconds = 2 * 3600

/** How long a request is its gatherer's own; some gatherers fall asleep for longer with an answer in hand. */
const leaseMs = 800

/** Draws how a world is worked on. */
export function drawWork(random: Random): WorkShape {
  return {
    workers: random.integer(1, 4),
    gatherers: random.integer(1, 3),
    latency: random.pick(latencies),
    asleep: random.pick([0, 0.04]),
    tickMs: random.pick([1, 10, 30]),
  }
}

/** Plays one world of so many lives over so many seconds of the provider's clock, and tells what was wrong. */
export async function proveSubscriptions(
  proof: SubscriptionProof,
  name: string,
  { lives, ticks = 60, arrival }: { lives: number; ticks?: number; arrival: Arrival },
  work?: WorkShape,
): Promise<{ wrong: string[]; events: number; calls: number; healed: number; slept: number }> {
  const random = createRandom(name)
  const base = Math.floor(Date.now() / 1000) - agoSeconds
  const world = makeSubscriptionWorld(random.fork('world'), { lives, ticks, arrival, base })
  const how = work ?? drawWork(random.fork('work'))
  const slept = fallAsleep(random.fork('sleep'), how)
  const played = await proof.play(name, world, how)
  const wrong = await wrongAfterPlay(proof, played)
  let healed = 0
  if (wrong.length === 0) {
    const before = await eventsIn(proof)
    wrong.push(...(await proof.pass()), ...(await wrongAfterPass(proof, played)))
    healed = (await eventsIn(proof)) - before
  }
  if (wrong.length === 0) {
    const before = await settledState(proof.pool)
    wrong.push(...(await proof.pass()))
    const changes = changesBetween(before, await settledState(proof.pool))
    wrong.push(...changes.map((line) => `second pass: ${line}`))
  }
  const untold = goneUntold(proof, played)
  if (wrong.length === 0 && untold.length > 0) {
    await passADay(proof, untold.map(orderOfLife))
    wrong.push(...(await proof.pass()), ...(await wrongAfterADay(proof, played)))
  }
  return {
    wrong: wrong.map((line) => `world ${name}: ${line}`),
    events: played.sent.length,
    calls: played.provider.calls.length,
    healed,
    slept: slept(),
  }
}

/** Nobody looked at these orders' objects for a day. */
async function passADay(proof: SubscriptionProof, orders: readonly string[]): Promise<void> {
  await proof.pool.query(
    `update looked_at set answered_at = answered_at - interval '25 hours',
       checked_at = checked_at - interval '25 hours' where order_id = any ($1)`,
    [orders],
  )
}

/** By this chance a gatherer falls asleep with an answer in hand, until others took its request over. */
function fallAsleep(
  random: Random,
  { asleep = 0, leaseMs: leasedMs = leaseMs }: WorkShape,
): () => number {
  let slept = 0
  installFailpoints(
    asleep === 0
      ? null
      : (step) => {
          if (step !== 'G3' || !random.chance(asleep)) return undefined
          slept++
          return sleep(leasedMs + random.integer(0, leasedMs))
        },
  )
  return () => slept
}

async function eventsIn(proof: SubscriptionProof): Promise<number> {
  const { rows } = await proof.pool.query<{ n: number }>(
    'select count(*)::integer as n from inbox_events',
  )
  return rows[0]?.n ?? 0
}

/** Plays at least so many histories, unless the time is up before or something is wrong. */
export async function playSubscriptions(
  limits: { readonly histories: number; readonly livesPerWorld: number; readonly withinMs: number },
  options: SubscriptionProofOptions = {},
): Promise<MirrorCampaign> {
  const proof = await createSubscriptionProof({
    ...options,
    options: { gather: { ...fastGather, callMs: leaseMs / 2, leaseMs, concurrency: 32 } },
  })
  const until = performance.now() + limits.withinMs
  const kinds = Object.entries(arrivals)
  const played = new Map<string, number>()
  const sum = { histories: 0, events: 0, calls: 0, healed: 0 }
  try {
    for (let at = 0; sum.histories < limits.histories && performance.now() < until; at++) {
      const [kind, arrival] = kinds[at % kinds.length] as (typeof kinds)[number]
      const lives = limits.livesPerWorld
      const proven = await proveSubscriptions(proof, `${seed}.${at}`, { lives, arrival })
      if (proven.wrong.length > 0) return { ...sum, arrivals: played, wrong: proven.wrong }
      sum.histories += lives
      sum.events += proven.events
      sum.calls += proven.calls
      sum.healed += proven.healed
      played.set(kind, (played.get(kind) ?? 0) + lives)
    }
    return { ...sum, arrivals: played, wrong: [] }
  } finally {
    installFailpoints(null)
    await proof.close()
  }
}
