/**
 * Operations as calls of Stripe's official SDK, each with parameters that are fixed when it is recorded
 * and under the operation's key. What a call made is found again by the operation's id in its metadata.
 */
import { HookledgerError } from '../../core/errors.ts'
import type {
  CallOutcome,
  Destination,
  EncodedSend,
  LookupOutcome,
  OutgoingRequest,
} from '../destination.ts'
import type { DeclaredContract } from './declared-contract.ts'
import { declaredContract } from './declared-contract.ts'
import { withDeferredProblem } from './deferred-problem.ts'
import { early, ended, withDeadline } from './ended.ts'
import { checkedLookup } from './lookup-outcome.ts'
import { pickReceipt } from './receipt.ts'
import { createRedactor } from './redact.ts'
import type { StripeCall } from './stripe-call.ts'
import { readStripeCall, writeStripeCall } from './stripe-call.ts'
import { lookUpStripe, receiptFields, requestOptions } from './stripe-lookup.ts'
import { checkStripeMethod, stripeMethod } from './stripe-method.ts'
import { createClient, loadSdk, missingSdk, type ClientOptions } from './stripe-sdk.ts'
import { stripeVerdict } from './stripe-verdict.ts'
import { createTransport, type Transport } from './transport.ts'
import { checkUrl } from './url-rules.ts'

/** Options of `stripeCalls()`. */
export interface StripeCallsOptions {
  /** A key for Stripe's API that may make these calls; a restricted one suffices. */
  readonly apiKey: string | undefined
  /** The connected account of calls that name none. */
  readonly account?: string | undefined
  /** Where Stripe's API answers; `https://api.stripe.com`. A host given here may be any. */
  readonly apiBase?: string | undefined
  /** The API version that calls are recorded with; the SDK's. */
  readonly apiVersion?: string | undefined
  /** What differs from Stripe's own promise: 24 hours, less two. */
  readonly contract?: DeclaredContract | undefined
}

const maker = 'stripeCalls()'

/** Stripe removes keys once they are at least 24 hours old, and repeats a stored failure like a success. */
const stripeContract: DeclaredContract = {
  idempotency: 'key',
  retentionMs: 24 * 3_600_000,
  marginMs: 2 * 3_600_000,
  replaysFailures: true,
}

interface Resolved extends ClientOptions {
  readonly contract: Destination['contract']
  readonly account: string | undefined
  readonly apiVersion: string | undefined
  readonly transport: Transport
  /** Calls, with their number of ids, that the SDK was found to have. */
  readonly checked: Set<string>
}

/**
 * A destination that calls Stripe. A bad option becomes its `problem`, at which the start stops.
 * @example stripeCalls({ apiKey: process.env.STRIPE_API_KEY })
 */
export function stripeCalls(options: StripeCallsOptions): Destination<StripeCall> {
  return withDeferredProblem<StripeCall>('stripe', () => {
    const resolved = resolve(options)
    return Object.freeze({
      kind: 'stripe',
      contract: resolved.contract,
      encode: (send: EncodedSend<StripeCall>) => encode(resolved, send),
      call: (request: OutgoingRequest, signal: AbortSignal) => call(resolved, request, signal),
      lookup: (request: OutgoingRequest, signal: AbortSignal) => lookUp(resolved, request, signal),
      close: () => resolved.transport.close(),
    })
  })
}

function resolve(options: StripeCallsOptions): Resolved {
  const { apiKey, account, apiVersion } = options
  const problem = missingSdk()
  if (problem !== undefined) throw new HookledgerError('HKL_CONFIG_INVALID', problem)
  if (typeof apiKey !== 'string' || apiKey === '' || /\s/.test(apiKey)) {
    throw new HookledgerError(
      'HKL_CONFIG_SECRET',
      `${maker}: apiKey is not set, or not a key; is the environment variable that it is read from?`,
    )
  }
  if (account !== undefined && !/^acct_\w+$/.test(account)) {
    throw new HookledgerError('HKL_CONFIG_INVALID', `${maker}: account must be an id, acct_…`)
  }
  const { apiBase } = options
  const given = apiBase !== undefined && apiBase !== '' && URL.canParse(apiBase)
  // Whoever names another API means it; Stripe's own name has to lead to a public address.
  const rules = { allow: given ? [new URL(apiBase).host] : [] }
  const { url, isListed } = checkUrl(maker, apiBase || 'https://api.stripe.com', rules)
  const contract = declaredContract(maker, options.contract, stripeContract)
  const transport = createTransport({
    origin: url.origin,
    connections: contract.concurrency,
    isListed,
    timeoutMs: Math.min(contract.callMs, 5000),
    ca: undefined,
  })
  const reach = { apiKey, base: url, transport, callMs: contract.callMs }
  return { ...reach, account, apiVersion, contract, checked: new Set() }
}

function encode(resolved: Resolved, send: EncodedSend<StripeCall>): Uint8Array {
  const apiVersion: string | null = resolved.apiVersion ?? loadSdk().API_VERSION ?? null
  const { account } = resolved
  const bytes = writeStripeCall(send.body, { operationId: send.operationId, account, apiVersion })
  const { call: name, ids = [] } = send.body
  const form = `${name} ${ids.length}`
  if (!resolved.checked.has(form)) {
    checkStripeMethod(createClient(resolved, AbortSignal.abort()), name, ids)
    resolved.checked.add(form)
  }
  return bytes
}

async function call(
  resolved: Resolved,
  request: OutgoingRequest,
  signal: AbortSignal,
): Promise<CallOutcome> {
  const stored = readStripeCall(request.request)
  if (stored === undefined) {
    return { kind: 'refused', error: 'the stored call cannot be read', settlesEarlier: false }
  }
  if (signal.aborted) return { kind: 'retry', error: 'not called in time' }
  const redactor = createRedactor([resolved.apiKey])
  try {
    const method = stripeMethod(createClient(resolved, signal), stored.call)
    const options = { ...requestOptions(stored), idempotencyKey: request.key, maxNetworkRetries: 0 }
    const made = await ended(signal, () => method(...stored.ids, stored.params, options))
    if (made === early) return { kind: 'uncertain', error: 'no answer in time' }
    return { kind: 'sent', receipt: pickReceipt(made, receiptFields), ...statusOf(made) }
  } catch (error) {
    const { contract } = resolved
    return stripeVerdict(error, { contract, redactor, nowMs: Date.now() })
  }
}

function lookUp(
  resolved: Resolved,
  request: OutgoingRequest,
  signal: AbortSignal,
): Promise<LookupOutcome> {
  const redactor = createRedactor([resolved.apiKey])
  return withDeadline(signal, resolved.callMs, (until) =>
    checkedLookup(until, redactor, async () => {
      const stored = readStripeCall(request.request)
      if (stored === undefined)
        return { kind: 'no_answer', error: 'the stored call cannot be read' }
      try {
        return await lookUpStripe(createClient(resolved, until), stored, request, until)
      } catch (error) {
        const { contract } = resolved
        const failed = stripeVerdict(error, { contract, redactor, nowMs: Date.now() })
        const said = failed.kind === 'sent' ? 'no answer' : failed.error
        const delay = 'retryAfterMs' in failed ? { retryAfterMs: failed.retryAfterMs } : {}
        return { kind: 'no_answer', error: said, ...delay }
      }
    }),
  )
}

function statusOf(made: unknown): { status?: number } {
  const last = (made as { lastResponse?: { statusCode?: unknown } } | null)?.lastResponse
  return typeof last?.statusCode === 'number' ? { status: last.statusCode } : {}
}
