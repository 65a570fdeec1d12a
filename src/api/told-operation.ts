/** An operation with what a person wants to know of it: what happens next, and what its promise means. */
import { nextStep, promiseOf } from '../report/operation-story.ts'
import type { OperationRecord } from '../report/record-views.ts'
import type { ToldOperation } from './shapes/outbox-shapes.ts'

/** Adds the words. */
export function toldOperation(operation: OperationRecord): ToldOperation {
  return { ...operation, next: nextStep(operation), promise_text: promiseOf(operation) }
}
