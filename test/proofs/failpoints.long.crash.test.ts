import { describe, it } from 'vitest'
import { faultActions, type FaultAction } from '../../src/testing/fault-plan.ts'
import { playReceiverFaults, playWorkerFaults } from '../support/fault-cases.ts'

const cases = (letter: 'R' | 'W', last: number): [string, FaultAction][] =>
  Array.from({ length: last + 1 }, (_, step) => `${letter}${step}`).flatMap((step) =>
    faultActions.map((action): [string, FaultAction] => [step, action]),
  )

describe('a worker', () => {
  it.each(cases('W', 7))('comes to the same after %s %s', async (step, action) => {
    await playWorkerFaults([`${step}:2:${action}`], action)
  })
})

describe('a worker that is stopped in its transaction', () => {
  it('keeps its events for as long as the server lets its session be idle, and wakes to nothing', async () => {
    await playWorkerFaults(['W5:2:stop'], 'stop', true)
  })
})

describe('a receiver', () => {
  it.each(cases('R', 10))('comes to the same after %s %s', async (step, action) => {
    await playReceiverFaults([`${step}:3:${action}`], action)
  })
})
