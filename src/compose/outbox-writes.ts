/** The outbox as a batch of work uses it: handed in here, since siblings never import one another. */
import type { Tracing } from '../core/tracing.ts'
import type { OutboxWrites } from '../inbox/outbox-writes.ts'
import { addToOutbox } from '../outbox/add.ts'
import { operationsParts } from '../outbox/operations-part.ts'
import { createOutboxPort, type Destinations } from '../outbox/outbox-port.ts'
import { promiseOf, windowMsOf } from '../outbox/promise.ts'

/** The outbox of an installation, for deciding and for the statement that a batch writes. */
export function outboxWrites(
  schema: string,
  installationId: string,
  destinations: Destinations,
  tracing: Tracing | null = null,
): OutboxWrites {
  return {
    outbox: createOutboxPort(installationId, destinations),
    operations: (drafts) =>
      operationsParts(
        schema,
        drafts.flatMap((draft) => {
          // what was drafted was drafted by its destination
          const contract = destinations.get(draft.destination)?.contract
          if (contract === undefined) return []
          return [{ ...draft, promise: promiseOf(contract), windowMs: windowMsOf(contract) }]
        }),
      ),
    addOperation: (tx, operation) =>
      addToOutbox({ schema, installationId, destinations, tracing }, tx, operation),
  }
}
