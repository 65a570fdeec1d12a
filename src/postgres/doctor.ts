/**
 * What the promises rest on, asked of the live server: unique indexes that really enforce, settings
 * that really flush, a version that is new enough. The start refuses what breaks a promise; `doctor`
 * also tells what only deserves a look.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Environment } from '../workflow/event.ts'
import type { Diagnosis } from './diagnosis.ts'
import type { Database } from './executor.ts'
import { newerMessage, newestMigration, readVersions, schemaEnvironment } from './migrate.ts'
import { diagnoseSchema } from './schema-checks.ts'
import { diagnoseHorizon, diagnoseServer } from './server-checks.ts'

export type { Diagnosis } from './diagnosis.ts'
export { promisedIndexes } from './schema-checks.ts'

/** What to compare with. */
export interface DiagnoseOptions {
  /** A worker's lock timeout, which must be shorter than the server's deadlock timeout. */
  readonly lockTimeoutMs?: number
  /** The environment that the configuration says. */
  readonly environment?: Environment
  /** How long a transaction may be open before it is told, in seconds. Default 3600. */
  readonly heldHorizonSeconds?: number
}

/** Everything that is wrong or worth a look, worst first. */
export async function diagnose(db: Database, options: DiagnoseOptions = {}): Promise<Diagnosis[]> {
  const found = [
    ...(await diagnoseServer(db, options.lockTimeoutMs)),
    ...(await diagnoseContents(db, options)),
  ]
  return found.sort((a, b) => Number(a.breaks === undefined) - Number(b.breaks === undefined))
}

async function diagnoseContents(db: Database, options: DiagnoseOptions): Promise<Diagnosis[]> {
  const { version, runsFrom } = await readVersions(db)
  const name = db.schemaName
  if (version === 0) {
    return [
      {
        code: 'HKL_SCHEMA_MISSING',
        message: `there is no schema ${name} of Hookledger: run "hookledger migrate"`,
        breaks: 'all',
      },
    ]
  }
  if (version < newestMigration) {
    const message = `schema ${name} is at migration ${version}, this code needs ${newestMigration}: run "hookledger migrate"`
    return [{ code: 'HKL_SCHEMA_OLDER', message, breaks: 'all' }]
  }
  if (runsFrom > newestMigration)
    return [{ code: 'HKL_SCHEMA_NEWER', message: newerMessage(name, version), breaks: 'all' }]
  const newer: Diagnosis[] =
    version === newestMigration
      ? []
      : [
          {
            code: 'advice',
            message: `schema ${name} is at migration ${version}, newer than this code (${newestMigration}): it works on, deploy the newer version soon`,
          },
        ]
  return [
    ...newer,
    ...(await diagnoseEnvironment(db, options.environment)),
    ...(await diagnoseSchema(db)),
    ...(await diagnosePartitions(db)),
    ...(await diagnoseHorizon(db, options.heldHorizonSeconds ?? 3600)),
  ]
}

/**
 * Refuses to start on what breaks a promise.
 *
 * @returns messages that are worth a warning
 * @throws HookledgerError with the first diagnosis that breaks a promise
 */
export async function requireHealthy(
  db: Database,
  options: DiagnoseOptions & { readonly acceptDurability?: string | undefined },
): Promise<string[]> {
  const warnings: string[] = []
  for (const each of await diagnose(db, options)) {
    if (each.breaks === undefined || each.code === 'advice') warnings.push(each.message)
    else if (each.acceptable === true && options.acceptDurability !== undefined) {
      warnings.push(`${each.message} (accepted: ${options.acceptDurability})`)
    } else throw new HookledgerError(each.code, each.message)
  }
  return warnings
}

async function diagnoseEnvironment(
  db: Database,
  expected: Environment | undefined,
): Promise<Diagnosis[]> {
  const fixed = await schemaEnvironment(db)
  const { schemaName } = db
  if (fixed === null) {
    const message = `schema ${schemaName} does not say yet which environment it holds: run "hookledger migrate"`
    return [{ code: 'HKL_SCHEMA_OLDER', message, breaks: 'all' }]
  }
  if (expected === undefined || fixed === expected) return []
  const message = `schema ${schemaName} holds the ${fixed} environment, the configuration's sources are ${expected}: use another schema (HOOKLEDGER_SCHEMA)`
  return [{ code: 'HKL_CONFIG_ENVIRONMENT', message, breaks: 'all' }]
}

async function diagnosePartitions(db: Database): Promise<Diagnosis[]> {
  const [state] = await db.query<{ days_ahead: number; has_strays: boolean }>({
    text: `select days_ahead, has_strays from ${db.schema}payload_state()`,
  })
  const found: Diagnosis[] = []
  const days = state?.days_ahead ?? 0
  if (days < 7)
    found.push({
      code: 'advice',
      message: `${days} day partitions for payloads are left: run "hookledger prune"`,
    })
  if (state?.has_strays === true)
    found.push({
      code: 'advice',
      message: 'payloads lie in the default partition: run "hookledger prune"',
    })
  return found
}
