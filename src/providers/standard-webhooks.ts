/**
 * Standard Webhooks (and Svix, whose headers differ in name only): verifies id, timestamp and raw
 * bytes under `v1` (HMAC-SHA256) or `v1a` (Ed25519), and takes the event's id from the signed header.
 */
import type { UntypedBody } from '../workflow/event.ts'
import {
  bodyIdentity,
  dateOfSeconds,
  dateOfText,
  keepableName,
  unknownType,
} from './event-naming.ts'
import type { CustomRecords } from './custom-records.ts'
import { withDeferredProblem } from './deferred-problem.ts'
import type { NamedEvent, RawRequest, Source, Verdict } from './provider.ts'
import type { SigningKey } from './signature.ts'
import {
  decodeBase64,
  decodeBase64Digest,
  ed25519Key,
  findSigner,
  hmacKey,
  judgeAge,
  parseTimestamp,
} from './signature.ts'
import type { SourceOptions } from './source-options.ts'
import { badSecret, requireSecrets, resolveSourceOptions } from './source-options.ts'
import { readTopLevel } from './top-level.ts'

/** Options of `standardWebhooks()`. */
export interface StandardWebhooksOptions extends SourceOptions {
  /**
   * `whsec_<base64>` (the prefix may be missing), or `whpk_<base64>` where the sender signs with a
   * private key. While one is being rotated, the old and the new.
   */
  readonly secrets: readonly (string | undefined)[]
  /** How to ask the sender for its own records; reconciliation leaves the source out where absent. */
  readonly records?: CustomRecords | undefined
}

/** A sender of Standard Webhooks. */
export type StandardWebhooksSource<Events = Readonly<Record<string, UntypedBody>>> = Source<
  'standard-webhooks',
  Events
>

/** The fewest bytes of a shared secret that the specification permits. */
const fewestSecretBytes = 24

const ed25519KeyBytes = 32

/**
 * A source of Standard Webhooks; `Events` maps event types to bodies. A bad option becomes its
 * `problem` (HKL_CONFIG_SECRET or HKL_CONFIG_INVALID, naming the option), at which the start stops.
 * @example
 * standardWebhooks<{ 'invoice.paid': { type: 'invoice.paid'; data: { id: string } } }>({
 *   secrets: [process.env.BILLING_WEBHOOK_SECRET],
 * })
 */
export function standardWebhooks<Events = Readonly<Record<string, UntypedBody>>>(
  options: StandardWebhooksOptions,
): StandardWebhooksSource<Events> {
  return withDeferredProblem<StandardWebhooksSource<Events>>('standard-webhooks', () =>
    makeStandardWebhooks(options),
  )
}

function makeStandardWebhooks<Events>(
  options: StandardWebhooksOptions,
): StandardWebhooksSource<Events> {
  const maker = 'standardWebhooks()'
  const { account, environment, toleranceSeconds } = resolveSourceOptions(maker, options)
  const keys = requireSecrets(maker, 'secrets', options.secrets).map(toKey)
  const { records } = options
  return Object.freeze({
    provider: 'standard-webhooks',
    account,
    environment,
    allowsAccount: (other: string) => other === account,
    verify: (request: RawRequest, nowMs: number) =>
      verifyMessage(keys, request, nowMs, toleranceSeconds),
    name: (request: RawRequest) => [nameMessage(request)],
    ...(records !== undefined && { records: checkedRecords(records) }),
  })
}

function checkedRecords(records: CustomRecords): CustomRecords {
  if (records.problem !== undefined) throw records.problem
  return records
}

function toKey(secret: string, index: number): SigningKey {
  const wrong = (problem: string): Error =>
    badSecret('standardWebhooks()', `secrets[${index}]`, problem)
  if (secret.startsWith('whsk_')) {
    throw wrong('is a private key; give the public key (whpk_…) instead')
  }
  const isPublic = secret.startsWith('whpk_')
  const bytes = decodeBase64(secret.replace(/^(?:whsec_|whpk_)/, ''))
  if (bytes === undefined) throw wrong('is not base64; copy it again, whole')
  if (isPublic && bytes.byteLength !== ed25519KeyBytes) {
    throw wrong(`is not a public key of ${ed25519KeyBytes} bytes`)
  }
  if (isPublic) return ed25519Key('v1a', bytes)
  if (bytes.byteLength < fewestSecretBytes) {
    throw wrong(`decodes to fewer than ${fewestSecretBytes} bytes`)
  }
  return hmacKey('v1', bytes)
}

/** The three headers of a delivery. */
interface MessageHeaders {
  readonly id: string | undefined
  readonly timestamp: string | undefined
  readonly signature: string | undefined
}

/**
 * All three from one family of names: a header of the other family is never signed, so mixing them
 * would let anybody put a new id on an old signature. Verification and naming both read here.
 */
function messageHeaders(headers: RawRequest['headers']): MessageHeaders {
  const family = headers('webhook-signature') === undefined ? 'svix' : 'webhook'
  return {
    id: headers(`${family}-id`),
    timestamp: headers(`${family}-timestamp`),
    signature: headers(`${family}-signature`),
  }
}

function verifyMessage(
  keys: readonly SigningKey[],
  { headers, rawBody }: RawRequest,
  nowMs: number,
  toleranceSeconds: number,
): Verdict {
  const { id, timestamp: sentAt, signature } = messageHeaders(headers)
  if (!id || !sentAt || !signature) return { ok: false, reason: 'missing' }
  const timestamp = parseTimestamp(sentAt)
  const signatures = parseSignatures(signature)
  if (timestamp === undefined || signatures === undefined) return { ok: false, reason: 'malformed' }
  const content = { prefix: `${id}.${timestamp}.`, body: rawBody }
  const secret = findSigner(keys, content, (scheme) => signatures.get(scheme) ?? [])
  if (secret === -1) return { ok: false, reason: 'mismatch' }
  const age = judgeAge(timestamp, nowMs, toleranceSeconds)
  return age === undefined ? { ok: true, secret } : { ok: false, reason: age }
}

const decoders: Readonly<Record<string, (text: string) => Uint8Array | undefined>> = {
  v1: decodeBase64Digest,
  v1a: decodeBase64,
}

/**
 * `v1,<base64> v1a,<base64> …` by scheme; versions that we do not know are skipped. Undefined when an
 * element has not exactly one comma: two headers were joined, or it is no list of signatures.
 */
function parseSignatures(header: string): ReadonlyMap<string, readonly Uint8Array[]> | undefined {
  const signatures = new Map<string, Uint8Array[]>()
  for (const element of header.split(' ')) {
    if (element === '') continue
    const [scheme, text, ...more] = element.split(',')
    if (scheme === undefined || text === undefined || more.length > 0) return undefined
    const bytes = Object.hasOwn(decoders, scheme) ? decoders[scheme]?.(text) : undefined
    if (bytes === undefined) continue
    const known = signatures.get(scheme)
    if (known === undefined) signatures.set(scheme, [bytes])
    else known.push(bytes)
  }
  return signatures
}

const named: ReadonlySet<string> = new Set(['type', 'timestamp'])

function nameMessage({ headers, rawBody }: RawRequest): NamedEvent {
  const { id, timestamp } = messageHeaders(headers)
  const fields = readTopLevel(rawBody, named)
  const occurredAt =
    dateOfText(fields?.get('timestamp')) ?? dateOfSeconds(parseTimestamp(timestamp ?? ''))
  return {
    eventId: keepableName(id) ?? bodyIdentity(rawBody),
    eventType: keepableName(fields?.get('type')) ?? unknownType,
    ...(occurredAt !== undefined && { occurredAt }),
  }
}
