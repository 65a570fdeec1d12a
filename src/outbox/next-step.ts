/**
 * P6 as a table: what is to be done with an operation that is due, and what the outcome of an attempt
 * means for it. Pure; every rule about uncertainty is here and nowhere else.
 */
import { backoffMs } from '../core/backoff.ts'
import type { CallOutcome, DestinationContract, LookupOutcome, Receipt } from './destination.ts'
import { windowMsOf } from './promise.ts'

/** Where an operation stands, as far as the next step depends on it. */
export interface OperationStanding {
  /** Whether an earlier call may have been done without anybody knowing. */
  readonly uncertain: boolean
  readonly generation: number
  /** Milliseconds since the first call under the present key; null before it. */
  readonly keyAgeMs: number | null
  /** Calls that came to nothing so far, and lookups in a row without an answer. */
  readonly calls: number
  readonly lookups: number
}

/** What is to be done with an operation that is due. */
export type Plan =
  /** Call it; `newWindow`: nothing is unknown of it, and the key's retention counts from this call. */
  | { readonly act: 'call'; readonly newWindow: boolean }
  | { readonly act: 'lookup' }
  /** Nothing before so many milliseconds, when its key is forgotten and a lookup can prove something. */
  | { readonly act: 'wait'; readonly forMs: number }
  /** Nothing more can be done without a person. */
  | { readonly act: 'ask'; readonly reason: string }

/** What a plan depends on, beside where the operation stands. */
export interface DestinationTraits {
  readonly contract: DestinationContract
  readonly canLookUp: boolean
}

/** How long after the window's end the last call of it is surely over, at the destination too. */
const longestGraceMs = 600_000

function graceMsOf({ marginMs }: DestinationContract): number {
  return Math.min(marginMs, longestGraceMs)
}

/** What is to be done with an operation that is due. */
export function planOf(
  { uncertain, keyAgeMs, calls, lookups }: OperationStanding,
  { contract, canLookUp }: DestinationTraits,
): Plan {
  const age = keyAgeMs ?? 0
  const windowMs = windowMsOf(contract)
  if (!uncertain) return { act: 'call', newWindow: keyAgeMs === null || age >= windowMs }
  const lookup: Plan =
    lookups < contract.maxAttempts
      ? { act: 'lookup' }
      : { act: 'ask', reason: `the destination did not say in ${lookups} lookups` }
  const exhausted = calls >= contract.maxAttempts
  if (contract.idempotency === 'none') {
    // it may be done twice: that is what at least once means, and a lookup comes first where there is one
    if (canLookUp) return lookup
    if (!exhausted) return { act: 'call', newWindow: true }
    return { act: 'ask', reason: `no call of ${calls} had an outcome, and there is no lookup` }
  }
  // inside the window the same call again is safe, and the only thing that can still tell: however often
  if (age < windowMs) return { act: 'call', newWindow: keyAgeMs === null }
  if (!canLookUp)
    return { act: 'ask', reason: 'the destination no longer knows its key, and there is no lookup' }
  // a call from just before the end may still be worked on: what a lookup does not find then proves nothing,
  // and under a new key it would be done twice
  const provesAtMs = windowMs + (contract.replaysFailures ? graceMsOf(contract) : 0)
  return age < provesAtMs ? { act: 'wait', forMs: provesAtMs - age } : lookup
}

/** Set where the attempt never left this process: it says nothing of the destination, and is not counted. */
export interface NeverCalled {
  readonly called?: false
}

/** What an attempt came to; `died`: its lease ran out, and its dispatcher said nothing. */
export type AttemptOutcome =
  | (CallOutcome & NeverCalled)
  | (LookupOutcome & NeverCalled)
  | { readonly kind: 'died'; readonly error: string }

/** What follows from an outcome: everything that is written for the operation. */
export interface Step {
  readonly state: 'pending' | 'sent' | 'uncertain' | 'dead'
  /** Milliseconds until the next attempt; null where there is none. */
  readonly nextInMs: number | null
  readonly receipt: Receipt | null
  readonly error: string | null
  /** The window begins anew with the next call, under a new key where `newGeneration`. */
  readonly newWindow: boolean
  readonly newGeneration: boolean
  readonly lookups: number
  /** Calls that were counted at the lease and never made. */
  readonly uncalled: number
  /** The finding that a person gets. */
  readonly finding: 'operation_dead' | 'operation_uncertain' | null
}

/** The step for an outcome. `random` in [0, 1) spreads what failed together. */
export function stepAfter(
  leased: OperationStanding,
  outcome: AttemptOutcome,
  traits: DestinationTraits,
  random: number,
): Step {
  const isCall = outcome.kind === 'retry'
  const uncalled = 'called' in outcome && outcome.called === false ? 1 : 0
  const standing = {
    ...leased,
    calls: Math.max(0, leased.calls - (isCall ? uncalled : 0)),
    lookups: Math.max(0, leased.lookups - (isCall ? 0 : uncalled)),
  }
  return { ...stepOf(standing, outcome, traits, random), uncalled: isCall ? uncalled : 0 }
}

function stepOf(
  standing: OperationStanding,
  outcome: AttemptOutcome,
  traits: DestinationTraits,
  random: number,
): Step {
  switch (outcome.kind) {
    case 'sent':
    case 'present':
      return { ...nothing, state: 'sent', receipt: outcome.receipt }
    case 'refused':
      if (standing.uncertain && !outcome.settlesEarlier)
        return stillUncertain(standing, outcome, traits, random)
      return { ...nothing, state: 'dead', error: outcome.error, finding: 'operation_dead' }
    case 'retry':
      if (standing.uncertain) return stillUncertain(standing, outcome, traits, random)
      return tryAgain(standing, outcome, traits, random)
    case 'absent':
      return provenAbsent(standing, traits)
    case 'uncertain':
    case 'died':
      return stillUncertain(standing, outcome, traits, random)
    case 'no_answer':
      return stillUncertain(standing, outcome, traits, random)
  }
}

const nothing: Omit<Step, 'state'> = {
  nextInMs: null,
  receipt: null,
  error: null,
  newWindow: false,
  newGeneration: false,
  lookups: 0,
  uncalled: 0,
  finding: null,
}

interface Failure {
  readonly kind: string
  readonly error: string
  readonly retryAfterMs?: number
}

/** Certainly not done: again, as long as a person need not be asked. */
function tryAgain(
  standing: OperationStanding,
  failure: Failure,
  { contract }: DestinationTraits,
  random: number,
): Step {
  if (standing.calls >= contract.maxAttempts) {
    const error = `given up after ${standing.calls} calls: ${failure.error}`
    return { ...nothing, state: 'dead', error, finding: 'operation_dead' }
  }
  const nextInMs = delayOf(standing.calls, failure, contract, random)
  return { ...nothing, state: 'pending', nextInMs, error: failure.error }
}

/** The destination's complete record does not have it: nothing is unknown any more. */
function provenAbsent({ calls }: OperationStanding, { contract }: DestinationTraits): Step {
  const newGeneration = contract.idempotency === 'key' && contract.replaysFailures
  if (calls >= contract.maxAttempts) {
    const error = `given up after ${calls} calls: a lookup proved that none of them was done`
    return { ...nothing, state: 'dead', error, newWindow: true, finding: 'operation_dead' }
  }
  return {
    ...nothing,
    state: 'pending',
    nextInMs: 0,
    error: 'a lookup proved that it was not done',
    newWindow: true,
    newGeneration,
  }
}

/** Nobody knows whether it was done. It is never dead and never canceled: what is next, the plan says. */
function stillUncertain(
  standing: OperationStanding,
  failure: Failure,
  traits: DestinationTraits,
  random: number,
): Step {
  const { contract } = traits
  const tries = failure.kind === 'no_answer' ? standing.lookups : standing.calls
  const refusedAtDoor = failure.kind === 'refused'
  // one that died was not turned away: nothing is gained by waiting
  const pause = failure.kind === 'died' ? 0 : delayOf(tries, failure, contract, random)
  const then = standing.keyAgeMs === null ? null : standing.keyAgeMs + pause
  const plan = planOf({ ...standing, uncertain: true, keyAgeMs: then }, traits)
  const lookups = failure.kind === 'no_answer' || failure.kind === 'died' ? standing.lookups : 0
  const step = { ...nothing, state: 'uncertain' as const, error: failure.error, lookups }
  if (plan.act === 'ask')
    return { ...step, error: `${plan.reason}: ${failure.error}`, finding: 'operation_uncertain' }
  if (plan.act === 'wait')
    return { ...step, nextInMs: pause + plan.forMs, finding: 'operation_uncertain' }
  // a door that is shut (401, 403) is for a person to open, and one who waits for long is to be told;
  // meanwhile it is tried as before
  const tells = refusedAtDoor || standing.calls >= contract.maxAttempts
  return { ...step, nextInMs: pause, finding: tells ? 'operation_uncertain' : null }
}

/** Backoff with jitter, or what the destination asked for, never longer than the contract allows. */
function delayOf(
  tries: number,
  { retryAfterMs }: Failure,
  { firstRetryMs, maxRetryMs }: DestinationContract,
  random: number,
): number {
  const own = backoffMs(Math.max(1, tries), random, { firstMs: firstRetryMs, maxMs: maxRetryMs })
  if (retryAfterMs === undefined || !(retryAfterMs >= 0)) return own
  // spread past the moment that was named: everybody was told the same one
  return Math.min(maxRetryMs, Math.max(own, retryAfterMs + Math.round(random * firstRetryMs)))
}
