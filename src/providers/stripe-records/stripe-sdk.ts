/**
 * The official SDK, an optional package that is loaded with the first request, as a client of one request:
 * nothing is repeated behind its back, everything ends by the signal, and what the connection saw is known.
 */
import { createRequire } from 'node:module'
import type StripeClient from 'stripe'
import { RecordsError } from '../../workflow/records.ts'

type StripeSdk = typeof StripeClient
type ClientResponse = Awaited<ReturnType<InstanceType<StripeSdk['HttpClient']>['makeRequest']>>

const require = createRequire(import.meta.url)

/** More of one answer is not read: a page of a hundred records has a few megabytes at most. */
export const largestAnswerBytes: number = 64 * 1024 * 1024

/** Why an answer did not come, or not to its end. */
export type AnswerFailure =
  | { readonly kind: 'time_up' }
  | { readonly kind: 'too_long' }
  /** `code` is the system's: ECONNREFUSED. */
  | { readonly kind: 'connection'; readonly code: string | undefined; readonly hasBegun: boolean }

/** What came over the connection, whatever the SDK makes of it. */
export interface SeenAnswer {
  status: number | undefined
  headers: Readonly<Record<string, string>>
  /** Whether the answer was JSON, read to its end. */
  isJson: boolean
  /** Why there is no whole answer; undefined where there is one. */
  failure?: AnswerFailure
}

/** How Stripe's API is reached. */
export interface StripeReach {
  /** Without a slash at the end. */
  readonly base: string
  readonly key: string
  /** How long one request may take, in milliseconds. */
  readonly callMs: number
  /** Undefined: the SDK's. */
  readonly apiVersion?: string | undefined
  /** The connected account of every request; null or absent: the one that the key belongs to. */
  readonly stripeAccount?: string | null | undefined
  /** Whether an answer that is not Stripe's is an error, whoever asks: {@link NotStripes}. */
  readonly isStrict?: boolean | undefined
}

/** What came is no JSON, or says no success and is no error of Stripe's: something on the way has answered. */
export class NotStripes extends Error {
  readonly status: number

  constructor(status: number) {
    super(`HTTP ${status} is no answer of Stripe's`)
    this.name = 'NotStripes'
    this.status = status
  }
}

/** @throws RecordsError `refused` where the package is not installed. */
export function loadStripeSdk(): StripeSdk {
  let loaded: StripeSdk | { readonly default: StripeSdk }
  try {
    loaded = require('stripe') as StripeSdk | { readonly default: StripeSdk }
  } catch (cause) {
    throw new RecordsError(
      'refused',
      "Stripe's records need the package stripe: npm install stripe",
      { cause },
    )
  }
  return 'default' in loaded && typeof loaded.default === 'function'
    ? loaded.default
    : (loaded as StripeSdk)
}

let installedVersion: string | null | undefined

/** The version of the API that the installed SDK speaks; undefined where none is installed. */
export function sdkVersion(): string | undefined {
  if (installedVersion === undefined) {
    try {
      installedVersion = loadStripeSdk().API_VERSION
    } catch {
      installedVersion = null
    }
  }
  return installedVersion ?? undefined
}

/** A client for one request, and what its connection sees. */
export function createStripeClient(
  reach: StripeReach,
  signal: AbortSignal,
): { readonly client: StripeClient; readonly seen: SeenAnswer } {
  const sdk = loadStripeSdk()
  const base = new URL(reach.base)
  const isHttps = base.protocol === 'https:'
  const seen: SeenAnswer = { status: undefined, headers: {}, isJson: false }
  const client = new sdk(reach.key, {
    host: base.hostname,
    port: base.port === '' ? (isHttps ? 443 : 80) : Number(base.port),
    protocol: isHttps ? 'https' : 'http',
    httpClient: createHttpClient(sdk, { reach, base, signal, seen }),
    maxNetworkRetries: 0,
    telemetry: false,
    timeout: reach.callMs,
    ...(reach.apiVersion !== undefined && { apiVersion: reach.apiVersion as never }),
    ...(typeof reach.stripeAccount === 'string' && { stripeAccount: reach.stripeAccount }),
  })
  return { client, seen }
}

interface OneRequest {
  readonly reach: StripeReach
  readonly base: URL
  readonly signal: AbortSignal
  readonly seen: SeenAnswer
}

function createHttpClient(
  sdk: StripeSdk,
  { reach, base, signal, seen }: OneRequest,
): InstanceType<StripeSdk['HttpClient']> {
  return new (class extends sdk.HttpClient {
    override getClientName(): string {
      return 'hookledger'
    }

    override async makeRequest(
      ...[, , path, method, headers]: Parameters<
        InstanceType<StripeSdk['HttpClient']>['makeRequest']
      >
    ): Promise<ClientResponse> {
      let hasBegun = false
      try {
        const answer = await fetch(new URL(base.pathname.replace(/\/+$/, '') + path, base), {
          method,
          headers: textHeaders(headers),
          // Followed, a redirect would carry the key to another host.
          redirect: 'manual',
          signal: AbortSignal.any([signal, AbortSignal.timeout(reach.callMs)]),
        })
        hasBegun = true
        const body = await readText(answer)
        seen.status = answer.status
        seen.headers = Object.fromEntries(answer.headers)
        return toResponse(seen, body, reach.isStrict === true)
      } catch (error) {
        seen.failure = failureOf(error, hasBegun)
        throw error
      }
    }
  })()
}

class TooLong extends Error {}

function failureOf(error: unknown, hasBegun: boolean): AnswerFailure {
  if (error instanceof TooLong) return { kind: 'too_long' }
  if (error instanceof Error && error.name === 'TimeoutError') return { kind: 'time_up' }
  const { cause } = error as { readonly cause?: { readonly code?: unknown } | null }
  const code = cause?.code
  const isCode = typeof code === 'string' && /^\w{1,60}$/.test(code)
  return { kind: 'connection', code: isCode ? code : undefined, hasBegun }
}

function toResponse(seen: SeenAnswer, body: string, isStrict: boolean): ClientResponse {
  return {
    getStatusCode: () => seen.status ?? 0,
    getHeaders: () => ({ ...seen.headers }),
    getRawResponse: () => ({ statusCode: seen.status, headers: seen.headers }),
    toStream: () => {
      throw new Error('records have no stream')
    },
    toJSON: () =>
      Promise.resolve().then(() => {
        if (isStrict) return stripesOwn(seen.status ?? 0, body)
        const parsed = JSON.parse(body) as unknown
        // The SDK writes on what it is given, and a text or a number would end the process there.
        if (typeof parsed !== 'object' || parsed === null) throw new TypeError('no JSON object')
        seen.isJson = true
        return parsed
      }),
  }
}

/** The SDK takes whatever is no error for the object that was asked for, under any status. */
function stripesOwn(status: number, body: string): object {
  let parsed: unknown
  try {
    parsed = JSON.parse(body)
  } catch {
    throw new NotStripes(status)
  }
  if (typeof parsed !== 'object' || parsed === null) throw new NotStripes(status)
  const { error } = parsed as { readonly error?: unknown }
  const isError = typeof error === 'object' && error !== null
  if (status >= 200 && status <= 299 ? error !== undefined : !isError) throw new NotStripes(status)
  return parsed
}

function textHeaders(headers: object): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || value === null || name.toLowerCase() === 'content-length'
        ? []
        : [[name, String(value)]],
    ),
  )
}

async function readText(answer: Response): Promise<string> {
  if (answer.body === null) return ''
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
    length += chunk.byteLength
    if (length > largestAnswerBytes) throw new TooLong('the answer does not end')
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
