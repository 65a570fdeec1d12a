/**
 * Idempotency keys as Stripe documents them for API v1: the first answer of a call that began to execute
 * is kept with its status, also when it is a 500; other parameters under the same key are refused; a call
 * beside one that still runs is refused and not kept; after 24 hours the key is new again.
 */
import { createHash } from 'node:crypto'
import { invalidRequest, StripeApiError } from './api-error.ts'
import { canonicalText, type Parameters } from './form-parameters.ts'
import type { ObjectState } from './object-state.ts'
import type { StoredAnswer } from './transaction.ts'

/** A POST under a key. */
export interface KeyedCall {
  account: string
  key: string
  path: string
  parameters: Parameters
}

/** The keys of calls, those under way in memory and those answered in the state. */
export class IdempotencyKeys {
  readonly #state: ObjectState
  readonly #underWay = new Set<string>()

  constructor(state: ObjectState) {
    this.#state = state
  }

  /**
   * The answer stored for the call, or undefined when it has to be executed.
   *
   * @throws StripeApiError 400 for a key that is too long or was used for another request, 409 while
   * the first call with the key still runs.
   */
  stored(call: KeyedCall): StoredAnswer | undefined {
    if (call.key.length > 255)
      throw invalidRequest('Idempotency keys may be up to 255 characters long.')
    if (this.#underWay.has(nameOf(call))) throw inProgress(call.key)
    const answer = this.#state.answer(call.account, call.key)
    if (!answer) return undefined
    if (answer.path !== call.path)
      throw otherRequest(
        call.key,
        `for the same endpoint they were first used for (${answer.path})`,
      )
    if (answer.fingerprint !== fingerprint(call)) {
      throw otherRequest(call.key, 'with the same parameters they were first used with')
    }
    return answer
  }

  /** Marks the call as running; the returned function ends that. */
  begin(call: KeyedCall): () => void {
    const name = nameOf(call)
    this.#underWay.add(name)
    return () => this.#underWay.delete(name)
  }
}

/** What the state keeps of an answered call. */
export function storedAnswer(
  call: KeyedCall,
  answer: { status: number; body: string; requestId: string; storedMs: number },
): StoredAnswer {
  return { key: call.key, path: call.path, fingerprint: fingerprint(call), ...answer }
}

function nameOf(call: KeyedCall): string {
  return `${call.account}\n${call.key}`
}

function fingerprint(call: KeyedCall): string {
  return createHash('sha256').update(canonicalText(call.parameters)).digest('hex')
}

function otherRequest(key: string, rule: string): StripeApiError {
  const message = `Keys for idempotent requests can only be used ${rule}. Try using a key other than '${key}' if you meant to execute a different request.`
  return new StripeApiError(400, { type: 'idempotency_error', message }, false)
}

function inProgress(key: string): StripeApiError {
  const message = `There is currently another in-progress request using this Idempotent Key: ${key}. Please try again later.`
  return new StripeApiError(
    409,
    { type: 'invalid_request_error', code: 'idempotency_key_in_use', message },
    false,
  )
}
