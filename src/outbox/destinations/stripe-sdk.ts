/**
 * The official SDK, an optional package that is loaded when it is first needed, over our own transport:
 * by itself it repeats a call whose connection closed, whatever it is told, and then nobody could say
 * what the first one did.
 */
import { createRequire } from 'node:module'
import type { IncomingMessage } from 'node:http'
import type StripeClient from 'stripe'
import { HookledgerError } from '../../core/errors.ts'
import type { ExchangeResult } from './pending-exchange.ts'
import type { Transport } from './transport.ts'

/** The SDK's class, with its statics. */
export type StripeSdk = typeof StripeClient

const require = createRequire(import.meta.url)

/** Why the SDK cannot be loaded; undefined when it can. Loads nothing. */
export function missingSdk(): string | undefined {
  try {
    require.resolve('stripe')
    return undefined
  } catch {
    return 'stripeCalls() needs the package stripe: npm install stripe'
  }
}

/** @throws HookledgerError HKL_CONFIG_INVALID where the package is not installed. */
export function loadSdk(): StripeSdk {
  const problem = missingSdk()
  if (problem !== undefined) throw new HookledgerError('HKL_CONFIG_INVALID', problem)
  const loaded = require('stripe') as StripeSdk | { readonly default: StripeSdk }
  return 'default' in loaded && typeof loaded.default === 'function'
    ? loaded.default
    : (loaded as StripeSdk)
}

/** A failure of the connection, as the SDK hands it on in `detail`. */
export class ConnectionFailure extends Error {
  /** Not one of those that the SDK repeats by itself. */
  readonly code = 'HKL_CONNECTION'
  readonly isWritten: boolean

  constructor(message: string, isWritten: boolean) {
    super(message)
    this.name = 'ConnectionFailure'
    this.isWritten = isWritten
  }
}

/** How a client reaches Stripe. */
export interface ClientOptions {
  readonly apiKey: string
  readonly base: URL
  readonly transport: Transport
  readonly callMs: number
}

const largestAnswerBytes = 8 * 1024 * 1024

/** A client for one call: everything that it sends ends by the signal. */
export function createClient(options: ClientOptions, signal: AbortSignal): StripeClient {
  const sdk = loadSdk()
  const { base, apiKey, callMs } = options
  return new sdk(apiKey, {
    host: base.hostname,
    port: base.port === '' ? (base.protocol === 'https:' ? 443 : 80) : Number(base.port),
    protocol: base.protocol === 'https:' ? 'https' : 'http',
    httpClient: createHttpClient(sdk, options, signal),
    maxNetworkRetries: 0,
    telemetry: false,
    timeout: callMs,
  })
}

function createHttpClient(
  sdk: StripeSdk,
  { base, transport, callMs }: ClientOptions,
  signal: AbortSignal,
): InstanceType<StripeSdk['HttpClient']> {
  return new (class extends sdk.HttpClient {
    override getClientName(): string {
      return 'hookledger'
    }

    override async makeRequest(
      host: string,
      _port: string | number,
      path: string,
      method: string,
      headers: object,
      requestData: string,
    ): Promise<InstanceType<StripeSdk['HttpClientResponse']>> {
      if (host !== base.hostname) throw new ConnectionFailure('the call has another host', false)
      const answer = await transport.exchange(
        {
          method,
          url: new URL(path, base),
          headers: { ...plainHeaders(headers), 'accept-encoding': 'identity' },
          body: new TextEncoder().encode(method === 'POST' ? requestData : ''),
          maxAnswerBytes: largestAnswerBytes,
          deadlineMs: callMs,
          isAlone: false,
        },
        signal,
      )
      return toResponse(sdk, answer)
    }
  })()
}

function plainHeaders(headers: object): Record<string, string> {
  const ours = new Set(['connection', 'content-length', 'host'])
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      ours.has(name.toLowerCase()) ? [] : [[name.toLowerCase(), String(value)]],
    ),
  )
}

function toResponse(
  sdk: StripeSdk,
  answer: ExchangeResult,
): InstanceType<StripeSdk['HttpClientResponse']> {
  if (answer.kind === 'unanswered') throw new ConnectionFailure(answer.error, answer.isWritten)
  if (answer.end !== 'complete') {
    throw new ConnectionFailure(
      `HTTP ${answer.status}, and the rest of the answer did not come`,
      true,
    )
  }
  return new (class extends sdk.HttpClientResponse {
    override getRawResponse(): IncomingMessage {
      // The SDK hangs it on its results as `lastResponse` and asks nothing of it.
      return { statusCode: answer.status, headers: answer.headers } as unknown as IncomingMessage
    }

    override toStream(): never {
      throw new ConnectionFailure('an operation has no stream', true)
    }

    override toJSON(): Promise<unknown> {
      return Promise.resolve().then(
        () => JSON.parse(new TextDecoder().decode(answer.body)) as unknown,
      )
    }
  })(answer.status, { ...answer.headers })
}
