/**
 * `hookledger migrate`: brings the schema to the newest version. Forward only, safe to race, and safe
 * beside a running older version of the same major.
 */
import type { CommandDef } from 'citty'
import type { Database } from '../postgres/executor.ts'
import { migrate, newestMigration, pendingMigrations, schemaVersion } from '../postgres/migrate.ts'
import { adviseRoles } from '../postgres/role-advice.ts'
import { makeRoles, renewRights, rolesExist, rolesSql } from '../postgres/roles.ts'
import { command, usageError } from './command.ts'
import type { ExitCode } from './exit-codes.ts'
import type { Output } from './output.ts'
import { connect, openProject, type Project } from './project.ts'
import { actorOf } from './replay.ts'
import { retireVersion } from './retire-version.ts'
import { plural } from './table.ts'

/** The command. */
export const migrateCommand: CommandDef = command(
  { name: 'migrate', description: 'Makes the schema, or brings it to the newest version' },
  {
    'dry-run': {
      type: 'boolean',
      description: 'Say what would run, and run nothing; exit 3 when something would',
    },
    print: { type: 'boolean', description: 'Print the SQL that would run, and run nothing' },
    roles: {
      type: 'boolean',
      description: 'Also make the separate roles, or print their SQL with --print',
    },
    retire: {
      type: 'string',
      description: 'Retire a version of a workflow that was rolled back',
      valueHint: 'VERSION',
    },
    environment: {
      type: 'enum',
      description: 'What the schema holds for ever, as the configuration says',
      options: ['live', 'test'],
    },
  },
  async ({ args, out, world }) => {
    const asked = [args['dry-run'], args.print, args.retire !== undefined].filter(
      (each) => each === true,
    )
    if (asked.length > 1) throw usageError('give one of --dry-run, --print and --retire')
    const project = await openProject(world, args.config)
    const { environment } = project.parts.config
    if (args.environment !== undefined && args.environment !== environment) {
      throw usageError(
        `--environment ${args.environment}: the configuration's sources are ${environment}`,
      )
    }
    if (args.print === true && args.roles === true)
      return printRoles(out, project.parts.config.schemaName)
    const { db, close } = connect(world, project)
    try {
      if (args.print === true) return await print(db, out)
      if (args['dry-run'] === true) return await plan(db, out)
      if (args.retire !== undefined) return await retire(db, out, args.retire, actorOf(world))
      return await run(db, out, project, args.roles === true)
    } finally {
      await close()
    }
  },
)

async function run(
  db: Database,
  out: Output,
  project: Project,
  withRoles: boolean,
): Promise<ExitCode> {
  const { environment, limits } = project.parts.config
  const report = await migrate(db, { environment, partitionsAheadDays: limits.partitionsAheadDays })
  const present = await rolesExist(db)
  if (withRoles) await makeRoles(db)
  else if (present) await renewRights(db)
  const separate = withRoles || present
  out.result({ schema: db.schemaName, environment, ...report, separate_roles: separate }, (safe) =>
    safe.applied.length === 0
      ? `schema ${safe.schema} (${safe.environment}) was current, at migration ${safe.version}`
      : `schema ${safe.schema} (${safe.environment}) is at migration ${safe.version}: ${safe.applied.join(', ')}`,
  )
  if (separate)
    out.note(
      'separate roles: give those that log in a password, and each part its own DATABASE_URL',
    )
  for (const advice of await adviseRoles(db)) out.note(advice)
  return 0
}

async function plan(db: Database, out: Output): Promise<ExitCode> {
  const pending = (await pendingMigrations(db)).map((each) => each.name)
  const report = {
    schema: db.schemaName,
    version: await schemaVersion(db),
    newest: newestMigration,
    pending,
  }
  out.result(report, (safe) =>
    safe.pending.length === 0
      ? `schema ${safe.schema} is current, at migration ${safe.version}`
      : `${plural(safe.pending.length, 'migration')} would run: ${safe.pending.join(', ')}`,
  )
  return pending.length === 0 ? 0 : 3
}

async function print(db: Database, out: Output): Promise<ExitCode> {
  const pending = await pendingMigrations(db)
  if (out.json) out.rows(pending, () => '')
  else out.text(pending.map((each) => `-- ${each.name}\n${each.sql.trim()}\n`).join('\n'))
  return 0
}

function printRoles(out: Output, schemaName: string): ExitCode {
  const sql = rolesSql(schemaName)
  if (out.json) out.result({ schema: schemaName, sql }, () => '')
  else out.text(sql)
  return 0
}

async function retire(
  db: Database,
  out: Output,
  version: string,
  actor: string,
): Promise<ExitCode> {
  const workflows = await retireVersion(db, version, actor)
  out.result(
    { version, workflows },
    (safe) =>
      `version ${safe.version} of ${safe.workflows.join(', ')} is retired: older versions are the newest again`,
  )
  return 0
}
