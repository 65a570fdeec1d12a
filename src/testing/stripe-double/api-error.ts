/**
 * Errors in the shape of Stripe's API. The same error answers an HTTP call and is thrown by a verb that
 * a test calls directly; `executed` says whether the idempotency layer has to remember it.
 */

/** The `error` object of an answer. */
export interface ApiErrorBody {
  type: 'api_error' | 'card_error' | 'idempotency_error' | 'invalid_request_error'
  message: string
  code?: string
  param?: string
}

/** A refusal by the simulated provider, as Stripe would word its kind. */
export class StripeApiError extends Error {
  /** HTTP status of the answer. */
  readonly status: number
  readonly body: ApiErrorBody
  /**
   * Whether the work of the endpoint had begun. Stripe stores such an answer under the idempotency key;
   * a request that failed validation before is not stored and can be sent again, corrected.
   */
  readonly executed: boolean

  constructor(status: number, body: ApiErrorBody, executed: boolean) {
    super(body.message)
    this.name = 'StripeApiError'
    this.status = status
    this.body = body
    this.executed = executed
  }
}

/** The parameters are wrong: nothing was begun, nothing is stored. */
export function invalidRequest(
  message: string,
  detail: { code?: string; param?: string } = {},
): StripeApiError {
  return new StripeApiError(400, { type: 'invalid_request_error', message, ...detail }, false)
}

/** The parameters are fine and the present state of the objects does not allow it. */
export function refused(
  message: string,
  detail: { code?: string; param?: string } = {},
): StripeApiError {
  return new StripeApiError(400, { type: 'invalid_request_error', message, ...detail }, true)
}

/** No object of that kind and id in this account: 404 for the object itself, 400 for a reference. */
export function missing(kind: string, id: string, param: string): StripeApiError {
  const body: ApiErrorBody = {
    type: 'invalid_request_error',
    code: 'resource_missing',
    message: `No such ${kind.replace('checkout.session', 'checkout session')}: '${id}'`,
    param,
  }
  return new StripeApiError(param === 'id' ? 404 : 400, body, false)
}
