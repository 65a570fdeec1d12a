/**
 * `hookledger migrate`: brings the schema to the newest version. Forward only, safe to race, and safe
 * beside a running older version of the same major.
 */
import type { CommandDef } from 'citty'
import { migrate, newestMigration, pendingMigrations, schemaVersion } from '../postgres/migrate.ts'
import { command, usageError } from './command.ts'
import { connect, openProject } from './project.ts'
import { plural } from './table.ts'

/** The command. */
export const migrateCommand: CommandDef = command(
  { name: 'migrate', description: 'Makes the schema, or brings it to the newest version' },
  {
    'dry-run': { type: 'boolean', description: 'Say what would run, and run nothing; exit 3 when something would' },
    print: { type: 'boolean', description: 'Print the SQL that would run, and run nothing' },
    environment: { type: 'enum', description: 'What the schema holds for ever; the configuration says it otherwise', options: ['live', 'test'] },
  },
  async ({ args, out, world }) => {
    const project = await openProject(world, args.config)
    const { config } = project.parts
    const { db, close } = connect(world, project)
    try {
      if (args.environment !== undefined && args.environment !== config.environment) {
        throw usageError(`--environment ${args.environment}: the configuration's sources are ${config.environment}`)
      }
      if (args.print === true || args['dry-run'] === true) {
        const pending = await pendingMigrations(db)
        const report = { schema: db.schemaName, version: await schemaVersion(db), newest: newestMigration, pending: pending.map((each) => each.name) }
        if (args.print === true && !out.json) {
          out.text(pending.map((each) => `-- ${each.name}\n${each.sql.trim()}\n`).join('\n'))
        } else if (args.print === true) {
          out.result({ ...report, sql: pending.map((each) => each.sql) }, () => '')
        } else {
          out.result(report, (safe) =>
            safe.pending.length === 0
              ? `schema ${safe.schema} is current, at migration ${safe.version}`
              : `${plural(safe.pending.length, 'migration')} would run: ${safe.pending.join(', ')}`,
          )
        }
        return args['dry-run'] === true && pending.length > 0 ? 3 : 0
      }
      const report = await migrate(db, { environment: config.environment, partitionsAheadDays: config.limits.partitionsAheadDays })
      out.result({ schema: db.schemaName, environment: config.environment, ...report }, (safe) =>
        safe.applied.length === 0
          ? `schema ${safe.schema} (${safe.environment}) was current, at migration ${safe.version}`
          : `schema ${safe.schema} (${safe.environment}) is at migration ${safe.version}: ${safe.applied.join(', ')}`,
      )
      return 0
    } finally {
      await close()
    }
  },
)
