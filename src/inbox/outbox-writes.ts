/**
 * What a batch of work needs of the outbox. The two are siblings that never import one another: the root
 * hands it in.
 */
import type { TraceContext } from '../core/tracing.ts'
import type { Executor } from '../postgres/executor.ts'
import type { WritePart } from '../postgres/write-parts.ts'
import type { AppOperation, OperationDraft, OutboxPort } from '../workflow/outbox-port.ts'
import type { BatchTracer } from './batch-traces.ts'
import type { Settled } from './outcome-parts.ts'

/** An operation with the decision whose effect asks for it. */
export interface DecidedOperation extends OperationDraft {
  readonly decisionId: bigint
  /** Of the span that decided it; absent where traces are off. */
  readonly trace?: TraceContext | null
}

/** The outbox, as a batch of work uses it. */
export interface OutboxWrites {
  /** Where effects may send, and what exactly. */
  readonly outbox: OutboxPort
  /** The outbox's part of a batch's one statement; asked only where there is something to write. */
  readonly operations: (operations: readonly DecidedOperation[]) => WritePart[]
  /** Records an operation of the app's in the transaction that `tx` is in. */
  readonly addOperation: (tx: Executor, operation: AppOperation) => Promise<'added' | 'existed'>
}

/** The parts that write what the effects of a batch send; none where they send nothing. */
export function operationParts(
  { operations }: OutboxWrites,
  settled: readonly Settled[],
  tracer: BatchTracer | null = null,
): readonly WritePart[] {
  const decided: DecidedOperation[] = []
  for (const { row, outcome } of settled) {
    for (const draft of outcome.operations) {
      const trace = tracer === null ? null : tracer.contextOf(row.key)
      decided.push({ ...draft, decisionId: outcome.decisionId, trace })
    }
  }
  return decided.length === 0 ? [] : operations(decided)
}
