/**
 * What has to be typed before something that moves money or access is done. The page shows the text, a person types
 * it, and here it is compared: a click by mistake is no act.
 */
import { HookledgerError } from '../core/errors.ts'

/** @throws HookledgerError HKL_API_CONFIRM saying what to type; nothing was done */
export function requireConfirmed(typed: string, expected: string): void {
  if (typed === expected) return
  throw new HookledgerError(
    'HKL_API_CONFIRM',
    `nothing was done: type ${JSON.stringify(expected)} to confirm, exactly`,
  )
}

/** What is typed for an act on an operation: the order that it belongs to, else where it goes. */
export function operationConfirm(operation: {
  readonly order_id: string | null
  readonly destination: string
}): string {
  return operation.order_id ?? operation.destination
}

/** What is typed for a repair: the order that it changes, else the kind of the finding. */
export function repairConfirm(finding: {
  readonly order_id: string | null
  readonly kind: string
}): string {
  return finding.order_id ?? finding.kind
}
