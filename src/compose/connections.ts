/** What a pool of the app's must allow. */
import { HookledgerError } from '../core/errors.ts'
import type { PoolLike } from '../postgres/pool.ts'

/**
 * A claim commits its batch row on a second connection while it holds the first: one is not enough.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID
 */
export function requireConnections(pool: PoolLike): void {
  const most =
    'options' in pool &&
    typeof pool.options === 'object' &&
    pool.options !== null &&
    'max' in pool.options
      ? pool.options.max
      : undefined
  if (typeof most !== 'number' || most >= 3) return
  throw new HookledgerError(
    'HKL_CONFIG_INVALID',
    `database: the pool allows ${most} connections, at least 3 are needed (max: 3)`,
  )
}
