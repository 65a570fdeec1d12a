import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runUpkeep } from '../../src/compose/upkeep.ts'
import { defaultLimits } from '../../src/core/limits.ts'
import { createOutboxBench, type OutboxBench } from '../support/dispatch-bench.ts'
import { scripted } from '../support/scripted-destination.ts'

const hour = 3_600_000
const email = scripted()
const short = scripted({ idempotency: 'none', retentionMs: 0, marginMs: 0 })
let bench: OutboxBench

beforeAll(async () => {
  bench = await createOutboxBench({ email, short })
})
afterAll(() => bench.close())

async function finishedBefore(id: string, ms: number): Promise<void> {
  await bench.rows(
    `update outbox_operations set finished_at = now() - $2 * interval '1 millisecond' where operation_id = $1`,
    [id, ms],
  )
}

const kept = async (): Promise<string[]> =>
  (
    await bench.rows<{ name: string }>(
      `select o.name from outbox_requests r join outbox_operations o using (operation_id) order by 1`,
    )
  ).map((row) => row.name)

describe('request bytes', () => {
  it('are kept until the destination would no longer know the key, then only their hash', async () => {
    email.next({ kind: 'refused', error: 'no', settlesEarlier: true })
    const dead = await bench.add('email', 'dead')
    await bench.run()
    const young = await bench.add('email', 'young')
    const old = await bench.add('email', 'old')
    const none = await bench.add('short', 'no window')
    const fresh = await bench.add('short', 'fresh')
    await bench.run()
    await finishedBefore(young, 22 * hour)
    await finishedBefore(old, 24 * hour)
    await finishedBefore(none, 2 * 60_000)
    const report = await runUpkeep(bench.db, defaultLimits)
    expect(report.requestsDropped).toBe(2)
    expect(await kept()).toEqual(['dead', 'fresh', 'young'])
    expect((await bench.operation(dead)).state).toBe('dead')
    expect((await bench.operation(fresh)).state).toBe('sent')
    const [row] = await bench.rows<{ request: unknown; hash: number }>(
      'select request, octet_length(request_sha256) as hash from outbox where operation_id = $1',
      [old],
    )
    expect(row).toEqual({ request: null, hash: 32 })
  })

  it('go on where the last round stopped, and pass nothing over that has a longer window', async () => {
    expect((await runUpkeep(bench.db, defaultLimits)).requestsDropped).toBe(0)
    const long = await bench.add('email', 'long window')
    const next = await bench.add('email', 'next')
    await bench.run()
    await bench.rows('update outbox_operations set window_ms = $2 where operation_id = $1', [
      long,
      48 * hour,
    ])
    await finishedBefore(long, 23.7 * hour)
    await finishedBefore(next, 23.5 * hour)
    expect((await runUpkeep(bench.db, defaultLimits)).requestsDropped).toBe(1)
    expect(await kept()).toContain('long window')
    await bench.rows(`update outbox_operations set window_ms = 0 where operation_id = $1`, [long])
    expect((await runUpkeep(bench.db, defaultLimits)).requestsDropped).toBe(1)
    expect(await kept()).not.toContain('long window')
  })
})
