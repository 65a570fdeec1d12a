/**
 * Signs requests as Standard Webhooks: id, timestamp and the exact bytes under HMAC-SHA256. The id stays
 * through all attempts, the timestamp is the attempt's own.
 */
import { Buffer } from 'node:buffer'
import { createHmac, createSecretKey } from 'node:crypto'
import { HookledgerError } from '../../core/errors.ts'

/** Signs messages with one secret, or with all that are valid during a rotation. */
export interface MessageSigner {
  /** The three headers for a message that is sent at `seconds` since 1970. */
  headers(id: string, seconds: number, body: Uint8Array): Readonly<Record<string, string>>
}

const fewestBytes = 24
const mostBytes = 64

/**
 * A signer from `whsec_<base64>` secrets, each of 24 to 64 bytes.
 *
 * @throws HookledgerError HKL_CONFIG_SECRET saying what is wrong with which one
 */
export function createSigner(maker: string, secrets: readonly unknown[]): MessageSigner {
  const keys = secrets.map((secret, index) =>
    createSecretKey(secretBytes(maker, secret, secrets.length === 1 ? '' : `[${index}]`)),
  )
  return Object.freeze({
    headers(id: string, seconds: number, body: Uint8Array): Readonly<Record<string, string>> {
      const signatures = keys.map((key) => {
        const hmac = createHmac('sha256', key).update(`${id}.${seconds}.`, 'utf8').update(body)
        return `v1,${hmac.digest('base64')}`
      })
      return {
        'webhook-id': id,
        'webhook-timestamp': String(seconds),
        'webhook-signature': signatures.join(' '),
      }
    },
  })
}

function secretBytes(maker: string, secret: unknown, at: string): Buffer {
  const wrong = (problem: string): HookledgerError =>
    new HookledgerError('HKL_CONFIG_SECRET', `${maker}: signingSecret${at} ${problem}`)
  if (secret === undefined || secret === null || secret === '') {
    throw wrong('is not set; is the environment variable that it is read from?')
  }
  if (typeof secret !== 'string') throw wrong('must be a string')
  if (/^wh[sp]k_/.test(secret)) throw wrong('is a key of another scheme; give a whsec_… secret')
  const text = secret.replace(/^whsec_/, '')
  const bytes = Buffer.from(text, 'base64')
  if (bytes.toString('base64') !== text) throw wrong('is not base64; copy it again, whole')
  if (bytes.byteLength < fewestBytes || bytes.byteLength > mostBytes) {
    throw wrong(`must decode to ${fewestBytes} to ${mostBytes} bytes`)
  }
  return bytes
}
