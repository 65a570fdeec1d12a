/**
 * A crash at a named step, within a test's own process: what was called in `run` stops there as if its process had
 * been killed. Its connections are cut, it opens no new ones, and none of it passes another step. What was called
 * outside of `run` notices nothing.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { installFailpoints, type Step } from '../core/failpoints.ts'
import { watchOutgoingSockets } from './outgoing-sockets.ts'

export type { Step } from '../core/failpoints.ts'

/** The steps of each part, in their order: what `for (const step of crashSteps.work)` goes through. */
export const crashSteps: {
  /** From the first byte of a delivery to its answer; R1, R2, R9 and R10 are those of a mount, R0 of `hookledger start`. */
  readonly receive: readonly Step[]
  /** One batch of the worker. */
  readonly work: readonly Step[]
  /** One call to the outside. */
  readonly dispatch: readonly Step[]
  /** One look at the provider. */
  readonly gather: readonly Step[]
  /** One pass over the provider's records. */
  readonly reconcile: readonly Step[]
} = {
  receive: ['R0', 'R1', 'R2', 'R3', 'R4', 'R5', 'R6', 'R7', 'R8', 'R9', 'R10'],
  work: ['W0', 'W1', 'W2', 'W3', 'W4', 'W5', 'W6', 'W7'],
  dispatch: ['D0', 'D1', 'D2', 'D3', 'D4', 'D5', 'D6'],
  gather: ['G0', 'G1', 'G2', 'G3', 'G4', 'G5', 'G6', 'G7'],
  reconcile: ['C0', 'C1', 'C2', 'C3', 'C4', 'C5', 'C6', 'C7'],
}

/** Options of {@link crashAt}. */
export interface CrashOptions {
  /** Which time that the step is reached; 1. */
  readonly nth?: number | undefined
}

/** Thrown by {@link crashAt} when `run` came to its end without the crash: nothing was tested. */
export class StepNotReachedError extends Error {
  /** The step that was asked for. */
  readonly step: Step
  /** The steps that were reached, in their order, as often as they were. */
  readonly reached: readonly Step[]

  constructor(step: Step, nth: number, reached: readonly Step[]) {
    const times = nth === 1 ? '' : ` ${nth} times`
    const seen = reached.length === 0 ? 'no step at all' : [...new Set(reached)].join(', ')
    super(
      `step ${step} was not reached${times}, so nothing crashed: what ran reached ${seen}. ` +
        'Deliver something that has to be done, and call it inside of the function.',
    )
    this.name = 'StepNotReachedError'
    this.step = step
    this.reached = reached
  }
}

interface Crash {
  readonly step: Step
  readonly nth: number
  readonly sockets: Set<Socket>
  opened: number
  readonly reached: Step[]
  readonly crashed: () => void
  dead: boolean
}

const lives = new AsyncLocalStorage<Crash>()
let isRunning = false
let isWatching = false

/** Steps that come before the first statement. */
const connectsLater = /^R[0-4]$/

/**
 * Calls `run` and crashes it at the step (the table of steps is in the guide to testing). Create the Hookledger, and
 * its pool where you give it one, inside of `run`: that is the process that dies. Afterwards create another one, as a
 * restart would, and look at what is there. One crash at a time.
 *
 * @throws StepNotReachedError when `run` ended without it; what `run` itself throws before the crash
 * @example
 * await crashAt('W5', async () => {
 *   const dying = createShop()
 *   await dying.runOnce({ budgetMs: 5000 })
 * })
 */
export async function crashAt(
  step: Step,
  run: () => Promise<unknown>,
  { nth = 1 }: CrashOptions = {},
): Promise<void> {
  requireStep(step, nth)
  if (isRunning) throw new Error('crashAt is running already: one crash at a time in a process')
  isRunning = true
  install()
  let crashed: () => void = () => {}
  const crash = new Promise<void>((resolve) => {
    crashed = resolve
  })
  const life: Crash = {
    step,
    nth,
    sockets: new Set(),
    opened: 0,
    reached: [],
    crashed,
    dead: false,
  }
  const whole = lives.run(life, async () => run())
  // what the dead one still meets is nobody's failure
  whole.catch(() => {})
  try {
    await Promise.race([whole, crash])
  } finally {
    isRunning = false
  }
  if (!life.dead) throw new StepNotReachedError(step, nth, life.reached)
  if (life.opened === 0 && !connectsLater.test(step))
    throw new Error(
      `what crashed at ${step} had opened no connection inside of the function, so none was cut: ` +
        'create the Hookledger, and the pool that it is given, inside of it',
    )
}

function requireStep(step: Step, nth: number): void {
  const known = Object.values(crashSteps).flat()
  if (!known.includes(step))
    throw new Error(`"${step}" is no step to crash at; known are ${known.join(', ')}`)
  if (!Number.isSafeInteger(nth) || nth < 1)
    throw new Error(`nth must be a whole number from 1, not ${nth}`)
}

/** What has died stays dead, so this stays, and does nothing to whoever was not called in a `run`. */
function install(): void {
  installFailpoints(atStep)
  if (isWatching) return
  isWatching = true
  watchOutgoingSockets((socket) => keep(socket, 'outgoing'))
  subscribe('net.server.socket', (message) =>
    keep((message as { readonly socket: Socket }).socket, 'incoming'),
  )
}

/** Remembers the connections of the one that will die, and gives the dead no new ones, either way. */
function keep(socket: Socket, way: 'outgoing' | 'incoming'): void {
  const life = lives.getStore()
  if (life === undefined) return
  if (life.dead) {
    socket.destroy(new Error('connect after the crash'))
    return
  }
  if (way === 'outgoing') life.opened++
  life.sockets.add(socket)
  socket.once('close', () => life.sockets.delete(socket))
}

function atStep(step: Step): void | Promise<void> {
  const life = lives.getStore()
  if (life === undefined) return undefined
  if (life.dead) return never()
  life.reached.push(step)
  if (step !== life.step) return undefined
  if (life.reached.filter((each) => each === step).length < life.nth) return undefined
  life.dead = true
  for (const socket of life.sockets) socket.resetAndDestroy()
  life.crashed()
  return never()
}

function never(): Promise<void> {
  return new Promise(() => {})
}
