/** The operation that a person names by its id, its key, or the beginning of either. */
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
  throw new HookledgerError(
    'HKL_NOT_FOUND',
    `${found.length} operations or more begin with ${id}: give more of the id`,
  )
}

/** That nothing has this id. */
export function unknownOperation(id: string): HookledgerError {
  return new HookledgerError(
    'HKL_NOT_FOUND',
    `no operation has an id that begins with ${JSON.stringify(id)} (six characters or more): see "hookledger outbox list --state all"`,
  )
}
