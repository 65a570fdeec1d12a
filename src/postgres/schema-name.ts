/**
 * The schema's name is the only identifier that comes from outside; everything else in SQL is bound.
 */
import { HookledgerError } from '../core/errors.ts'

/** The schema that is used when none is configured. */
export const defaultSchema = 'hookledger'

/**
 * The schema as a quoted prefix (`"hookledger".`).
 *
 * @throws HookledgerError HKL_SCHEMA_NAME unless it is a plain lower-case identifier.
 */
export function schemaPrefix(name: string): string {
  if (!/^[a-z_][a-z0-9_]{0,62}$/.test(name) || name.startsWith('pg_')) {
    throw new HookledgerError(
      'HKL_SCHEMA_NAME',
      'the schema (HOOKLEDGER_SCHEMA) must be a lower-case identifier of at most 63 letters, digits and underscores',
    )
  }
  return `"${name}".`
}
