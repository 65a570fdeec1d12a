import { afterEach, describe, expect, it } from 'vitest'
import { installFailpoints } from '../../src/core/failpoints.ts'
import { rewrittenPool, type RewrittenPool } from '../support/rewritten-pool.ts'
import { arrivals, proveSubscriptions } from '../support/subscription-campaign.ts'
import {
  createSubscriptionProof,
  fastGather,
  type SubscriptionProofOptions,
} from '../support/subscription-proof.ts'

afterEach(() => {
  installFailpoints(null)
})

const seed = process.env['HOOKLEDGER_SEED'] || '1'
const leaseMs = 240

/** What compares the numbers of requests when an answer is written. */
const fence: readonly (readonly [string, string])[] = [
  ['l.answered < s.number', 'true'],
  ['answered = s.number', 'answered = l.sent'],
  ['g.waiting and g.wanted <= n.number', 'g.waiting'],
  ['f.wanted <= n.number', 'true'],
]

/** A world in which requests of one object overlap all the time. */
async function play(
  options: SubscriptionProofOptions,
): Promise<{ readonly wrong: readonly string[]; readonly slept: number }> {
  const proof = await createSubscriptionProof({
    ...options,
    options: { gather: { ...fastGather, callMs: 120, leaseMs, concurrency: 64 } },
  })
  try {
    const arrival = arrivals['in order']
    if (arrival === undefined) throw new Error('no such arrival')
    const latency = { beforeMs: 1, afterMs: 30, limited: 0, broken: 0 }
    const work = { workers: 2, gatherers: 2, latency, tickMs: 60, asleep: 0.25, leaseMs }
    return await proveSubscriptions(proof, `${seed}.fence`, { lives: 150, arrival }, work)
  } finally {
    await proof.close()
  }
}

describe('answers that come after those to later requests', () => {
  it('change nothing, whoever holds them back and for how long', async () => {
    const { wrong, slept } = await play({})
    expect(wrong).toEqual([])
    expect(slept).toBeGreaterThan(20)
  }, 60_000)

  it('leave orders in a state of the past where the numbers are not compared', async () => {
    let pool: RewrittenPool | undefined
    const { wrong, slept } = await play({
      wrap: (given) => (pool = rewrittenPool(given, fence)),
    })
    expect(slept).toBeGreaterThan(20)
    expect(pool?.applied.every((times) => times > 0)).toBe(true)
    // decided from what was asked before the event came, and some of them for good
    expect(wrong.join('\n')).toMatch(/M1_answer_older_than_its_event/)
    expect(wrong.join('\n')).toMatch(/ is \w+, must be \w+/)
  }, 60_000)
})
