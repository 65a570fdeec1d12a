/**
 * Faults at named steps, planned by one variable: `HOOKLEDGER_FAULT_PLAN=W3:1:kill` makes the process
 * die the first time that it reaches step W3. Without the variable nothing is installed, and a step is
 * one comparison with null.
 */
import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { HookledgerError } from '../core/errors.ts'
import { installFailpoints, type Step } from '../core/failpoints.ts'
import { watchOutgoingSockets } from './outgoing-sockets.ts'

/**
 * kill: SIGKILL of this process. stop: SIGSTOP, until somebody continues it. throw: an error out of the
 * step. dbreset: connections to the database are reset. dbhole: they are no longer read. delay: waits.
 */
export type FaultAction = 'kill' | 'stop' | 'throw' | 'dbreset' | 'dbhole' | 'delay'

/** Every action, in the order of the documentation. */
export const faultActions: readonly FaultAction[] = [
  'kill',
  'stop',
  'throw',
  'dbreset',
  'dbhole',
  'delay',
]

/** What happens the nth time that a step is reached. */
export interface Fault {
  readonly step: Step
  readonly nth: number
  readonly action: FaultAction
  /** How long `delay` waits, in milliseconds. */
  readonly delayMs: number
}

const defaultDelayMs = 300

/**
 * Reads a plan: faults as `step:nth:action`, separated by commas; `delay` takes milliseconds as a
 * fourth part.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID naming the part that is wrong
 */
export function parseFaultPlan(text: string): readonly Fault[] {
  return text.split(',').map((part) => parseFault(part.trim()))
}

function parseFault(part: string): Fault {
  const [step = '', nth = '', action = '', delay = String(defaultDelayMs), ...rest] =
    part.split(':')
  const known =
    /^(R([0-9]|10)|W[0-7]|D[0-6]|C[0-7]|P[0-6]|G[0-7]|B[0-3])$/.test(step) &&
    /^[1-9]\d{0,8}$/.test(nth) &&
    /^\d{1,9}$/.test(delay) &&
    rest.length === 0
  if (!known || !faultActions.includes(action as FaultAction)) {
    throw new HookledgerError(
      'HKL_CONFIG_INVALID',
      `HOOKLEDGER_FAULT_PLAN: "${part.slice(0, 80)}" is not step:nth:action (steps R0 to R10, W0 to W7, D0 to D6, C0 to C7, P0 to P6, G0 to G7 and B0 to B3; actions ${faultActions.join(', ')})`,
    )
  }
  return {
    step: step as Step,
    nth: Number(nth),
    action: action as FaultAction,
    delayMs: Number(delay),
  }
}

/** A plan that is installed. */
export interface InstalledFaults {
  /** How often each step was reached so far. */
  reached(step: Step): number
  /** Takes the plan out; sockets that were paused stay so. */
  uninstall(): void
}

/** What a plan needs to know of the process that it is installed in. */
export interface FaultPlanOptions {
  /** The database's port; without it every outgoing connection counts as one to the database. */
  readonly databasePort?: number | undefined
  /** Told of each fault just before it happens. */
  readonly told?: (fault: Fault) => void
}

/** Installs a plan. Connections must be opened after it, or `dbreset` and `dbhole` do not find them. */
export function installFaultPlan(
  faults: readonly Fault[],
  options: FaultPlanOptions = {},
): InstalledFaults {
  const counts = new Map<Step, number>()
  const sockets = new Set<Socket>()
  const opened = (socket: Socket): void => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }
  const needsSockets = faults.some(({ action }) => action === 'dbreset' || action === 'dbhole')
  const unwatch = needsSockets ? watchOutgoingSockets(opened) : undefined
  const toDatabase = (): Socket[] =>
    [...sockets].filter(
      ({ remotePort }) => options.databasePort === undefined || remotePort === options.databasePort,
    )
  installFailpoints((step) => {
    const count = (counts.get(step) ?? 0) + 1
    counts.set(step, count)
    const fault = faults.find((each) => each.step === step && each.nth === count)
    if (fault === undefined) return undefined
    options.told?.(fault)
    return happen(fault, toDatabase)
  })
  return {
    reached: (step) => counts.get(step) ?? 0,
    uninstall() {
      installFailpoints(null)
      unwatch?.()
    },
  }
}

function happen(fault: Fault, toDatabase: () => readonly Socket[]): void | Promise<void> {
  switch (fault.action) {
    case 'kill':
      process.kill(process.pid, 'SIGKILL')
      return never()
    case 'stop':
      process.kill(process.pid, 'SIGSTOP')
      // the signal may arrive a moment later: whatever comes next must not run before it
      return sleep(50)
    case 'throw':
      throw new Error(`planned fault at ${fault.step}`)
    case 'dbreset':
      for (const socket of toDatabase()) socket.resetAndDestroy()
      return undefined
    case 'dbhole':
      for (const socket of toDatabase()) socket.pause()
      return undefined
    case 'delay':
      return sleep(fault.delayMs)
  }
}

function never(): Promise<void> {
  return new Promise(() => {})
}

/**
 * Installs what `HOOKLEDGER_FAULT_PLAN` says; null where it says nothing. Called once, before the first
 * connection.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID
 */
export function installFaultPlanOf(
  environment: Readonly<Record<string, string | undefined>>,
  options: FaultPlanOptions = {},
): InstalledFaults | null {
  const text = environment['HOOKLEDGER_FAULT_PLAN']
  return text === undefined || text === '' ? null : installFaultPlan(parseFaultPlan(text), options)
}
