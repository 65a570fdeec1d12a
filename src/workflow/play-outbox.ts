/**
 * An outbox without a database: it knows the destinations that it is given, or any, and makes the same
 * drafts as a real one would, under ids that only have the form of permanent ones.
 */
import { PermanentError } from '../core/errors.ts'
import { fingerprint } from '../core/fingerprint.ts'
import { toJson } from '../core/json.ts'
import type { OperationDraft, OutboxPort } from './outbox-port.ts'

/** A destination as a run in memory needs it: those that are configured fit. */
export interface PlayDestination {
  encode(send: {
    readonly operationId: string
    readonly body: unknown
    readonly orderId: string | null
  }): Uint8Array
}

/** Destinations by name. */
export type PlayDestinations = Readonly<Record<string, PlayDestination>>

/** The port of a run in memory. Without destinations any name is one, and bodies are JSON. */
export function playOutbox(destinations?: PlayDestinations | undefined): OutboxPort {
  const names = destinations === undefined ? [] : Object.keys(destinations)
  // a check plays the same history over and over
  const ids = new Map<string, string>()
  return {
    known: (name) => destinations === undefined || Object.hasOwn(destinations, name),
    names: () => names,
    draft(request): OperationDraft {
      const { orderId, effectType, effectReference, destination, name, body, whileStates } = request
      const key = JSON.stringify([orderId, effectType, effectReference, destination, name])
      const operationId = ids.get(key) ?? idOf(key)
      ids.set(key, operationId)
      const target = destinations?.[destination] ?? jsonDestination
      return {
        operationId,
        destination,
        orderId,
        effectType,
        effectReference,
        name,
        request: target.encode({ operationId, body, orderId }),
        whileStates,
      }
    },
  }
}

const encoder = new TextEncoder()

const jsonDestination: PlayDestination = {
  encode({ body }) {
    let text: string | undefined
    try {
      text = toJson(body)
    } catch {
      // cycles, and getters that throw: what they say may be the body itself
    }
    if (text === undefined)
      throw new PermanentError('the body of an operation cannot be written as JSON')
    return encoder.encode(text)
  },
}

/** The form of a version 5 UUID. */
function idOf(key: string): string {
  const hex = fingerprint(key) + fingerprint(`operation ${key}`)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-5${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20)}`
}
