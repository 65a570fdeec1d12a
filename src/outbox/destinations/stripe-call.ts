/**
 * A call of Stripe's SDK as it is stored with its operation: method, ids, parameters, account and API
 * version, all fixed when the operation is recorded. Stripe compares the parameters under a key, so
 * nothing of them may ever be made anew.
 */
import { PermanentError } from '../../core/errors.ts'
import { bigintsAsText, jsonBody, requestBytes } from './json-body.ts'
import { operationMetadata, stripeFinding } from './stripe-objects.ts'

/** What a send to Stripe asks for. */
export interface StripeCall {
  /** The SDK's method that makes something: `refunds.create`, `transfers.createReversal`. */
  readonly call: string
  /** The ids that the method takes before its parameters: the transfer that is reversed. */
  readonly ids?: readonly string[] | undefined
  readonly params?: Readonly<Record<string, unknown>> | undefined
  /** The connected account; the destination's where absent. */
  readonly account?: string | undefined
}

/** The stored form. */
export interface StoredStripeCall {
  readonly call: string
  readonly ids: readonly string[]
  readonly params: Readonly<Record<string, unknown>>
  readonly account: string | null
  readonly apiVersion: string | null
}

const version = 1
const mostMetadata = 50

/** What is known when a call is recorded. */
export interface StripeRecording {
  readonly operationId: string
  readonly account: string | undefined
  readonly apiVersion: string | null
}

/**
 * The stored bytes; the operation's id is written into the metadata of what the call makes.
 *
 * @throws PermanentError for a call that cannot be sent
 */
export function writeStripeCall(body: unknown, recording: StripeRecording): Uint8Array {
  const { call, ids, params, account } = checkShape(body)
  const stored = {
    v: version,
    call,
    ids: ids ?? [],
    params: withOperation(call, params ?? {}, recording.operationId),
    account: account ?? recording.account ?? null,
    version: recording.apiVersion,
  }
  return requestBytes(jsonBody(stored, bigintsAsText))
}

/** The call in stored bytes; undefined when they are none that this version wrote. */
export function readStripeCall(bytes: Uint8Array): StoredStripeCall | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    const stored = JSON.parse(text) as Record<string, unknown>
    if (stored['v'] !== version) return undefined
    const { call, ids, params, account, version: apiVersion } = stored
    checkShape({ call, ids, params, ...(account !== null && { account }) })
    if (apiVersion !== null && typeof apiVersion !== 'string') return undefined
    return { call, ids, params, account, apiVersion } as StoredStripeCall
  } catch {
    return undefined
  }
}

function checkShape(body: unknown): StripeCall {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw new PermanentError("the body must be a call: { call: 'refunds.create', params: { … } }")
  }
  const { call, ids, params, account, ...rest } = body as Record<string, unknown>
  const unknown = Object.keys(rest)[0]
  if (unknown !== undefined) throw new PermanentError(`a call has no field ${unknown}`)
  if (typeof call !== 'string' || !/^[a-z]\w*(?:\.[a-z]\w*){1,4}$/i.test(call)) {
    throw new PermanentError("call must be a method of Stripe's SDK, such as refunds.create")
  }
  if (ids !== undefined && !(Array.isArray(ids) && ids.every(isId))) {
    throw new PermanentError('ids must be an array of ids')
  }
  if (params !== undefined && !isRecord(params))
    throw new PermanentError('params must be an object')
  if (account !== undefined && !isId(account))
    throw new PermanentError('account must be an id, acct_…')
  return body as StripeCall
}

function isId(value: unknown): boolean {
  return typeof value === 'string' && /^[\w-]{1,255}$/.test(value)
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Only what a call makes is marked: a mark written over an existing object would hide the operation that
 * made it, whose lookup would then say that it never happened.
 */
function withOperation(
  call: string,
  params: Readonly<Record<string, unknown>>,
  operationId: string,
): Readonly<Record<string, unknown>> {
  refuseDates(params, 'params')
  const { metadata } = params
  if (isRecord(metadata) && Object.hasOwn(metadata, operationMetadata)) {
    throw new PermanentError(`metadata.${operationMetadata} is written by Hookledger`)
  }
  if (stripeFinding(call) === undefined) {
    if ('metadata' in params && !isRecord(metadata)) {
      throw new PermanentError(
        `metadata must be an object: emptied, it would lose ${operationMetadata}`,
      )
    }
    return params
  }
  if (metadata !== undefined && !isRecord(metadata)) {
    throw new PermanentError('params.metadata must be an object')
  }
  if (Object.keys(metadata ?? {}).length >= mostMetadata) {
    throw new PermanentError(
      `metadata has no room for ${operationMetadata}: ${mostMetadata} is the most`,
    )
  }
  return { ...params, metadata: { ...metadata, [operationMetadata]: operationId } }
}

/** The SDK sends seconds for a date and JSON keeps a text, which Stripe refuses. */
function refuseDates(value: unknown, at: string): void {
  if (value instanceof Date) throw new PermanentError(`${at} is a date; give seconds since 1970`)
  if (typeof value !== 'object' || value === null) return
  for (const [name, item] of Object.entries(value)) refuseDates(item, `${at}.${name}`)
}
