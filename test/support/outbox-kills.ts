/**
 * Dispatchers that are killed at random steps, one after the other, over destinations that misbehave at
 * random: whatever was in their hands, the operations come to the same. The campaign for `npm test` and
 * the long one share this.
 */
import { expect } from 'vitest'
import { startAdversary, type Act, type AdversarialDestination } from './adversarial-destination.ts'
import type { Driver } from './failpoint-process.ts'
import { createOutboxProof, type Opponent } from './outbox-proof.ts'
import { startDispatcher } from './outbox-process.ts'
import { seededRandom } from './seeded-random.ts'

/** The steps of a dispatcher. */
export const dispatchSteps = ['D0', 'D1', 'D2', 'D3', 'D4', 'D5', 'D6'] as const

/** A failing call now and then; none that leaves it to the caller's deadline, which only costs time. */
const faults: readonly Act[] = [
  'works_and_resets',
  'works_and_answers_500',
  'works_and_cuts_its_answer',
  'resets',
  'answers_500',
  'is_busy_with_it',
  { does: 'asks_to_wait', status: 429, retryAfter: '0' },
]

/** How a campaign is. */
export interface KillCampaign {
  readonly seed: number
  /** Where each of its dispatchers dies. */
  readonly steps: readonly (typeof dispatchSteps)[number][]
  /** Operations that come with each dispatcher, for each destination. */
  readonly orders: number
}

/** Plays it, and asks the oracle at the end. */
export async function playKills({ seed, steps, orders }: KillCampaign): Promise<void> {
  const random = seededRandom(seed)
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T
  const script = (): Act => (random() < 0.3 ? pick(faults) : 'works')
  const mail = await startAdversary({ script })
  const bell = await startAdversary({ script, honorsKeys: false })
  const opponents: Readonly<Record<string, Opponent>> = {
    mail: { adversary: mail, declared: { looksUp: true } },
    bell: {
      adversary: bell,
      honorsKeys: false,
      declared: { contract: { idempotency: 'none' } },
    },
  }
  const bench = await createOutboxProof(opponents)
  const drivers: Driver[] = []
  try {
    for (const [round, step] of steps.entries()) {
      await bench.pay(orders, `round-${round}`)
      const nth = 1 + Math.floor(random() * 2)
      const driver = await startDispatcher(bench, opponents, { plan: `${step}:${nth}:kill` })
      drivers.push(driver)
      expect((await driver.exited).signal, `${step}:${nth} of seed ${seed}`).toBe('SIGKILL')
      expect(driver.faults).toEqual([`${step} kill`])
    }
    // what the last of them left behind, and nothing more is killed
    await bench.dispatch(2)
    await bench.expectQuiet(30_000)
    const all = orders * steps.length
    expect(await bench.states(), `seed ${seed}`).toEqual({ sent: 2 * all })
    expectApplied(mail, all, 1)
    expectApplied(bell, all, Number.POSITIVE_INFINITY)
    // some were in the hands of a dispatcher that died
    const [row] = await bench.probe.rows<{ died: number; dispatchers: number }>(
      `select count(*) filter (where outcome is null)::int as died, count(distinct dispatcher)::int as dispatchers
       from outbox_attempts left join outbox_answers using (attempt_id)`,
    )
    expect(row?.died).toBeGreaterThan(0)
    expect(row?.dispatchers).toBeGreaterThanOrEqual(steps.length)
  } finally {
    await Promise.all(drivers.map((driver) => driver.end()))
    await bench.close()
    await Promise.all([mail.close(), bell.close()])
  }
}

function expectApplied({ log }: AdversarialDestination, operations: number, atMost: number): void {
  const times = [...log.applications().values()]
  expect(times).toHaveLength(operations)
  expect(Math.max(...times)).toBeLessThanOrEqual(atMost)
}
