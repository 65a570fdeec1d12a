/**
 * What goes wrong between a caller and the mail service, before its work and after it: from the caller's
 * side most of them look alike. Drawn from a seed and the email's own bytes, so that the same email meets the same.
 */
import { createRandom } from '../stripe-double/random.ts'

/** What can meet a call. */
export type MailFault =
  /** 429 with `Retry-After`; nothing was done. */
  | 'rate_limited'
  /** 500; nothing was done. */
  | 'failed_before'
  /** The line is cut; nothing was done. */
  | 'reset_before'
  /** 500, although the email was sent. */
  | 'failed_after'
  /** The email was sent, and the answer is lost with its line. */
  | 'answer_lost'
  /** The email was sent, and no answer ever comes: the caller waits until it gives up. */
  | 'timed_out'

/** Every fault; those after the work are what an `Idempotency-Key` is for. */
export const mailFaults: readonly MailFault[] = [
  'rate_limited',
  'failed_before',
  'reset_before',
  'failed_after',
  'answer_lost',
  'timed_out',
]

/** Whether the email was sent before the fault. */
export function isAfterTheWork(fault: MailFault): boolean {
  return fault === 'failed_after' || fault === 'answer_lost' || fault === 'timed_out'
}

/** Says what meets a call, by its body and how many calls came under its key, this one included. */
export type MailFaultPlan = (of: {
  readonly sha256: string
  readonly calls: number
}) => MailFault | null

/** So many calls of one email can go wrong; the next one is served. */
const worstCalls = 3

/**
 * Faults for a share of all calls (0 to 1), each kind as often as any other.
 *
 * @example seededMailFaults('demo', 0.2)
 */
export function seededMailFaults(seed: string, share: number): MailFaultPlan {
  return ({ sha256, calls }) => {
    if (calls > worstCalls) return null
    const random = createRandom(`${seed}/${sha256}/${calls}`)
    return random.chance(share) ? random.pick(mailFaults) : null
  }
}
