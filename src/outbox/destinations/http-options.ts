/** What a person writes for an HTTP destination, checked before anything is sent. */
import { HookledgerError } from '../../core/errors.ts'
import type { DestinationContract, EncodedSend, LookupOutcome } from '../destination.ts'
import type { DeclaredContract } from './declared-contract.ts'
import { declaredContract } from './declared-contract.ts'
import { checkHeaders, isOwnHeader } from './header-rules.ts'
import type { AnswerReading, AnsweredOperation, HttpAnswer } from './http-answer.ts'
import { httpMethods, isHeaderName, type HttpMethod } from './http-request.ts'
import type { MessageSigner } from './message-signature.ts'
import { createSigner } from './message-signature.ts'
import type { CheckedUrl, UrlRules } from './url-rules.ts'
import { checkUrl } from './url-rules.ts'

/** A request in place of the JSON of the body that was sent. */
export interface HttpRequestShape {
  /** The destination's method where absent. */
  readonly method?: HttpMethod | undefined
  /** Added to the destination's url: `/messages/7?notify=1`. */
  readonly path?: string | undefined
  /** `application/json`; with another one the body must be a text. */
  readonly contentType?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly body?: unknown
}

/** How the operation's key travels. */
export type KeyPlace =
  /** In a header; `Idempotency-Key` unless named. */
  | { readonly header: string }
  /** In a field of the JSON body, written when the operation is recorded. */
  | { readonly field: string }

/** What a lookup has: the operation, and a GET to the destination under the rules of a call. */
export interface HttpLookup extends AnsweredOperation {
  /** The body of the request that was stored. */
  readonly body: string
  /** GET of the destination's url with this path added; throws where no answer came. */
  get(path: string): Promise<HttpAnswer>
}

/** Options of `http()`. */
export interface HttpOptions<Body = unknown> extends UrlRules, AnswerReading {
  /** Where operations go; https, or a host that is listed in `allow`. */
  readonly url: string | undefined
  /** POST. */
  readonly method?: HttpMethod | undefined
  /** Sent with every request and stored with it. */
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** Sent with every request and stored nowhere: `{ authorization: … }`. */
  readonly secretHeaders?: Readonly<Record<string, string | undefined>> | undefined
  /** `whsec_…`: requests are signed as Standard Webhooks. While one is being rotated, both. */
  readonly signingSecret?: string | readonly (string | undefined)[] | undefined
  readonly key?: KeyPlace | undefined
  /** Makes the request of a send's body; pure, and run once, when the operation is recorded. */
  readonly request?: ((send: EncodedSend<Body>) => HttpRequestShape) | undefined
  /** Looks whether an operation was done; `absent` only where the destination proves it. */
  readonly lookup?: ((lookup: HttpLookup) => LookupOutcome | Promise<LookupOutcome>) | undefined
  /** Certificates, in PEM, of authorities beside the usual ones. */
  readonly ca?: string | readonly string[] | undefined
  readonly contract?: DeclaredContract | undefined
}

/** The options, checked. */
export interface ResolvedHttpOptions<Body> {
  readonly target: CheckedUrl
  readonly contract: DestinationContract
  readonly method: HttpMethod
  readonly key: KeyPlace
  readonly headers: Readonly<Record<string, string>>
  readonly secretHeaders: Readonly<Record<string, string>>
  readonly signer: MessageSigner | undefined
  /** What must never be seen in an error or a stored answer. */
  readonly secrets: readonly string[]
  readonly request: HttpOptions<Body>['request']
  readonly reading: AnswerReading
  readonly lookup: HttpOptions<Body>['lookup']
  readonly ca: readonly string[] | undefined
}

const maker = 'http()'

const known: ReadonlySet<string> = new Set<keyof HttpOptions>([
  'url',
  'method',
  'allow',
  'ports',
  'headers',
  'secretHeaders',
  'signingSecret',
  'key',
  'request',
  'accepts',
  'proves',
  'receipt',
  'lookup',
  'ca',
  'contract',
])

/** @throws HookledgerError HKL_CONFIG_INVALID or HKL_CONFIG_SECRET naming the option. */
export function resolveHttpOptions<Body>(options: HttpOptions<Body>): ResolvedHttpOptions<Body> {
  for (const name of Object.keys(options)) {
    if (!known.has(name)) throw wrong(`${name} is not an option`)
  }
  const target = checkUrl(maker, options.url, options)
  const contract = declaredContract(maker, options.contract)
  const key = checkKey(options.key, contract)
  const keyHeader = 'header' in key ? key.header.toLowerCase() : null
  const secretHeaders = checkHeaders(maker, 'secretHeaders', options.secretHeaders, keyHeader)
  const signing = signingSecrets(options.signingSecret)
  const { method = 'POST', accepts, proves, receipt, lookup, request } = options
  if (!httpMethods.includes(method)) throw wrong(`method must be one of ${httpMethods.join(', ')}`)
  for (const [name, value] of Object.entries({ accepts, proves, receipt, lookup, request })) {
    if (value !== undefined && typeof value !== 'function')
      throw wrong(`${name} must be a function`)
  }
  return {
    target,
    contract,
    method,
    key,
    headers: checkHeaders(maker, 'headers', options.headers, keyHeader),
    secretHeaders,
    signer: signing === undefined ? undefined : createSigner(maker, signing),
    secrets: [...credentials(secretHeaders), ...textsOf(signing), ...urlSecrets(target.url)],
    request,
    reading: { accepts, proves, receipt },
    lookup,
    ca: options.ca === undefined ? undefined : [options.ca].flat(),
  }
}

function checkKey(key: unknown, contract: DestinationContract): KeyPlace {
  if (key === undefined) return { header: 'idempotency-key' }
  const place = (typeof key === 'object' && key !== null ? key : {}) as Record<string, unknown>
  const { header, field } = place
  if (typeof header === 'string' && isHeaderName(header)) {
    if (isOwnHeader(header)) throw wrong(`key.header cannot be ${header}: Hookledger sets it`)
    return { header: header.toLowerCase() }
  }
  if (typeof field !== 'string' || field === '' || field === '__proto__') {
    throw wrong("key must be { header: 'Name' } or { field: 'name' }")
  }
  // The bytes are made once, so that a key in them can never be another one.
  if (contract.replaysFailures) {
    throw wrong(
      'key.field cannot carry a second key, which contract.replaysFailures needs; use key.header',
    )
  }
  return { field }
}

function signingSecrets(given: HttpOptions['signingSecret']): readonly unknown[] | undefined {
  if (given === undefined) return undefined
  const secrets: readonly unknown[] = Array.isArray(given) ? given : [given]
  if (secrets.length > 0) return secrets
  throw new HookledgerError('HKL_CONFIG_SECRET', `${maker}: signingSecret is an empty array`)
}

/** `Bearer x` is as secret as `x`. */
function credentials(headers: Readonly<Record<string, string>>): string[] {
  return Object.values(headers).flatMap((value) => [value, ...value.split(/[\s:,;=]+/)])
}

function textsOf(secrets: readonly unknown[] | undefined): string[] {
  const texts = (secrets ?? []).filter((secret) => typeof secret === 'string')
  return texts.flatMap((secret) => [secret, secret.replace(/^whsec_/, '')])
}

/** Some services put a token into the path or the query of the URL that they give out. */
function urlSecrets(url: URL): string[] {
  const parts = [...url.pathname.split('/'), ...url.searchParams.values()]
  return parts.filter((part) => part.length >= 16)
}

function wrong(problem: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', `${maker}: ${problem}`)
}
