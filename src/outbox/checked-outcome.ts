/**
 * What a destination answers, as it can be stored: code of a user's own must not be able to stop a lane with
 * an outcome that no statement can write.
 */
import type { Receipt } from './destination.ts'
import type { AttemptOutcome } from './next-step.ts'
import { receiptJson } from './receipt-json.ts'

const kinds = {
  call: ['sent', 'retry', 'refused', 'uncertain'],
  lookup: ['present', 'absent', 'no_answer'],
} as const

/** Most of a receipt that is kept, in characters of JSON. */
const receiptLength = 16_384

/** The outcome with everything in its place; nobody knows what one of an unknown kind means. */
export function checkedOutcome(kind: 'call' | 'lookup', given: unknown): AttemptOutcome {
  const fields = (typeof given === 'object' && given !== null ? given : {}) as Record<
    string,
    unknown
  >
  const known: readonly unknown[] = kinds[kind]
  if (!known.includes(fields['kind'])) {
    const error = 'the destination answered with something that is no outcome'
    return kind === 'call' ? { kind: 'uncertain', error } : { kind: 'no_answer', error }
  }
  const { status, answer, retryAfterMs } = fields
  return {
    kind: fields['kind'],
    ...('receipt' in fields || fields['kind'] === 'sent' || fields['kind'] === 'present'
      ? { receipt: checkedReceipt(fields['receipt']) }
      : {}),
    ...(fields['kind'] === 'refused' ? { settlesEarlier: fields['settlesEarlier'] === true } : {}),
    ...('error' in fields ? { error: String(fields['error']) } : {}),
    ...(isStatus(status) ? { status } : {}),
    ...(answer instanceof Uint8Array ? { answer } : {}),
    ...(typeof retryAfterMs === 'number' ? { retryAfterMs } : {}),
  } as AttemptOutcome
}

function isStatus(status: unknown): status is number {
  return Number.isSafeInteger(status) && (status as number) >= 0 && (status as number) <= 999
}

function checkedReceipt(receipt: unknown): Receipt {
  try {
    if (typeof receipt !== 'object' || receipt === null) return {}
    const json = receiptJson(receipt as Receipt)
    return json.length > receiptLength ? { too_long: json.length } : (JSON.parse(json) as Receipt)
  } catch {
    return { unreadable: true }
  }
}
