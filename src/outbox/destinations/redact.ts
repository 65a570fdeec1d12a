/**
 * Keeps secrets out of what is stored: a destination may echo a request's headers in its answer, and
 * an error may quote what it could not use.
 */
import { Buffer } from 'node:buffer'

/** The most bytes that are kept of an answer. */
export const keptAnswerBytes = 4096

const shortest = 6

/** Replaces secrets in texts and bytes. */
export interface Redactor {
  text(text: string): string
  /** At most 4 KiB, with every secret in it replaced. */
  answer(bytes: Uint8Array): Uint8Array
}

/** A redactor of these secrets, also in base64 and in the form of a URL. */
export function createRedactor(secrets: readonly string[]): Redactor {
  const forms = [
    ...new Set(
      secrets
        .filter((secret) => secret.length >= shortest)
        .flatMap((secret) => [
          secret,
          encodeURIComponent(secret),
          Buffer.from(secret, 'utf8').toString('base64'),
        ]),
    ),
  ].sort((a, b) => b.length - a.length)
  // latin1 keeps every byte as it is, whatever the encoding of the answer.
  const sought = forms.map((form) => Buffer.from(form, 'utf8').toString('latin1'))
  return Object.freeze({
    text: (text: string) =>
      forms.reduce((kept, form) => kept.replaceAll(form, '[redacted]'), text).slice(0, 500),
    answer: (bytes: Uint8Array) => {
      const text = Buffer.from(bytes).toString('latin1')
      // A secret that the cap cut in two would show its first half.
      const whole = sought.reduce((kept, form) => kept.replaceAll(form, '[redacted]'), text)
      return Buffer.from(cutStart(whole, sought), 'latin1').subarray(0, keptAnswerBytes)
    },
  })
}

/** The text without a beginning of a secret at its very end. */
function cutStart(text: string, secrets: readonly string[]): string {
  for (const secret of secrets) {
    for (let length = Math.min(secret.length - 1, text.length); length >= shortest; length--) {
      if (text.endsWith(secret.slice(0, length))) return text.slice(0, -length)
    }
  }
  return text
}
