/** Options of the console: who may come in, and what a second person has to approve. */
import { HookledgerError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'

/** What a person is to the console. */
export type Role = 'viewer' | 'operator' | 'approver' | 'privacy' | 'admin'

/** Whoever asks. */
export interface Identity {
  /** Recorded as the actor of every act; never empty. */
  readonly actor: string
  readonly roles: readonly Role[]
}

/** Says who asks; null: nobody whom it knows. Called for every request of the console. */
export type Authorize = (
  request: Request,
) => Identity | null | undefined | Promise<Identity | null | undefined>

/** A way to sign in, made by `oidc()`. */
export interface SignIn {
  readonly kind: 'oidc'
  readonly issuer: string
  readonly clientId: string
  /** Null: a public client. */
  readonly clientSecret: string | null
  readonly scope: string
  readonly roles: (claims: Readonly<Record<string, unknown>>) => readonly Role[]
  readonly actor: (claims: Readonly<Record<string, unknown>>) => string
}

/** Options of the console. */
export interface ConsoleOptions {
  /** `oidc({ … })` of `hookledger/console`. */
  readonly signIn?: SignIn | undefined
  /** The app's own word on who asks; in the place of `signIn`. */
  readonly authorize?: Authorize | undefined
  /** The origin under which people reach it, where a proxy stands before it: `https://ops.example.com`. */
  readonly publicUrl?: string | undefined
  /** A session ends so many minutes after it was last used. Default 60. */
  readonly idleMinutes?: number | undefined
  /** A session ends so many hours after it began. Default 12. */
  readonly sessionHours?: number | undefined
  readonly approval?:
    | {
        /** A bulk act on so many or more waits until somebody else approves it. Default: none does. */
        readonly bulkFrom?: number | undefined
      }
    | undefined
}

/** The options with every default filled in. */
export interface ResolvedConsoleOptions {
  readonly signIn: SignIn | null
  readonly authorize: Authorize | null
  /** An origin, without a path. */
  readonly publicUrl: string | null
  readonly idleMs: number
  readonly sessionMs: number
  readonly approval: { readonly bulkFrom: number | null }
}

const known = ['signIn', 'authorize', 'publicUrl', 'idleMinutes', 'sessionHours', 'approval']

/** @throws HookledgerError HKL_CONFIG_INVALID or HKL_CONFIG_UNKNOWN_NAME, one line that names the culprit */
export function resolveConsoleOptions(given: ConsoleOptions = {}): ResolvedConsoleOptions {
  onlyKnown(given, known, 'console')
  onlyKnown(given.approval ?? {}, ['bulkFrom'], 'console.approval')
  const { signIn = null, authorize = null, idleMinutes = 60, sessionHours = 12 } = given
  if (signIn !== null && signIn.kind !== 'oidc') throw invalid('signIn must be made by oidc({ … })')
  if (authorize !== null && typeof authorize !== 'function')
    throw invalid('authorize must be a function: (request) => ({ actor, roles }) or null')
  if (signIn !== null && authorize !== null)
    throw invalid('signIn and authorize are two answers to one question: give one of them')
  between('idleMinutes', idleMinutes, 1, 1440)
  between('sessionHours', sessionHours, 1, 168)
  const bulkFrom = given.approval?.bulkFrom ?? null
  if (bulkFrom !== null && (!Number.isSafeInteger(bulkFrom) || bulkFrom < 1))
    throw invalid('approval.bulkFrom must be a whole number from 1')
  return Object.freeze({
    signIn,
    authorize,
    publicUrl: given.publicUrl === undefined ? null : originOf(given.publicUrl),
    idleMs: idleMinutes * 60_000,
    sessionMs: sessionHours * 3_600_000,
    approval: Object.freeze({ bulkFrom }),
  })
}

function originOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null
  const isPlain = url !== null && url.pathname === '/' && url.search === '' && url.username === ''
  if (!isPlain || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw invalid('publicUrl must be an origin without a path: https://ops.example.com')
  return url.origin
}

function between(name: string, value: number, least: number, most: number): void {
  if (typeof value !== 'number' || !(value >= least && value <= most))
    throw invalid(`${name} must be a number from ${least} to ${most}`)
}

function onlyKnown(given: object, names: readonly string[], where: string): void {
  if (typeof given !== 'object' || given === null) throw invalid('it must be an object')
  for (const key of Object.keys(given)) {
    if (names.includes(key)) continue
    const near = nearest(key, names)
    throw new HookledgerError(
      'HKL_CONFIG_UNKNOWN_NAME',
      `${where}: unknown option "${key}"${near === null ? '' : `, did you mean "${near}"?`}`,
    )
  }
}

function invalid(problem: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', `console: ${problem}`)
}
