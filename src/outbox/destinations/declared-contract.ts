/**
 * What a person declares of a destination, over the defaults: checked as a whole, since a lease shorter
 * than its call or a margin longer than the retention would break the promise silently.
 */
import { HookledgerError } from '../../core/errors.ts'
import type { DestinationContract } from '../destination.ts'
import { defaultContract } from '../destination.ts'

/** What a destination declares; the rest is the default of its kind. */
export type DeclaredContract = Partial<DestinationContract>

const numbers: Readonly<Record<string, readonly [least: number, most: number]>> = {
  retentionMs: [0, 400 * 86_400_000],
  marginMs: [0, 400 * 86_400_000],
  callMs: [1, 600_000],
  leaseMs: [1, 3_600_000],
  concurrency: [1, 10_000],
  maxAttempts: [1, 1000],
  firstRetryMs: [1, 86_400_000],
  maxRetryMs: [1, 30 * 86_400_000],
  breakerFailures: [1, 1_000_000],
  breakerMs: [0, 86_400_000],
}

const words: Readonly<Record<string, readonly unknown[]>> = {
  idempotency: ['key', 'none'],
  sequence: ['order', 'none'],
  replaysFailures: [true, false],
}

/**
 * The contract in force. With `idempotency: 'none'` there is no retention; a `leaseMs` that is not
 * declared follows a longer `callMs`.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID naming the option
 */
export function declaredContract(
  maker: string,
  declared: DeclaredContract | undefined,
  kind: DeclaredContract = {},
): DestinationContract {
  const given = withoutUndefined(declared ?? {})
  for (const [name, value] of Object.entries(given)) checkOption(maker, name, value)
  const merged = { ...defaultContract, ...kind, ...given }
  const contract: DestinationContract = Object.freeze({
    ...merged,
    leaseMs: given.leaseMs ?? Math.max(merged.leaseMs, merged.callMs * 3),
    marginMs: given.marginMs ?? Math.min(merged.marginMs, Math.floor(merged.retentionMs / 4)),
    ...(merged.idempotency === 'none' && {
      retentionMs: 0,
      marginMs: 0,
      replaysFailures: false,
    }),
  })
  checkWhole(maker, contract, given)
  return contract
}

function checkOption(maker: string, name: string, value: unknown): void {
  const range = Object.hasOwn(numbers, name) ? numbers[name] : undefined
  const choices = Object.hasOwn(words, name) ? words[name] : undefined
  if (range !== undefined) {
    const [least, most] = range
    if (Number.isInteger(value) && Number(value) >= least && Number(value) <= most) return
    throw wrong(maker, `contract.${name} must be a whole number from ${least} to ${most}`)
  }
  if (choices !== undefined) {
    if (choices.includes(value)) return
    throw wrong(maker, `contract.${name} must be one of ${choices.map(String).join(', ')}`)
  }
  if (name !== 'ratePerSecond') throw wrong(maker, `contract.${name} is not an option`)
  if (value === null || (typeof value === 'number' && value > 0 && value <= 1_000_000)) return
  throw wrong(maker, 'contract.ratePerSecond must be null or a number above 0')
}

function checkWhole(maker: string, contract: DestinationContract, given: DeclaredContract): void {
  if (contract.leaseMs <= contract.callMs) {
    throw wrong(maker, 'contract.leaseMs must be longer than contract.callMs')
  }
  if (contract.maxRetryMs < contract.firstRetryMs) {
    throw wrong(maker, 'contract.maxRetryMs must not be shorter than contract.firstRetryMs')
  }
  if (contract.idempotency === 'key' && contract.marginMs >= contract.retentionMs) {
    throw wrong(
      maker,
      "contract.retentionMs must be longer than contract.marginMs (idempotency: 'none' is for what honors no key)",
    )
  }
  const remembers = (given.retentionMs ?? 0) > 0 || given.replaysFailures === true
  if (contract.idempotency === 'none' && remembers) {
    throw wrong(maker, "contract.idempotency 'none' has no retention and replays nothing")
  }
}

function withoutUndefined(declared: DeclaredContract): DeclaredContract {
  return Object.fromEntries(Object.entries(declared).filter(([, value]) => value !== undefined))
}

function wrong(maker: string, problem: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', `${maker}: ${problem}`)
}
