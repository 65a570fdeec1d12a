/** `hookledger doctor`: what the promises rest on, asked of the live server. Exit 3 when something is found. */
import type { CommandDef } from 'citty'
import type { Diagnosis } from '../postgres/diagnosis.ts'
import { diagnose } from '../postgres/doctor.ts'
import type { Database } from '../postgres/executor.ts'
import { newestMigration, schemaVersion } from '../postgres/migrate.ts'
import { adviseRoles } from '../postgres/role-advice.ts'
import { destinationProblems } from '../report/destination-problems.ts'
import { destinationStatus } from '../report/destinations.ts'
import { command } from './command.ts'
import type { Style } from './output.ts'
import { connect, openProject, type Project } from './project.ts'
import { plural } from './table.ts'

interface DoctorReport {
  readonly healthy: boolean
  readonly accept_durability: string | null
  readonly found: readonly Diagnosis[]
  /** What is wrong with destinations, one line each. */
  readonly destinations: readonly string[]
  /** What the roles leave open (P9): told, and no reason to fail. */
  readonly roles: readonly string[]
}

/** The command. */
export const doctorCommand: CommandDef = command(
  {
    name: 'doctor',
    description: 'Checks the server, the schema and its indexes; exit 3 when something is found',
  },
  {},
  async ({ args, out, world }) => {
    const project = await openProject(world, args.config)
    const { db, close } = connect(world, project)
    try {
      const { limits, environment, acceptDurability: accepted } = project.parts.config
      const found = await diagnose(db, { lockTimeoutMs: limits.lockTimeoutMs, environment })
      const open = found.filter((each) => each.acceptable !== true || accepted === undefined)
      const destinations = await diagnoseDestinations(db, project)
      const report: DoctorReport = {
        healthy: open.length === 0 && destinations.length === 0,
        accept_durability: accepted ?? null,
        found,
        destinations,
        roles: await adviseRoles(db),
      }
      out.result(report, doctorText)
      return report.healthy ? 0 : 3
    } finally {
      await close()
    }
  },
)

/** A schema that is not there yet has no operations to tell of. */
async function diagnoseDestinations(db: Database, { parts }: Project): Promise<string[]> {
  const present = (await schemaVersion(db)) < newestMigration ? [] : await destinationStatus(db)
  return destinationProblems(parts.config.destinations, present)
}

function doctorText(report: DoctorReport, style: Style): string {
  const lines = report.found.map((each) => {
    if (each.acceptable === true && report.accept_durability !== null)
      return `${style.warning('accepted')} ${each.message}`
    return `${each.breaks === undefined ? style.warning('look at') : style.bad(`breaks ${each.breaks}`)} ${each.message}`
  })
  const reason =
    report.accept_durability === null ? [] : [`acceptDurability: ${report.accept_durability}`]
  const verdict = report.healthy
    ? style.good('nothing to do')
    : style.bad(plural(report.found.length + report.destinations.length, 'finding'))
  const roles = report.roles.map((line) => `${style.faint('by the way')} ${line}`)
  const destinations = report.destinations.map((line) => `${style.warning('look at')} ${line}`)
  return [...lines, ...destinations, ...reason, ...roles, verdict].join('\n')
}
