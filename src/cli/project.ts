/**
 * What most commands begin with: the configuration, and the database that it, DATABASE_URL or a
 * running `dev` names. What is opened here is closed here.
 */
import { HookledgerError } from '../core/errors.ts'
import { partsOf } from '../hookledger.ts'
import type { Database } from '../postgres/executor.ts'
import { installation, newestMigration, schemaVersion } from '../postgres/migrate.ts'
import { createDatabase, createPool } from '../postgres/pool.ts'
import { findConfigFile, loadConfig, type LoadedConfig } from './config-file.ts'
import { developmentSecret, findRunningDev, type DevFile } from './dev-file.ts'
import type { CommandWorld } from './command.ts'
import type { ExitCode } from './exit-codes.ts'

/** The wired parts behind a configuration. */
export type Parts = ReturnType<typeof partsOf>

/** An opened configuration. */
export interface Project {
  readonly file: string
  readonly loaded: LoadedConfig
  readonly parts: Parts
  /** The running `dev` whose database is used; null where DATABASE_URL or the configuration names one. */
  readonly dev: DevFile | null
}

/** Milliseconds a statement of a command may take: reports read whole tables. */
const reportTimeoutMs = 600_000

/**
 * Loads the configuration. DATABASE_URL, or the database of a running `dev`, is given to the
 * environment first, so that a pool that the configuration makes for itself finds it too.
 */
export async function openProject(
  world: CommandWorld,
  config: string | undefined,
): Promise<Project> {
  const { environment, cwd } = world
  const file = findConfigFile(cwd, config)
  const dev = environment.databaseUrl === undefined ? findRunningDev(environment.dataDir) : null
  void environment.schema // said before the configuration is loaded, with the variable's name
  if (dev !== null) {
    environment.provide('DATABASE_URL', dev.databaseUrl)
    environment.provide('STRIPE_API_BASE', dev.providerUrl)
    environment.provide('STRIPE_WEBHOOK_SECRET', developmentSecret)
    environment.provide('SHOP_EMAIL_URL', dev.emailUrl)
  }
  const loaded = await loadConfig(file, cwd)
  const parts = partsOf(loaded.hookledger)
  const url = dev?.databaseUrl ?? environment.databaseUrl
  if (url !== undefined) parts.useDatabase(url)
  return { file, loaded, parts, dev }
}

/** The database of a project for reports and operator acts: few connections, long statements. */
export interface ProjectDatabase {
  readonly db: Database
  close(): Promise<void>
}

/**
 * Connects to the project's database.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID when there is none
 */
export function connect(world: CommandWorld, project: Project): ProjectDatabase {
  const { parts, dev } = project
  const { database, schemaName } = parts.config
  const given = typeof database === 'string' ? database : undefined
  const url = given ?? dev?.databaseUrl ?? world.environment.databaseUrl
  if ((database !== undefined && given === undefined) || url === undefined) {
    if (database === undefined) throw noDatabase(world)
    return { db: parts.database(), close: () => parts.close() }
  }
  const pool = createPool({
    connectionString: url,
    max: 4,
    applicationName: 'hookledger-cli',
    statementTimeoutMs: reportTimeoutMs,
  })
  return { db: createDatabase(pool, schemaName), close: () => pool.end() }
}

function noDatabase(world: CommandWorld): HookledgerError {
  return new HookledgerError(
    'HKL_CONFIG_INVALID',
    `no database: set DATABASE_URL, or start "hookledger dev" first (none is running on ${world.environment.dataDir})`,
  )
}

/** Runs `work` on the database of the configuration, with its schema known to be there and current. */
export async function withDatabase(
  world: CommandWorld,
  config: string | undefined,
  work: (db: Database, project: Project) => Promise<ExitCode>,
): Promise<ExitCode> {
  const project = await openProject(world, config)
  const { db, close } = connect(world, project)
  try {
    await installation(db)
    await requireCurrent(db)
    return await work(db, project)
  } finally {
    await close()
  }
}

async function requireCurrent(db: Database): Promise<void> {
  const version = await schemaVersion(db)
  if (version >= newestMigration) return
  throw new HookledgerError(
    'HKL_SCHEMA_OLDER',
    `schema ${db.schemaName} is at migration ${version}, this command needs ${newestMigration}: run "hookledger migrate"`,
  )
}
