/**
 * Migrations go forward only. Each one runs in a transaction of its own whose first statement takes
 * the migration table's lock, so that racing starters wait for one another and the loser finds the
 * work done. The environment is fixed by the first one.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Environment } from '../workflow/event.ts'
import type { Database, Executor } from './executor.ts'
import { migrations } from './migrations.generated.ts'
import { schemaPrefix } from './schema-name.ts'
import { sqlstateOf } from './sqlstate.ts'

/** What `migrate` did. */
export interface MigrateReport {
  readonly applied: readonly string[]
  readonly version: number
}

/** The newest migration that this code knows. */
export const newestMigration: number = migrations.at(-1)?.id ?? 0

/** Brings the schema to the newest version, and fixes its environment if it is new. */
export async function migrate(
  db: Database,
  options: { readonly environment: Environment; readonly partitionsAheadDays?: number },
): Promise<MigrateReport> {
  const applied: string[] = []
  for (const migration of migrations) {
    for (let attempt = 1; ; attempt++) {
      try {
        if (await applyOne(db, migration)) applied.push(migration.name)
        break
      } catch (error) {
        // somebody else created the same thing a moment ago: look again
        const raced = ['23505', '42P06', '42P07', '42710', '40P01', '55P03'].includes(sqlstateOf(error) ?? '')
        if (!raced || attempt === 5) throw error
        await new Promise((resolve) => setTimeout(resolve, 50 * attempt))
      }
    }
  }
  await fixEnvironment(db, options.environment)
  await db.query({ text: `select ${db.schema}make_payload_partitions($1::integer)`, values: [options.partitionsAheadDays ?? 35] })
  return { applied, version: newestMigration }
}

async function applyOne(db: Database, migration: { id: number; name: string; sql: string }): Promise<boolean> {
  return db.transaction(async (tx) => {
    await tx.query({ text: `create schema if not exists ${db.schema.slice(0, -1)}` })
    await tx.query({
      text: `create table if not exists ${db.schema}migrations (
        migration_id integer not null, name text not null, applied_at timestamptz not null default now(),
        constraint migrations_pkey primary key (migration_id))`,
    })
    await tx.query({ text: `lock table ${db.schema}migrations in share row exclusive mode` })
    const done = await tx.query({ text: `select 1 from ${db.schema}migrations where migration_id = $1`, values: [migration.id] })
    if (done.length > 0) return false
    await runScript(tx, migrationSql(migration.sql, db.schemaName))
    await tx.query({ text: `insert into ${db.schema}migrations (migration_id, name) values ($1, $2)`, values: [migration.id, migration.name] })
    return true
  }, { setup: `set local statement_timeout = 0; set local lock_timeout = '10s'` })
}

/** A migration's statements for one schema. */
export function migrationSql(sql: string, schemaName: string): string {
  return sql.replaceAll('/* schema */', schemaPrefix(schemaName))
}

/** What `migrate --print` shows: the statements that have not run yet. */
export async function pendingMigrations(db: Database): Promise<readonly { readonly name: string; readonly sql: string }[]> {
  const version = await schemaVersion(db)
  return migrations
    .filter((migration) => migration.id > version)
    .map((migration) => ({ name: migration.name, sql: migrationSql(migration.sql, db.schemaName) }))
}

/** The newest migration that the schema has; 0 when there is no schema of ours. */
export async function schemaVersion(db: Database): Promise<number> {
  try {
    const [row] = await db.query<{ version: number | null }>({ text: `select max(migration_id) as version from ${db.schema}migrations` })
    return row?.version ?? 0
  } catch (error) {
    if (['42P01', '3F000'].includes(sqlstateOf(error) ?? '')) return 0
    throw error
  }
}

/** The script has no values: the driver sends it whole, as one simple message. */
async function runScript(tx: Executor, sql: string): Promise<void> {
  await tx.query({ text: sql })
}

async function fixEnvironment(db: Database, environment: Environment): Promise<void> {
  await db.query({
    text: `insert into ${db.schema}installation (environment) values ($1) on conflict (one_row) do nothing`,
    values: [environment],
  })
  const { environment: fixed } = await installation(db)
  if (fixed === environment) return
  throw new HookledgerError(
    'HKL_CONFIG_ENVIRONMENT',
    `schema ${db.schemaName} holds the ${fixed} environment, the configuration says ${environment}: use another schema (HOOKLEDGER_SCHEMA) for it`,
  )
}

/** What `migrate` fixed for ever. */
export interface Installation {
  readonly id: string
  readonly environment: Environment
  readonly secret: Uint8Array
}

/**
 * Reads the installation.
 *
 * @throws HookledgerError HKL_SCHEMA_MISSING when `migrate` has not run.
 */
export async function installation(db: Database): Promise<Installation> {
  try {
    const [row] = await db.query<{ installation_id: string; environment: Environment; secret: Uint8Array }>({
      text: `select installation_id, environment, secret from ${db.schema}installation`,
    })
    if (row !== undefined) return { id: row.installation_id, environment: row.environment, secret: row.secret }
  } catch (error) {
    if (!['42P01', '3F000'].includes(sqlstateOf(error) ?? '')) throw error
  }
  throw new HookledgerError('HKL_SCHEMA_MISSING', `the database has no schema ${db.schemaName} of Hookledger: run "hookledger migrate"`)
}
