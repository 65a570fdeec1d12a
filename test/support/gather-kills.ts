/**
 * Workers and gatherers that are killed one after the other, each at a step of asking, while the objects that they
 * look at change: whatever was in their hands, the orders end as the provider has the objects.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import type { Step } from '../../src/core/failpoints.ts'
import type { GatherSettings } from '../../src/inbox/gather/gather-context.ts'
import { startScript, type Driver } from './failpoint-process.ts'
import { createGatherBench, type GatherBench } from './gather-bench.ts'
import { until } from './probe.ts'
import { seededRandom } from './seeded-random.ts'

/** What the driver is told; sent as JSON. */
export interface GatherDriverSettings {
  readonly databaseUrl: string
  readonly providerUrl: string
}

/** Short leases: what a killed gatherer had in its hands is soon another's. */
export const quickGathering: Partial<GatherSettings> = {
  callsPerSecond: 10_000,
  callsPerSecondPerAccount: 10_000,
  callMs: 1000,
  leaseMs: 2000,
  firstRetryMs: 50,
  breakerFailures: 1000,
}

/** The steps of asking. */
export const gatherSteps = ['G0', 'G1', 'G2', 'G3', 'G4', 'G5', 'G6', 'G7'] as const

/** How a campaign is. */
export interface GatherCampaign {
  readonly seed: number
  readonly steps: readonly Step[]
  /** Objects that are looked at, each of an order of its own. */
  readonly objects: number
  /** Processes that are killed at each step at once. */
  readonly beside?: number
}

const script = fileURLToPath(new URL('./gather-driver.ts', import.meta.url))

interface Plan {
  readonly status: string
  readonly seats: number
}

/** A provider over HTTP, whose answers take as long as they like. */
async function startProvider(random: () => number): Promise<{
  readonly url: string
  readonly plans: Map<string, Plan>
  close(): Promise<void>
}> {
  const plans = new Map<string, Plan>()
  const server = createServer((request, response) => {
    // as it was when it was asked: an answer that takes long is old when it comes
    const plan = plans.get((request.url ?? '').slice(1))
    setTimeout(() => {
      response.writeHead(plan === undefined ? 404 : 200).end(JSON.stringify(plan ?? {}))
    }, random() * 30)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    plans,
    close: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Plays it, and compares with the provider at the end. */
export async function playGatherKills(campaign: GatherCampaign): Promise<void> {
  const { seed, steps, objects, beside = 1 } = campaign
  const random = seededRandom(seed)
  const provider = await startProvider(random)
  const bench = await createGatherBench({ gather: quickGathering })
  const drivers: Driver[] = []
  const start = async (plan: string): Promise<Driver> => {
    const settings = { databaseUrl: bench.database.url, providerUrl: provider.url }
    const driver = await startScript(script, settings, plan)
    drivers.push(driver)
    return driver
  }
  const change = async (): Promise<void> => {
    const bodies = Array.from({ length: objects }, (_, object) => {
      const id = `p${object}`
      if (random() < 0.1) provider.plans.delete(id)
      else {
        const status = random() < 0.7 ? 'active' : 'late'
        provider.plans.set(id, { status, seats: 1 + Math.floor(random() * 1000) })
      }
      return Array.from({ length: 1 + Math.floor(random() * 3) }, () => bench.look(id))
    })
    await bench.deliver(...bodies.flat())
  }
  try {
    for (const step of steps) {
      await change()
      const killed = await Promise.all(
        Array.from({ length: beside }, () => start(`${step}:${1 + Math.floor(random() * 2)}:kill`)),
      )
      const changing = change()
      for (const driver of killed) {
        let ended = await Promise.race([driver.exited, idle(bench)])
        // where all went in its first batch, there must be more for the second
        for (let more = 0; ended === null && beside === 1 && more < 5; more++) {
          await change()
          ended = await Promise.race([driver.exited, idle(bench)])
        }
        // one of several that found nothing more to do at its second time is ended from outside
        if (ended === null) {
          expect(beside, `${step} of seed ${seed} was never reached`).toBeGreaterThan(1)
          await driver.end()
        } else {
          expect(ended.signal, `${step} of seed ${seed}`).toBe('SIGKILL')
          expect(driver.faults).toEqual([`${step} kill`])
        }
      }
      await changing
    }
    await start('')
    await until(
      () => left(bench),
      (events) => events === 0,
      90_000,
    )
    await expectAsProvided(bench, provider.plans, `seed ${seed}`)
  } finally {
    await Promise.all(drivers.map((driver) => driver.end()))
    await bench.close()
    await provider.close()
  }
}

async function left(bench: GatherBench): Promise<number> {
  const [row] = await bench.rows<{ left: number }>(
    `select count(*)::int as left from inbox_events e where not exists (
       select from ledger_decisions d where d.event_key = e.event_key and d.final)`,
  )
  return row?.left ?? -1
}

/** Resolves once nothing is left to do: only where several are killed beside each other can that be. */
async function idle(bench: GatherBench): Promise<null> {
  await until(
    () => left(bench),
    (events) => events === 0,
    110_000,
  )
  await new Promise((resolve) => setTimeout(resolve, 2000))
  return null
}

async function expectAsProvided(
  bench: GatherBench,
  plans: ReadonlyMap<string, Plan>,
  what: string,
): Promise<void> {
  const orders = await bench.rows<{ plan: string; state: string; seats: number | null }>(
    `select substr(o.order_id, 3) as plan, o.state,
       (select e.quantity::int from current_entitlements e where e.subject = o.subject) as seats
     from orders o order by 1`,
  )
  for (const { plan, state, seats } of orders) {
    const present = plans.get(plan)
    const truth =
      present === undefined
        ? { state: 'ended', seats: null }
        : { state: present.status, seats: present.status === 'active' ? present.seats : null }
    expect({ state, seats }, `${plan} of ${what}`).toEqual(truth)
  }
  // nothing is left behind, and every number was used once
  expect(
    await bench.rows(
      `select (select count(*)::int from fetches) as fetches, (select count(*)::int from inbox_gathers) as gathers,
         (select count(*)::int from inbox_ready) as ready, (select count(*)::int from inbox_suspects) as suspects,
         (select count(*)::int from inbox_dead) as dead,
         (select count(*)::int from looked_at where answered > sent or applied > answered) as odd,
         (select count(*)::int from evidence where number > (select max(sent) from looked_at)) as unnumbered`,
    ),
    what,
  ).toEqual([{ fetches: 0, gathers: 0, ready: 0, suspects: 0, dead: 0, odd: 0, unnumbered: 0 }])
}
