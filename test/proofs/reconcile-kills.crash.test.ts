import { afterEach, describe, it } from 'vitest'
import {
  createKillBench,
  playReconcileFault,
  reconcileSteps,
  type KillBench,
} from '../support/reconcile-kills.ts'

let bench: KillBench | undefined

afterEach(async () => {
  await bench?.close()
  bench = undefined
})

describe('a reconciler that is killed', () => {
  it.each(reconcileSteps)('at %s leaves no gap, and the pass after it is whole', async (step) => {
    bench = await createKillBench()
    await bench.sell(12)
    await playReconcileFault(bench, { step, nth: 1, action: 'kill' })
  })
})
