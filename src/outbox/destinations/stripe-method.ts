/**
 * Finds the SDK's method of a call and proves, without sending anything, that it is a POST of Stripe's
 * first API: only those honor an idempotency key.
 */
import type StripeClient from 'stripe'
import { PermanentError } from '../../core/errors.ts'

/** A method of the SDK, bound to its resource. */
export type StripeMethod = (...given: unknown[]) => Promise<unknown>

/**
 * The method, bound.
 *
 * @throws PermanentError when the SDK has no such method
 */
export function stripeMethod(client: StripeClient, call: string): StripeMethod {
  const { resource, method } = find(client, call)
  return (...given) => method.apply(resource, given) as Promise<unknown>
}

/** @throws PermanentError when the call is none that can be an operation, saying why. */
export function checkStripeMethod(
  client: StripeClient,
  call: string,
  ids: readonly string[],
): void {
  const { resource, method } = find(client, call)
  const said = intercept(resource, method, ids)
  if (said === undefined) {
    throw new PermanentError(`${call} with ${ids.length} ids cannot be sent by the installed SDK`)
  }
  if (said.verb !== 'POST' || !said.path.startsWith('/v1/')) {
    throw new PermanentError(
      `${call} honors no idempotency key: only calls that POST to Stripe's API v1 can be operations`,
    )
  }
  if (said.places !== ids.length) {
    throw new PermanentError(
      `${call} takes ${said.places} ids before its parameters; give them in ids`,
    )
  }
}

interface Found {
  readonly resource: object
  readonly method: (...given: unknown[]) => unknown
}

function find(client: StripeClient, call: string): Found {
  const names = call.split('.')
  let resource: object = client
  let value: unknown = client
  for (const name of names) {
    // Everything else that hangs on a client is its own: settings, senders, the key.
    const isResource = resource !== client || name !== 'oauth'
    resource = value as object
    const next: unknown =
      isResource && !name.startsWith('_') && !Object.hasOwn(Object.prototype, name)
        ? (resource as Record<string, unknown>)[name]
        : undefined
    if (next === undefined || next === null) throw unknownCall(call)
    value = next
  }
  if (typeof value !== 'function' || names.length < 2) throw unknownCall(call)
  return { resource, method: value as Found['method'] }
}

interface Said {
  readonly verb: string
  readonly path: string
  readonly places: number
}

/** Calls the method on a stand-in of its resource whose sending part only listens. */
function intercept(
  resource: object,
  method: Found['method'],
  ids: readonly string[],
): Said | undefined {
  let heard: readonly unknown[] | undefined
  const listen = (...given: unknown[]): Promise<void> => {
    heard = given
    return Promise.resolve()
  }
  const standIn = Object.create(resource, { _makeRequest: { value: listen } }) as object
  try {
    void method.apply(standIn, [...ids, {}, {}])
  } catch {
    return undefined
  }
  const [first, second] = heard ?? []
  if (typeof first === 'string' && typeof second === 'string') {
    return { verb: first.toUpperCase(), path: second, places: Math.max(0, method.length - 2) }
  }
  // Earlier versions describe a call by its specification.
  const spec = second as { method?: unknown; fullPath?: unknown } | undefined
  if (typeof spec?.method !== 'string' || typeof spec.fullPath !== 'string') return undefined
  const places = spec.fullPath.match(/\{[^}]*\}/g)?.length ?? 0
  return { verb: spec.method.toUpperCase(), path: spec.fullPath, places }
}

function unknownCall(call: string): PermanentError {
  return new PermanentError(`Stripe's SDK has no ${call}`)
}
