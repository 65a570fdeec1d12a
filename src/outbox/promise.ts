/** What a destination's contract means for its operations: recorded with each, and shown to people. */
import type { DestinationContract } from './destination.ts'

/** `once` where the destination honors an id, else `at_least_once`. */
export type OperationPromise = 'once' | 'at_least_once'

/** The promise that holds for operations under a contract. */
export function promiseOf(contract: DestinationContract): OperationPromise {
  return contract.idempotency === 'key' ? 'once' : 'at_least_once'
}

/**
 * How long after the first call the same key and bytes may be sent again, in milliseconds: the retention
 * less its margin, 0 where no id is honored.
 */
export function windowMsOf(contract: DestinationContract): number {
  if (contract.idempotency === 'none') return 0
  return Math.max(0, contract.retentionMs - contract.marginMs)
}

const positive = [
  'callMs',
  'leaseMs',
  'concurrency',
  'maxAttempts',
  'firstRetryMs',
  'maxRetryMs',
  'breakerFailures',
  'breakerMs',
] as const

/** What is wrong with a contract, in one line that names it; null where nothing is. */
export function contractProblem(contract: DestinationContract): string | null {
  if (typeof contract !== 'object' || contract === null) return 'it declares no contract'
  for (const name of positive) {
    const value = contract[name]
    if (!Number.isSafeInteger(value) || value < 1) return `${name} must be a positive integer`
  }
  for (const name of ['retentionMs', 'marginMs'] as const) {
    const value = contract[name]
    if (!Number.isSafeInteger(value) || value < 0) return `${name} must be 0 or a positive integer`
  }
  const rate = contract.ratePerSecond
  if (rate !== null && !(Number.isFinite(rate) && rate > 0))
    return 'ratePerSecond must be a positive number, or null for as many as come'
  if (contract.leaseMs < contract.callMs * 1.2)
    return 'leaseMs must be at least 1.2 times callMs: a call begins some time after its lease, and must end before it'
  if (contract.idempotency === 'key' && contract.retentionMs <= contract.marginMs)
    return 'retentionMs must be more than marginMs, or nothing could ever be sent again'
  return null
}
