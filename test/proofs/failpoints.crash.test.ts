import { describe, it } from 'vitest'
import type { FaultAction } from '../../src/testing/fault-plan.ts'
import { playReceiverFaults, playWorkerFaults } from '../support/fault-cases.ts'

/** All steps in one process: the nth batch or request meets the nth of them. */
const everyStep = (letter: 'R' | 'W', last: number, action: FaultAction): string[] =>
  Array.from({ length: last + 1 }, (_, step) => `${letter}${step}:${step + 1}:${action}`)

describe('a worker', () => {
  it.each(['W3', 'W6', 'W7'])(
    'that is killed at %s leaves all or nothing, and the next one goes on',
    async (step) => {
      await playWorkerFaults([`${step}:2:kill`], 'kill')
    },
  )

  it.each(['W5'])(
    'that is stopped at %s is outlived by another one, and wakes to nothing',
    async (step) => {
      await playWorkerFaults([`${step}:2:stop`], 'stop')
    },
  )

  it.each<FaultAction>(['throw', 'dbreset', 'delay'])(
    'goes on by itself after a fault at every step (%s)',
    async (action) => {
      await playWorkerFaults(everyStep('W', 7, action), action)
    },
  )

  it('gives up a connection that fell silent, and goes on', async () => {
    await playWorkerFaults(['W5:1:dbhole'], 'dbhole')
  })
})

describe('a receiver', () => {
  it.each(['R7', 'R9'])(
    'that is killed at %s has lost nothing that it acknowledged',
    async (step) => {
      await playReceiverFaults([`${step}:3:kill`], 'kill')
    },
  )

  it('that is stopped on the way to its answer keeps what it stored', async () => {
    await playReceiverFaults(['R8:3:stop'], 'stop')
  })

  it.each<FaultAction>(['throw', 'dbreset'])(
    'goes on by itself after a fault at every step (%s)',
    async (action) => {
      await playReceiverFaults(everyStep('R', 10, action), action)
    },
  )
})
