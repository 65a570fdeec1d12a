/** Every step of a reconciler with every action, and kills in the middle of windows. */
import { afterEach, describe, it } from 'vitest'
import { faultActions } from '../../src/testing/fault-plan.ts'
import { seededRandom } from '../support/seeded-random.ts'
import {
  createKillBench,
  playReconcileFault,
  reconcileSteps,
  type KillBench,
  type ReconcileFault,
} from '../support/reconcile-kills.ts'

let bench: KillBench | undefined

afterEach(async () => {
  await bench?.close()
  bench = undefined
})

const matrix: readonly ReconcileFault[] = reconcileSteps.flatMap((step) =>
  faultActions.map((action) => ({ step, nth: 1, action })),
)

/** The last page of a kind is reached once for each kind, a page many times. */
const mostTimes: Readonly<Record<string, number>> = { C0: 5, C5: 5, C6: 5, C7: 1 }

function somewhere(seed: number): readonly ReconcileFault[] {
  const random = seededRandom(seed)
  return Array.from({ length: 12 }, () => {
    const step = reconcileSteps[Math.floor(random() * 7)] ?? 'C1'
    return { step, nth: 1 + Math.floor(random() * (mostTimes[step] ?? 8)), action: 'kill' }
  })
}

describe('a reconciler', () => {
  it.each(matrix.map((fault) => [`${fault.step}:${fault.action}`, fault] as const))(
    'that meets %s comes to the same as if nothing had happened',
    async (_, fault) => {
      bench = await createKillBench()
      await bench.sell(12)
      await playReconcileFault(bench, fault)
    },
  )

  it('killed again and again in the middle of its windows comes to the same', async () => {
    bench = await createKillBench()
    for (const fault of somewhere(20_261_130)) {
      await bench.sell(6)
      await playReconcileFault(bench, fault)
    }
  })
})
