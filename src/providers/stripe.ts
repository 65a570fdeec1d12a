/**
 * Stripe: verifies `Stripe-Signature` on the raw bytes and names the event that the body carries,
 * with the connected account and environment that it says it belongs to.
 */
import { Buffer } from 'node:buffer'
import type { Environment } from '../workflow/event.ts'
import type { Records } from '../workflow/records.ts'
import {
  bodyIdentity,
  dateOfSeconds,
  dateOfText,
  hashPrefix,
  keepableName,
  unknownType,
} from './event-naming.ts'
import { withDeferredProblem } from './deferred-problem.ts'
import type { NamedEvent, RawRequest, Source, Verdict } from './provider.ts'
import type { SigningKey } from './signature.ts'
import { decodeHexDigest, findSigner, hmacKey, judgeAge, parseTimestamp } from './signature.ts'
import type { SourceOptions } from './source-options.ts'
import {
  badSecret,
  invalid,
  requireAccount,
  requireSecret,
  requireSecrets,
  resolveSourceOptions,
} from './source-options.ts'
import type { StripeEvents } from './stripe-event-types.ts'
import { stripeCallsApi } from './stripe-calls.ts'
import { stripeEventTypes } from './stripe-event-types.ts'
import { stripeRecords } from './stripe-records/stripe-records.ts'
import { sdkVersion } from './stripe-records/stripe-sdk.ts'
import type { TopLevelValue } from './top-level.ts'
import { readTopLevel } from './top-level.ts'

/** Options of `stripe()`. */
export interface StripeOptions extends SourceOptions {
  /**
   * The endpoint's signing secrets, `whsec_…`, whole as the dashboard shows them. While one is being
   * rotated, the old and the new; every endpoint that posts to this source, its own.
   */
  readonly signingSecrets: readonly (string | undefined)[]
  /**
   * A key for Stripe's API, with which reconciliation reads Stripe's records (a restricted one suffices);
   * unset or empty: the API is not used.
   */
  readonly apiKey?: string | undefined
  /** The version of Stripe's API that your endpoint's events are made in; the one of the `stripe` package. */
  readonly apiVersion?: string | undefined
  /** Where Stripe's API answers; `https://api.stripe.com`. */
  readonly apiBase?: string | undefined
  /** Connected accounts whose events may act: all (`true`), or these. */
  readonly connect?: boolean | readonly string[] | undefined
}

/** How to reach Stripe's API. */
export interface StripeApi {
  /** Without a slash at the end. */
  readonly base: string
  readonly key: string
}

/** A Stripe source; `api` does not enumerate, so that printing the source shows no key. */
export interface StripeSource extends Source<'stripe', StripeEvents> {
  readonly api: StripeApi | undefined
}

/** The only scheme that Stripe uses for real deliveries; `v0` exists to be ignored. */
const scheme = 'v1'

/** Shorter than this is no secret of Stripe's, and short enough to guess. */
const shortestSecret = 16

/**
 * A Stripe source. A bad option becomes its `problem` (HKL_CONFIG_SECRET or HKL_CONFIG_INVALID, naming
 * the option), at which the start stops.
 * @example stripe({ account: 'acct_1', signingSecrets: [process.env.STRIPE_WEBHOOK_SECRET] })
 */
export function stripe(options: StripeOptions): StripeSource {
  return withDeferredProblem<StripeSource>('stripe', () => makeStripe(options))
}

function makeStripe(options: StripeOptions): StripeSource {
  const { account, environment, toleranceSeconds } = resolveSourceOptions('stripe()', options)
  const keys = requireSecrets('stripe()', 'signingSecrets', options.signingSecrets).map(toKey)
  const admits = admittedAccounts(options.connect)
  const { apiVersion, connect } = options
  const api = resolveApi(options)
  const records = recordsOf(options, api)
  const calls = api && stripeCallsApi({ ...api, apiVersion, account, connect })
  const source: Source<'stripe', StripeEvents> = {
    provider: 'stripe',
    account,
    environment,
    sends: stripeEventTypes,
    allowsAccount: (other) => other === account || admits(other),
    verify: (request, nowMs) => verifyStripe(keys, request, nowMs, toleranceSeconds),
    name: (request) => [nameStripeEvent(request.rawBody, account)],
    requestKey,
    otherVersion: (body) => otherVersion(body, apiVersion),
    ...(records !== undefined && { records }),
    ...(calls !== undefined && { calls }),
  }
  return Object.freeze(Object.defineProperty(source, 'api', { value: api })) as StripeSource
}

/** Events carry the idempotency key of the API request that caused them; old ones only the request's id. */
function requestKey(body: Readonly<Record<string, unknown>>): string | null {
  const { request } = body
  if (typeof request !== 'object' || request === null || !('idempotency_key' in request))
    return null
  return typeof request.idempotency_key === 'string' ? request.idempotency_key : null
}

/** Without a version that was given, the events should have the shapes of the SDK that is installed. */
function otherVersion(
  body: Readonly<Record<string, unknown>>,
  given: string | undefined,
): { readonly version: string; readonly expected: string } | null {
  const version = keepableName(body['api_version'])
  // thin events and those of other API families carry none
  if (version === undefined || body['object'] !== 'event') return null
  const expected = given ?? sdkVersion()
  return expected === undefined || version === expected ? null : { version, expected }
}

/** The whole secret, prefix included, is the key. */
function toKey(secret: string, index: number): SigningKey {
  const option = `signingSecrets[${index}]`
  if (/^(?:sk|rk|pk)_/.test(secret)) {
    throw badSecret('stripe()', option, 'is an API key; give the signing secret (whsec_…) instead')
  }
  if (secret.length < shortestSecret) {
    throw badSecret('stripe()', option, `is shorter than ${shortestSecret} characters`)
  }
  return hmacKey(scheme, Buffer.from(secret, 'utf8'))
}

function admittedAccounts(connect: StripeOptions['connect']): (account: string) => boolean {
  if (connect === undefined || connect === false) return () => false
  // The stand-in of an account that could not be kept is nobody's account.
  if (connect === true) return (account) => !account.startsWith(hashPrefix)
  if (!Array.isArray(connect)) {
    throw invalid('stripe()', 'connect', 'must be true or an array of account ids')
  }
  const admitted = new Set(
    connect.map((account, index) => requireAccount('stripe()', `connect[${index}]`, account)),
  )
  return (account) => admitted.has(account)
}

function resolveApi(options: StripeOptions): StripeApi | undefined {
  const base = options.apiBase || 'https://api.stripe.com'
  if (!URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol)) {
    throw invalid('stripe()', 'apiBase', 'must be an http or https URL')
  }
  if (!options.apiKey) return undefined
  return Object.freeze({
    base: base.replace(/\/+$/, ''),
    key: requireSecret('stripe()', 'apiKey', options.apiKey),
  })
}

function recordsOf(options: StripeOptions, api: StripeApi | undefined): Records | undefined {
  const { apiVersion, account, environment, connect } = options
  if (apiVersion !== undefined && !/^[\w.-]{1,40}$/.test(apiVersion)) {
    throw invalid('stripe()', 'apiVersion', 'must be a version such as 2026-10-28.endive')
  }
  return api && stripeRecords({ ...api, apiVersion, account, environment, connect })
}

/**
 * Judges `Stripe-Signature` with these keys. Signature first, then age: a forged delivery is a
 * mismatch whatever time it claims.
 */
export function verifyStripe(
  keys: readonly SigningKey[],
  { headers, rawBody }: RawRequest,
  nowMs: number,
  toleranceSeconds: number,
): Verdict {
  const header = headers('stripe-signature')
  if (!header) return { ok: false, reason: 'missing' }
  const parsed = parseSignatureHeader(header)
  if (parsed === undefined) return { ok: false, reason: 'malformed' }
  const content = { prefix: `${parsed.timestamp}.`, body: rawBody }
  const secret = findSigner(keys, content, () => parsed.signatures)
  if (secret === -1) return { ok: false, reason: 'mismatch' }
  const age = judgeAge(parsed.timestamp, nowMs, toleranceSeconds)
  return age === undefined ? { ok: true, secret } : { ok: false, reason: age }
}

/**
 * `t=…,v1=…[,v1=…][,v0=…]`: exactly one timestamp, at least one `v1`, none of them without a value;
 * other schemes ignored.
 * Whitespace never occurs in it: where it does, two headers were joined.
 */
function parseSignatureHeader(
  header: string,
): { timestamp: number; signatures: readonly Uint8Array[] } | undefined {
  if (/\s/.test(header)) return undefined
  let timestamp: number | undefined
  let candidates = 0
  const signatures: Uint8Array[] = []
  for (const element of header.split(',')) {
    const [key, value = ''] = splitOnce(element)
    if (key === 't') {
      if (timestamp !== undefined) return undefined
      timestamp = parseTimestamp(value)
      if (timestamp === undefined) return undefined
    } else if (key === scheme) {
      if (value === '') return undefined
      candidates++
      const signature = decodeHexDigest(value)
      if (signature !== undefined) signatures.push(signature)
    }
  }
  return timestamp === undefined || candidates === 0 ? undefined : { timestamp, signatures }
}

function splitOnce(element: string): [string, string?] {
  const at = element.indexOf('=')
  return at === -1 ? [element] : [element.slice(0, at), element.slice(at + 1)]
}

const named: ReadonlySet<string> = new Set([
  'id',
  'type',
  'account',
  'context',
  'livemode',
  'created',
  'api_version',
])

function nameStripeEvent(rawBody: Uint8Array, ownAccount: string | undefined): NamedEvent {
  const fields = readTopLevel(rawBody, named) ?? new Map<string, TopLevelValue>()
  const providerAccount = accountOf(fields, rawBody, ownAccount)
  const environment = environmentOf(fields.get('livemode'))
  const created = fields.get('created')
  // Snapshot events have Unix seconds, thin ones ISO text.
  const occurredAt = dateOfSeconds(created) ?? dateOfText(created)
  const apiVersion = keepableName(fields.get('api_version'))
  return {
    eventId: keepableName(fields.get('id')) ?? bodyIdentity(rawBody),
    eventType: keepableName(fields.get('type')) ?? unknownType,
    ...(providerAccount !== undefined && { providerAccount }),
    ...(environment !== undefined && { environment }),
    ...(occurredAt !== undefined && { occurredAt }),
    ...(apiVersion !== undefined && { apiVersion }),
  }
}

function environmentOf(livemode: TopLevelValue | undefined): Environment | undefined {
  if (typeof livemode !== 'boolean') return undefined
  return livemode ? 'live' : 'test'
}

/**
 * The account of a Connect event, or of a member of an organization: those events carry only a
 * `context`, a path that ends in the account, which says "another" only when our own is known.
 *
 * An account that is there and cannot be kept is never taken for our own: it gets a stand-in that no
 * source admits, so that the event is stored and grants nothing.
 */
function accountOf(
  fields: ReadonlyMap<string, TopLevelValue>,
  rawBody: Uint8Array,
  ownAccount: string | undefined,
): string | undefined {
  const account = fields.get('account') ?? undefined
  if (account !== undefined) return keepableName(account) ?? bodyIdentity(rawBody)
  const context = fields.get('context') ?? undefined
  if (context === undefined || ownAccount === undefined) return undefined
  const path = keepableName(context)
  if (path === undefined) return bodyIdentity(rawBody)
  const last = path.slice(path.lastIndexOf('/') + 1)
  if (last === '') return bodyIdentity(rawBody)
  return last === ownAccount ? undefined : last
}
