/**
 * One module for every signature scheme: keys work on the raw bytes, encodings are strict and
 * canonical, digests are compared in constant time, and whatever is not provably right is refused.
 */
import { Buffer } from 'node:buffer'
import {
  createHmac,
  createPublicKey,
  createSecretKey,
  timingSafeEqual,
  verify as verifySignature,
} from 'node:crypto'
import type { Refusal } from './provider.ts'

/** Seconds that a delivery's timestamp may differ from the receiver's clock, either way. */
export const defaultToleranceSeconds: number = 300

/** Bytes of an HMAC-SHA256 digest. */
const digestBytes = 32

/** What was signed: the text that the scheme puts in front (UTF-8), then the body's bytes. */
export interface SignedContent {
  readonly prefix: string
  readonly body: Uint8Array
}

/** A key that can say whether one of several signatures of its scheme is over the content. */
export interface SigningKey {
  /** The scheme's name in the provider's header. */
  readonly scheme: string
  matches(content: SignedContent, signatures: readonly Uint8Array[]): boolean
}

/** The HMAC-SHA256 of the content: what a sender puts on, and what `hmacKey` compares with. */
export function hmacSha256(secret: Uint8Array | string, content: SignedContent): Buffer {
  return createHmac('sha256', secret).update(content.prefix, 'utf8').update(content.body).digest()
}

/** An HMAC-SHA256 key; the secret is held as a key object, which does not print. */
export function hmacKey(scheme: string, secret: Uint8Array): SigningKey {
  const key = createSecretKey(secret)
  return Object.freeze({
    scheme,
    matches({ prefix, body }: SignedContent, signatures: readonly Uint8Array[]): boolean {
      if (signatures.length === 0) return false
      const expected = createHmac('sha256', key).update(prefix, 'utf8').update(body).digest()
      return signatures.some((signature) => equalDigest(signature, expected))
    },
  })
}

/** The DER head of an Ed25519 public key; the 32 bytes of the key follow. */
const ed25519Head = Buffer.from('302a300506032b6570032100', 'hex')

/** An Ed25519 public key (32 bytes). */
export function ed25519Key(scheme: string, publicKey: Uint8Array): SigningKey {
  const der = Buffer.concat([ed25519Head, publicKey])
  const key = createPublicKey({ key: der, format: 'der', type: 'spki' })
  return Object.freeze({
    scheme,
    matches({ prefix, body }: SignedContent, signatures: readonly Uint8Array[]): boolean {
      if (signatures.length === 0) return false
      const message = Buffer.concat([Buffer.from(prefix, 'utf8'), body])
      return signatures.some((signature) => verifySignature(null, message, key, signature))
    },
  })
}

/** The index of the first key that one of the signatures proves; -1 when none does. */
export function findSigner(
  keys: readonly SigningKey[],
  content: SignedContent,
  signatures: (scheme: string) => readonly Uint8Array[],
): number {
  return keys.findIndex((key) => key.matches(content, signatures(key.scheme)))
}

/** Unequal lengths are told apart first: `timingSafeEqual` throws on them. */
function equalDigest(signature: Uint8Array, expected: Uint8Array): boolean {
  return signature.byteLength === expected.byteLength && timingSafeEqual(signature, expected)
}

/** A digest in lower-case hex; undefined unless it is exactly 32 bytes, canonically written. */
export function decodeHexDigest(text: string): Buffer | undefined {
  return /^[0-9a-f]{64}$/.test(text) ? Buffer.from(text, 'hex') : undefined
}

/**
 * Bytes in padded base64; undefined unless the text is canonical. `Buffer.from` skips what it does
 * not know, so that many texts would mean the same bytes.
 */
export function decodeBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return text !== '' && bytes.toString('base64') === text ? bytes : undefined
}

/** A digest in base64; undefined unless it is exactly 32 bytes, canonically written. */
export function decodeBase64Digest(text: string): Buffer | undefined {
  const bytes = text.length === 44 ? decodeBase64(text) : undefined
  return bytes?.byteLength === digestBytes ? bytes : undefined
}

/**
 * Unix seconds as a sender writes them: digits only, no leading zero, at most twelve. Anything else
 * is undefined: a lenient parser would sign one text and read another.
 */
export function parseTimestamp(text: string): number | undefined {
  return /^(?:0|[1-9][0-9]{0,11})$/.test(text) ? Number(text) : undefined
}

/** Whether a timestamp (Unix seconds) is outside the tolerance, either way; undefined when inside. */
export function judgeAge(
  timestamp: number,
  nowMs: number,
  toleranceSeconds: number,
): Extract<Refusal, 'too_old' | 'too_new'> | undefined {
  const age = Math.floor(nowMs / 1000) - timestamp
  if (age > toleranceSeconds) return 'too_old'
  // Asked this way round, a clock that gives NaN refuses.
  return age >= -toleranceSeconds ? undefined : 'too_new'
}
