/**
 * The outbox as deciding sees it: pure, from the configuration alone. The bytes that come out here are the
 * ones that are sent, however often and whenever.
 */
import type { OperationDraft, OperationRequest, OutboxPort } from '../workflow/outbox-port.ts'
import type { Destination } from './destination.ts'
import { effectOperationId } from './operation-id.ts'

/** The destinations of a configuration by name. */
export type Destinations = ReadonlyMap<string, Destination>

/** Creates the port of an installation. */
export function createOutboxPort(installationId: string, destinations: Destinations): OutboxPort {
  return {
    known: (name) => destinations.has(name),
    names: () => [...destinations.keys()],
    draft: (request) => draftOperation(installationId, destinations, request),
  }
}

function draftOperation(
  installationId: string,
  destinations: Destinations,
  request: OperationRequest,
): OperationDraft {
  const destination = destinations.get(request.destination)
  if (destination === undefined)
    throw new TypeError(`there is no destination "${request.destination}"`)
  const { orderId, effectType, effectReference, name, whileStates } = request
  const operationId = effectOperationId(installationId, request)
  return {
    operationId,
    destination: request.destination,
    orderId,
    effectType,
    effectReference,
    name,
    request: destination.encode({ operationId, orderId, body: request.body }),
    whileStates,
  }
}
