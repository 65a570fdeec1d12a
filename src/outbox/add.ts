/**
 * Operations that the app records itself, in the transaction of what they follow from: both commit, or
 * neither. The same destination and key are the same operation for ever; other bytes under it are an error.
 */
import { HookledgerError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import type { Tracing } from '../core/tracing.ts'
import type { Executor } from '../postgres/executor.ts'
import { appOperationId } from '../postgres/permanent-id.ts'
import type { AppOperation } from '../workflow/outbox-port.ts'
import { addOperation } from './operations-part.ts'
import type { Destinations } from './outbox-port.ts'
import { promiseOf, windowMsOf } from './promise.ts'

/** What adding needs to know. */
export interface AddContext {
  readonly schema: string
  readonly installationId: string
  readonly destinations: Destinations
  /** Null: traces are off. */
  readonly tracing: Tracing | null
}

/**
 * Records an operation on `tx`. `existed`: the same was recorded before, and it is not sent again.
 *
 * @throws HookledgerError HKL_CONFIG_UNKNOWN_NAME for a destination that is not configured,
 * HKL_OUTBOX_CHANGED when this key was recorded with another body
 * @throws PermanentError for a body that the destination cannot encode
 */
export async function addToOutbox(
  context: AddContext,
  tx: Executor,
  operation: AppOperation,
): Promise<'added' | 'existed'> {
  if (typeof operation !== 'object' || operation === null)
    throw new HookledgerError('HKL_CONFIG_INVALID', 'outbox.add: give { to, key, body }')
  const { to, key, body, order = null } = operation
  const destination = context.destinations.get(to)
  if (destination === undefined) {
    const near = nearest(to, context.destinations.keys())
    throw new HookledgerError(
      'HKL_CONFIG_UNKNOWN_NAME',
      `unknown destination "${String(to).slice(0, 80)}"${near === null ? '' : `, did you mean "${near}"?`}`,
    )
  }
  if (typeof key !== 'string' || key === '' || Buffer.byteLength(key) > 255 || key.includes('\0')) {
    throw new HookledgerError(
      'HKL_CONFIG_INVALID',
      'outbox.add: key must be a text of 1 to 255 bytes that names what is to be done once',
    )
  }
  const operationId = appOperationId(context.installationId, to, key)
  const answer = await addOperation(context.schema, tx, {
    operationId,
    destination: to,
    name: key,
    orderId: order,
    request: destination.encode({ operationId, orderId: order, body }),
    promise: promiseOf(destination.contract),
    windowMs: windowMsOf(destination.contract),
    trace: context.tracing?.active() ?? null,
  })
  if (answer !== 'changed') return answer
  throw new HookledgerError(
    'HKL_OUTBOX_CHANGED',
    `outbox.add: operation ${operationId} of destination "${to}" was recorded with another body, and what is recorded never changes: use another key`,
  )
}
