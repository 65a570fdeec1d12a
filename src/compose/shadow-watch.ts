/**
 * Keeps the list of differences fresh while something is in shadow: a worker compares now and then, whichever
 * of several comes first. A failure of the app's function never stops a worker.
 */
import type { Signals } from '../core/signals.ts'
import type { Database } from '../postgres/executor.ts'
import { describeDatabaseError } from '../postgres/sqlstate.ts'
import type { ResolvedConfig } from './options.ts'
import { compareShadow } from './shadow.ts'

/** Minutes between two comparisons, whoever makes them. */
const everyMinutes = 10

/** Compares where the last comparison is long enough ago; resolves whether it did. */
export async function watchShadow(
  db: Database,
  config: ResolvedConfig,
  signals: Signals,
): Promise<boolean> {
  if (config.shadow.size === 0 || config.appEntitlements === undefined) return false
  try {
    if (!(await isDue(db))) return false
    await compareShadow(db, config)
    return true
  } catch (error) {
    const message = error instanceof Error ? error.message : describeDatabaseError(error)
    signals.emit('worker.loop.failed', { loop: 'shadow', message })
    return false
  }
}

async function isDue(db: Database): Promise<boolean> {
  const rows = await db.query({
    text: `select 1 from ${db.schema}shadow_comparisons
      where compared_at > now() - interval '${everyMinutes} minutes'`,
  })
  return rows.length === 0
}
