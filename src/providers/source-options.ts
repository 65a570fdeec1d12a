/**
 * Checks of what a person writes into a source's options. Each failure is one line that names the
 * function and the option, says what to do, and shows nothing of a secret.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Environment } from '../workflow/event.ts'
import { defaultToleranceSeconds } from './signature.ts'

/** The options that every source has. */
export interface SourceOptions {
  /** The provider's account id, `acct_…`; without it, the name under which the source is configured. */
  readonly account?: string | undefined
  /** Which environment the endpoint belongs to; without it, the schema's. */
  readonly environment?: Environment | undefined
  /** Seconds that a delivery may be older or newer than this clock; 300. */
  readonly toleranceSeconds?: number | undefined
}

/** The common options, checked. */
export interface ResolvedSourceOptions {
  readonly account: string | undefined
  readonly environment: Environment | undefined
  readonly toleranceSeconds: number
}

/** The longest tolerance accepted, in seconds: past a day it is a mistake of unit. */
const longestToleranceSeconds = 86_400

/** @throws HookledgerError HKL_CONFIG_INVALID when a common option is not usable. */
export function resolveSourceOptions(maker: string, options: SourceOptions): ResolvedSourceOptions {
  const { account, environment, toleranceSeconds = defaultToleranceSeconds } = options
  if (account !== undefined) requireAccount(maker, 'account', account)
  if (environment !== undefined && environment !== 'live' && environment !== 'test') {
    throw invalid(maker, 'environment', "must be 'live' or 'test'")
  }
  const usable =
    Number.isInteger(toleranceSeconds) &&
    toleranceSeconds >= 1 &&
    toleranceSeconds <= longestToleranceSeconds
  if (!usable) {
    throw invalid(
      maker,
      'toleranceSeconds',
      `must be a whole number of seconds from 1 to ${longestToleranceSeconds}; the age check cannot be switched off`,
    )
  }
  return { account, environment, toleranceSeconds }
}

/** @throws HookledgerError HKL_CONFIG_INVALID unless the value can be an account's id. */
export function requireAccount(maker: string, option: string, value: unknown): string {
  if (typeof value === 'string' && /^[^\s\0]{1,255}$/.test(value)) return value
  throw invalid(
    maker,
    option,
    'must be an account id: text of at most 255 characters, no whitespace',
  )
}

/**
 * The secrets as given, each a text without whitespace.
 *
 * @throws HookledgerError HKL_CONFIG_SECRET for none at all, or one that is unset or has whitespace
 * (a line end that came along with a copied secret makes every delivery a mismatch).
 */
export function requireSecrets(maker: string, option: string, secrets: unknown): readonly string[] {
  if (!Array.isArray(secrets) || secrets.length === 0) {
    throw badSecret(maker, option, 'must be an array with at least one signing secret')
  }
  return secrets.map((secret: unknown, index) =>
    requireSecret(maker, `${option}[${index}]`, secret),
  )
}

/** @throws HookledgerError HKL_CONFIG_SECRET unless the value is a text without whitespace. */
export function requireSecret(maker: string, option: string, secret: unknown): string {
  if (secret === undefined || secret === null || secret === '') {
    throw badSecret(maker, option, 'is not set; is the environment variable that it is read from?')
  }
  if (typeof secret !== 'string') throw badSecret(maker, option, 'must be a string')
  if (/[\s\0]/.test(secret)) {
    throw badSecret(maker, option, 'contains whitespace; copy the secret again without it')
  }
  return secret
}

/** The error for a secret that cannot be used. */
export function badSecret(maker: string, option: string, problem: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_SECRET', `${maker}: ${option} ${problem}`)
}

/** The error for any other option. */
export function invalid(maker: string, option: string, problem: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', `${maker}: ${option} ${problem}`)
}
