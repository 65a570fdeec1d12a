import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { setup } from '../../examples/shop/setup.ts'
import { migrate } from '../../src/postgres/migrate.ts'
import { createDatabase } from '../../src/postgres/pool.ts'
import { startPostgresForCrashTest } from '../support/crash-postgres.ts'
import { oncePool } from '../support/once-pool.ts'
import { hourOfTraffic, recovery, sendAll, showFigures } from '../support/outage.ts'
import { createReconcileProof, type ReconcileProof } from '../support/reconcile-proof.ts'

/** Passes come so often that none has to be waited for. */
const options = { reconcile: { everyMs: 1000, lagMs: 0, callsPerSecond: 10_000 } }

const closing: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

async function shop(
  more: Parameters<typeof createReconcileProof>[0] = {},
): Promise<ReconcileProof> {
  const proof = await createReconcileProof({ options, ...more })
  closing.push(() => proof.close())
  return proof
}

describe('an hour of traffic', () => {
  it('is decided when the worker comes back, and nothing of it is found missing', async () => {
    const proof = await shop()
    const world = hourOfTraffic('worker')
    proof.ask(world.double)
    const statuses = await sendAll(proof, world)
    expect(new Set(statuses)).toEqual(new Set([200]))
    const endedAt = performance.now()
    await proof.hookledger.start()
    const measured = await recovery(proof, world, {
      accepted: statuses.length,
      fate: 'delivered',
      endedAt,
    })
    showFigures('worker off', measured)
    expect(measured.wrong).toEqual([])
    expect(measured.findings).not.toHaveProperty('event_missing closed')
  })

  it('is found at the provider when the endpoint was off, all of it', async () => {
    const proof = await shop()
    const world = hourOfTraffic('endpoint')
    const endedAt = performance.now()
    proof.ask(world.double)
    await proof.hookledger.start()
    const measured = await recovery(proof, world, { accepted: 0, fate: 'dropped', endedAt })
    showFigures('endpoint off', measured)
    expect(measured.wrong).toEqual([])
    expect(measured.findings['event_missing closed']).toBeGreaterThan(500)
  })

  it('is answered 503 while PostgreSQL is off, and found at the provider by the same process once it is back', async () => {
    const server = await startPostgresForCrashTest()
    closing.push(() => server.remove())
    await oncePool(server.url, async (pool) => {
      await migrate(createDatabase(pool, 'hookledger'), {
        environment: 'test',
        partitionsAheadDays: 3,
      })
      await setup(pool)
    })
    const pools: pg.Pool[] = []
    const proof = await shop({
      database: {
        pool: (config) => {
          const pool = new pg.Pool({ connectionString: server.url, ...config })
          pool.on('error', () => {})
          pools.push(pool)
          return pool
        },
        drop: async () => void (await Promise.all(pools.map((pool) => pool.end()))),
      },
    })
    const world = hourOfTraffic('database')
    proof.ask(world.double)
    await proof.hookledger.start()
    await server.kill()
    // each of them waits for as long as a sender would
    const statuses = await sendAll(proof, world, 128)
    expect(new Set(statuses)).toEqual(new Set([503]))
    await server.restart()
    const endedAt = performance.now()
    const measured = await recovery(proof, world, { accepted: 0, fate: 'dropped', endedAt })
    showFigures('PostgreSQL off', measured)
    expect(measured.wrong).toEqual([])
    expect(measured.findings['event_missing closed']).toBeGreaterThan(500)
  })
})
