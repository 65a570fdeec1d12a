/**
 * Worlds after one another until so many histories (an order's whole life) were played, or the time is up.
 * The seed decides which; HOOKLEDGER_SEED tries others. A failure names the world to play again.
 */
import { expect } from 'vitest'
import { createRandom } from '../../src/testing/stripe-double/random.ts'
import { createReconcileProof } from './reconcile-proof.ts'
import { proveWorld } from './reconcile-proving.ts'
import type { SeedName } from './reconcile-seeds.ts'
import type { Fate } from './reconcile-world.ts'

const seed = process.env['HOOKLEDGER_SEED'] || '1'

/** What a campaign came to: what it was not empty of. */
export interface Campaign {
  readonly histories: number
  readonly sown: ReadonlySet<SeedName>
  readonly fates: ReadonlyMap<Fate, number>
}

/** Plays at least so many histories, unless the time is up before. */
export async function playCampaign(limits: {
  readonly histories: number
  readonly withinMs: number
}): Promise<Campaign> {
  const proof = await createReconcileProof()
  const sown = new Set<SeedName>()
  const fates = new Map<Fate, number>()
  const until = performance.now() + limits.withinMs
  let histories = 0
  try {
    for (let at = 1; histories < limits.histories && performance.now() < until; at++) {
      const name = `${seed}.${at}`
      // the first is never a small one: it is all that a slow machine comes to
      const orders = at === 1 ? 30 : createRandom(name).integer(1, 40)
      const proven = await proveWorld(proof, name, orders)
      expect(proven.wrong).toEqual([])
      histories += orders
      for (const each of proven.sown) sown.add(each)
      for (const fate of proven.world.fates.values()) fates.set(fate, (fates.get(fate) ?? 0) + 1)
    }
  } finally {
    await proof.close()
  }
  return { histories, sown, fates }
}
