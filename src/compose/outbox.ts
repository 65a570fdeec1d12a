/**
 * Wires the outbox to its siblings: findings of the ledger, wake-ups of the inbox, and what decisions write.
 */
import type { Limits } from '../core/limits.ts'
import type { Signals } from '../core/signals.ts'
import type { Tracing } from '../core/tracing.ts'
import { wakeParts } from '../inbox/outcome-parts.ts'
import { closedPart, findingId, findingsPart, type FindingPolicy } from '../ledger/findings.ts'
import {
  discardOperation,
  resolveOperation,
  retryOperation,
  type ActReason,
  type ActReport,
  type Resolution,
} from '../outbox/acts.ts'
import { createDispatcher, type Dispatcher } from '../outbox/dispatcher.ts'
import type { Destinations } from '../outbox/outbox-port.ts'
import type { FindingsPort } from '../outbox/ports.ts'
import type { Database } from '../postgres/executor.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import { finding } from '../workflow/finding-kinds.ts'

/** What the outbox of one configuration is made of. */
export interface OutboxParts {
  readonly db: Database
  readonly installationId: string
  readonly destinations: Destinations
  readonly policy: FindingPolicy
  readonly limits: Limits
  readonly signals: Signals
  /** Absent or null: traces are off. */
  readonly tracing?: Tracing | null
}

/** The source that findings about operations name. */
const source = 'outbox'

/** Findings about operations: their id is computed from the operation, so that one thing is one finding. */
function findingsPort({ db, installationId, policy }: OutboxParts): FindingsPort {
  const about = (operationId: string): string => `operation:${operationId}`
  return {
    parts(found, settled) {
      const opened = found.map(({ kind, operationId, orderId, figures }) => ({
        draft: finding(kind, about(operationId), figures),
        source,
        orderId,
        eventKey: null,
      }))
      const over = settled.flatMap((operationId) =>
        (['operation_dead', 'operation_uncertain'] as const).map((kind) =>
          findingId(installationId, kind, source, about(operationId)),
        ),
      )
      return [
        findingsPart(db.schema, installationId, policy, opened),
        closedPart(db.schema, over),
      ].filter((part): part is WritePart => part !== null)
    },
  }
}

/** The dispatcher of this process. */
export function outboxDispatcher(parts: OutboxParts): Dispatcher {
  const { db, destinations, limits, signals } = parts
  return createDispatcher({
    db,
    destinations,
    findings: findingsPort(parts),
    wakes: {
      parts: (orderIds) =>
        wakeParts(
          db.schema,
          orderIds.map((value) => ({ sourceId: 0, kind: 'order', value })),
        ),
      woken: (events) => {
        signals.emit('outbox.events.woken', { events })
      },
    },
    signals,
    lockTimeoutMs: limits.lockTimeoutMs,
    batch: limits.dispatchBatch,
    tracing: parts.tracing ?? null,
  })
}

/** What a person decides about an operation. */
export interface OutboxActs {
  retry(operationId: string, by: ActReason): Promise<ActReport>
  resolve(operationId: string, resolution: Resolution, by: ActReason): Promise<ActReport>
  discard(operationId: string, by: ActReason): Promise<ActReport>
}

/** The acts, each recorded with reason and actor in the commit of what it changes. */
export function outboxActs(parts: OutboxParts): OutboxActs {
  const { db, destinations, limits } = parts
  const context = {
    db,
    destinations,
    findings: findingsPort(parts),
    lockTimeoutMs: limits.lockTimeoutMs,
  }
  return {
    retry: (id, by) => retryOperation(context, id, by),
    resolve: (id, resolution, by) => resolveOperation(context, id, resolution, by),
    discard: (id, by) => discardOperation(context, id, by),
  }
}
