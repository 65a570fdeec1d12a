/** `hookledger prune`: retention now, which workers also do by themselves. */
import type { CommandDef } from 'citty'
import { prune, type PruneReport } from '../inbox/prune.ts'
import { command } from './command.ts'
import { withDatabase } from './project.ts'

/** The command. */
export const pruneCommand: CommandDef = command(
  { name: 'prune', description: 'Drops what is past its retention; never what is unfinished' },
  {},
  async ({ args, out, world }) =>
    withDatabase(world, args.config, async (db, { parts }) => {
      out.result(await prune(db, parts.config.limits), pruneText)
      return 0
    }),
)

function pruneText(report: PruneReport): string {
  return [
    `${report.partitions_made} day partitions made, ${report.partitions_dropped} dropped with their bodies`,
    `${report.bodies_held} bodies of unfinished events are kept aside`,
    `${report.identities_dropped} identities and ${report.rejections_dropped} counts of refusals dropped`,
  ].join('\n')
}
