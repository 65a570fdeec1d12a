/** The operation that a person names: by its id or the beginning of it, by its key, or by the key of `outbox.add`. */
import { HookledgerError } from '../core/errors.ts'
import type { Database } from '../postgres/executor.ts'
import { findOperations } from '../report/operations.ts'
import type { OperationView } from '../report/record-views.ts'

/**
 * The operation that is meant.
 *
 * @throws HookledgerError HKL_NOT_FOUND when there is none, or more than one
 */
export async function requireOperation(db: Database, id: string): Promise<OperationView> {
  const found = await findOperations(db, id)
  const [operation] = found
  if (operation === undefined) throw unknownOperation(id)
  if (found.length === 1) return operation
  const isKey = found.every((each) => each.effect_type === null && each.name === id)
  const ids = found.map((each) => `${each.operation_id} to ${each.destination}`)
  throw new HookledgerError(
    'HKL_NOT_FOUND',
    isKey
      ? `several destinations know the key ${JSON.stringify(id)}: give the id (${ids.join(', ')})`
      : `${found.length} operations or more begin with ${id}: give more of the id`,
  )
}

/** That nothing has this id. */
export function unknownOperation(id: string): HookledgerError {
  return new HookledgerError(
    'HKL_NOT_FOUND',
    `no operation has the key ${JSON.stringify(id)}, or an id that begins so (six characters or more): see "hookledger outbox list --state all"`,
  )
}
