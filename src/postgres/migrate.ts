/**
 * Migrations go forward only. Each one runs in a transaction of its own that takes the migration
 * table's lock first, so that racing starters wait for one another and the loser finds the work done;
 * a starter that dies leaves nothing half applied. The environment is fixed by the first one.
 */
import { HookledgerError } from '../core/errors.ts'
import type { Environment } from '../workflow/event.ts'
import type { Database, Executor } from './executor.ts'
import { retryOnLocks } from './lock-retry.ts'
import { migrations } from './migrations.generated.ts'
import { adviseRoles } from './role-advice.ts'
import { mayActAs, renewRights, rolesExist } from './roles.ts'
import { schemaPrefix } from './schema-name.ts'
import { sqlstateOf } from './sqlstate.ts'

/** What `migrate` did. */
export interface MigrateReport {
  readonly applied: readonly string[]
  readonly version: number
  /** What does not hold with the roles as they are (P9), in sentences. */
  readonly advice: readonly string[]
}

/** A migration, as it stands in migrations/. */
export interface Migration {
  readonly id: number
  readonly name: string
  readonly sql: string
}

/** The newest migration that this code knows. */
export const newestMigration: number = migrations.at(-1)?.id ?? 0

/**
 * Brings the schema to the newest version, and fixes its environment if it is new. Any number of
 * processes may do this at once, beside running ones: what is applied already is not touched.
 *
 * @throws HookledgerError HKL_SCHEMA_NEWER when the schema has left this code behind,
 * HKL_CONFIG_ENVIRONMENT when it holds the other environment
 */
export async function migrate(
  db: Database,
  options: { readonly environment: Environment; readonly partitionsAheadDays?: number },
): Promise<MigrateReport> {
  await requireRunnable(db)
  const version = await schemaVersion(db)
  const applied: string[] = []
  for (const migration of migrations) {
    if (migration.id <= version) continue
    if (await retryOnLocks(() => applyOne(db, migration))) applied.push(migration.name)
  }
  await fixEnvironment(db, options.environment)
  if (applied.length > 0 && (await rolesExist(db))) await renewRights(db)
  await db.query({
    text: `select ${db.schema}make_payload_partitions($1::integer)`,
    values: [options.partitionsAheadDays ?? 35],
  })
  return { applied, version: await schemaVersion(db), advice: await adviseRoles(db) }
}

/**
 * Applies one migration in one transaction. It waits for another starter, whose work it then finds
 * done; for the tables themselves it waits a moment only, because inserts wait behind it meanwhile.
 */
async function applyOne(db: Database, migration: Migration): Promise<boolean> {
  return db.transaction(
    async (tx) => {
      for (const text of await missingBase(tx, db)) await tx.query({ text })
      await becomeOwner(tx, db.schemaName)
      await tx.query({ text: `lock table ${db.schema}migrations in share row exclusive mode` })
      const done = await tx.query({
        text: `select 1 from ${db.schema}migrations where migration_id = $1`,
        values: [migration.id],
      })
      if (done.length > 0) return false
      await tx.query({ text: `set local lock_timeout = '200ms'` })
      await runScript(tx, migrationSql(migration.sql, db.schemaName))
      await tx.query({ text: recordSql(db.schema, migration) })
      return true
    },
    { setup: `set local statement_timeout = 0; set local lock_timeout = '5s'` },
  )
}

/** Where nothing of ours is yet. Looked at first: making a schema needs a right that a later run may lack. */
async function missingBase(tx: Executor, db: Database): Promise<string[]> {
  const [there] = await tx.query<{ schema: boolean; migrations: boolean }>({
    text: `select to_regnamespace($1) is not null as schema, to_regclass($2) is not null as migrations`,
    values: [db.schema.slice(0, -1), `${db.schema}migrations`],
  })
  const [schema, table] = baseSql(db.schema)
  return [
    ...(there?.schema === true ? [] : [schema]),
    ...(there?.migrations === true ? [] : [table]),
  ]
}

function baseSql(schema: string): readonly [schema: string, migrations: string] {
  return [
    `create schema if not exists ${schema.slice(0, -1)}`,
    `create table if not exists ${schema}migrations (
      migration_id integer not null,
      name text not null,
      -- the oldest code, by its newest migration, that still runs on the schema after this one
      runs_from integer not null default 0,
      applied_at timestamptz not null default now(),
      constraint migrations_pkey primary key (migration_id))`,
  ]
}

/** New objects belong to whoever owns the schema, not to the administrator who happens to migrate. */
async function becomeOwner(tx: Executor, schemaName: string): Promise<void> {
  const [owner] = await tx.query<{ name: string }>({
    text: `select quote_ident(r.rolname) as name from pg_namespace n join pg_roles r on r.oid = n.nspowner
      where n.nspname = $1 and r.rolname <> current_user and r.rolname not like 'pg\\_%' and pg_has_role(current_user, r.oid, ${mayActAs})`,
    values: [schemaName],
  })
  if (owner !== undefined) await tx.query({ text: `set local role ${owner.name}` })
}

/** A migration says in a comment of its own when code older than it can no longer run. */
function runsFrom(migration: Migration): number {
  return /^-- older code cannot run on this$/m.test(migration.sql) ? migration.id : 0
}

function recordSql(schema: string, migration: Migration): string {
  return `insert into ${schema}migrations (migration_id, name, runs_from) values (${migration.id}, '${migration.name}', ${runsFrom(migration)})`
}

/** A migration's statements for one schema. */
export function migrationSql(sql: string, schemaName: string): string {
  return sql.replaceAll('/* schema */', schemaPrefix(schemaName))
}

/**
 * What `migrate --print` shows: what has not run yet, each a transaction that records itself, so that
 * somebody may run it by hand. With `environment` the last one fixes that too.
 */
export async function pendingMigrations(
  db: Database,
  environment?: Environment,
): Promise<readonly { readonly name: string; readonly sql: string }[]> {
  const version = await schemaVersion(db)
  const pending = migrations.filter((migration) => migration.id > version)
  return pending.map((migration, index) => ({
    name: migration.name,
    sql: [
      'begin;',
      ...(migration.id === 1 ? baseSql(db.schema).map((statement) => `${statement};`) : []),
      migrationSql(migration.sql, db.schemaName).trim(),
      `${recordSql(db.schema, migration)};`,
      ...(environment !== undefined && index === pending.length - 1
        ? [
            `insert into ${db.schema}installation (environment) values ('${environment}') on conflict (one_row) do nothing;`,
          ]
        : []),
      'commit;',
      '',
    ].join('\n'),
  }))
}

/** The newest migration that the schema has; 0 when there is no schema of ours. */
export async function schemaVersion(db: Database): Promise<number> {
  return (await readVersions(db)).version
}

/**
 * The schema's newest migration, and the oldest code that still runs on it.
 */
export async function readVersions(
  db: Database,
): Promise<{ readonly version: number; readonly runsFrom: number }> {
  try {
    const [row] = await db.query<{ version: number | null; runs_from: number | null }>({
      text: `select max(migration_id) as version, max(runs_from) as runs_from from ${db.schema}migrations`,
    })
    return { version: row?.version ?? 0, runsFrom: row?.runs_from ?? 0 }
  } catch (error) {
    if (['42P01', '3F000'].includes(sqlstateOf(error) ?? '')) return { version: 0, runsFrom: 0 }
    throw error
  }
}

/** @throws HookledgerError HKL_SCHEMA_NEWER */
async function requireRunnable(db: Database): Promise<void> {
  const { version, runsFrom } = await readVersions(db)
  if (runsFrom > newestMigration)
    throw new HookledgerError('HKL_SCHEMA_NEWER', newerMessage(db.schemaName, version))
}

/** Why code that is too old for the schema must not run. */
export function newerMessage(schemaName: string, version: number): string {
  return `schema ${schemaName} is at migration ${version}, and code that knows only ${newestMigration} cannot run on it any more: deploy the newer version`
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
  const fixed = await schemaEnvironment(db)
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
export async function installation(
  db: Pick<Database, 'query' | 'schema' | 'schemaName'>,
): Promise<Installation> {
  try {
    const [row] = await db.query<{
      installation_id: string
      environment: Environment
      secret: Uint8Array
    }>({
      text: `select installation_id, environment, secret from ${db.schema}installation`,
    })
    if (row !== undefined)
      return { id: row.installation_id, environment: row.environment, secret: row.secret }
  } catch (error) {
    if (!['42P01', '3F000'].includes(sqlstateOf(error) ?? '')) throw error
  }
  throw new HookledgerError(
    'HKL_SCHEMA_MISSING',
    `the database has no schema ${db.schemaName} of Hookledger: run "hookledger migrate"`,
  )
}

/** The environment that the schema holds; any role may ask. Null before `migrate` has fixed it. */
export async function schemaEnvironment(db: Database): Promise<Environment | null> {
  const [row] = await db.query<{ environment: Environment }>({
    text: `select environment from ${db.schema}installation`,
  })
  return row?.environment ?? null
}
