/** The one place where the library reads the environment. */

/** A variable's value; an empty one counts as unset. */
export function environmentVariable(
  name: 'DATABASE_URL' | 'HOOKLEDGER_SCHEMA',
): string | undefined {
  const value = process.env[name]
  return value === undefined || value === '' ? undefined : value
}
