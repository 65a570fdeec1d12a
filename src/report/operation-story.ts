/**
 * Operations in words: how one is called, what each attempt came to, what happens next and when. Pure.
 */
import type {
  AttemptView,
  BlockingOperation,
  OperationRecord,
  OperationView,
} from './record-views.ts'
import type { TimelineEntry } from './timeline-entry.ts'

/** `receipt to email`, or `refund re_1 to email`: how a person calls an operation. */
export function operationName(
  operation: Pick<OperationView, 'name' | 'destination' | 'effect_reference'>,
): string {
  const { name, destination, effect_reference: reference } = operation
  return `${name}${reference === null || reference === '' ? '' : ` ${reference}`} to ${destination}`
}

/** The entries of an operation: that it was recorded, where no decision says so, and every attempt. */
export function operationEntries(operation: OperationRecord): TimelineEntry[] {
  const base = {
    event_id: null,
    decision_id: operation.decision_id,
    links: [{ kind: 'operation', id: operation.operation_id }] as const,
    figures: [],
  }
  const recorded: TimelineEntry[] =
    operation.decision_id === null
      ? [
          {
            ...base,
            at: operation.created_at,
            what: 'recorded',
            text: `operation ${operationName(operation)} was recorded`,
            details: [operation.operation_id],
          },
        ]
      : []
  const called = operation.tries.map((attempt): TimelineEntry => {
    return {
      ...base,
      at: attempt.started_at,
      what: 'called',
      text: `${operationName(operation)}: ${attempt.kind} ${attempt.number}, ${outcomeOf(operation, attempt)}`,
      details: attemptDetails(operation, attempt),
    }
  })
  return [...recorded, ...called]
}

/** What an attempt came to, in a few words. */
export function outcomeOf(operation: OperationView, attempt: AttemptView): string {
  if (attempt.outcome !== null)
    return `${attempt.outcome.replace('_', ' ')}${attempt.late ? ', too late' : ''}`
  const isLast = attempt.number === operation.attempts
  return operation.state === 'sending' && isLast ? 'under way' : 'nobody knows'
}

function attemptDetails(operation: OperationView, attempt: AttemptView): string[] {
  const took =
    attempt.answered_at === null
      ? []
      : [`after ${Date.parse(attempt.answered_at) - Date.parse(attempt.started_at)} ms`]
  const facts = [
    ...(attempt.status === null ? [] : [`status ${attempt.status}`]),
    ...took,
    ...(attempt.key_generation > 1
      ? [`under the key ${operation.operation_id}:${attempt.key_generation}`]
      : []),
    `by ${attempt.dispatcher}`,
  ]
  return [
    ...(attempt.error === null ? [] : [`because ${attempt.error}`]),
    ...(attempt.late ? ['the answer came after its lease was lost: it is kept as evidence'] : []),
    ...(outcomeOf(operation, attempt) === 'nobody knows'
      ? ['its dispatcher ended, or lost the database, before it could record an answer']
      : []),
    facts.join(', '),
  ]
}

/** What an operation's promise means, as a sentence. */
export function promiseOf({ promise, destination }: OperationView): string {
  return promise === 'once'
    ? `once: ${destination} recognizes its key, so that it can be sent again safely while that is remembered`
    : `at least once: ${destination} honors no id, so that it may arrive more than once`
}

/** What happens next: when, and what. `at` is null where nothing happens by itself, or it is finished. */
export interface NextStep {
  readonly at: string | null
  readonly text: string
  /** Whether nothing goes on until a person decides. */
  readonly asks: boolean
}

/** What happens next to an operation. */
export function nextStep(operation: OperationView): NextStep {
  const { operation_id: id, next_attempt_at: at, destination, blocked_by: blocking } = operation
  if (blocking !== null) return { at: null, asks: false, text: blockedText(blocking) }
  switch (operation.state) {
    case 'pending':
      return {
        at,
        asks: false,
        text: operation.attempts === 0 ? 'it is sent' : 'it is sent again, under the same key',
      }
    case 'sending':
      return {
        at: operation.leased_until,
        asks: false,
        text: `${operation.leased_by ?? 'a dispatcher'} has it; without an answer it is uncertain then`,
      }
    case 'uncertain':
      if (at !== null) return { at, asks: false, text: uncertainStep(operation, at) }
      return {
        at: null,
        asks: true,
        text: `find out at ${destination} whether it was done, then: hookledger outbox resolve ${id} --as sent (or --as not-done) --reason …`,
      }
    case 'dead':
      return {
        at: null,
        asks: true,
        text: `correct the cause, then: hookledger outbox retry ${id} --reason … (or resolve, or discard)`,
      }
    default:
      return { at: null, asks: false, text: 'nothing: it is finished' }
  }
}

function blockedText(blocking: BlockingOperation): string {
  const { operation_id: id, state, destination, asks } = blocking
  return (
    `blocked: ${destination} takes the operations of an order one after the other, and it waits for ` +
    `${operationName(blocking)}, which is ${state}${asks ? ' and needs a person' : ''}: hookledger outbox show ${id}`
  )
}

function uncertainStep(operation: OperationView, at: string): string {
  if (operation.promise === 'at_least_once') {
    return 'it is looked up where that is possible, else sent again: it may arrive twice'
  }
  const until = operation.key_until
  return until === null || Date.parse(at) < Date.parse(until)
    ? 'the same request goes out again, under the same key'
    : 'its key is no longer remembered for certain: it is looked up first'
}
