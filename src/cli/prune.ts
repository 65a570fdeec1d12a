/** `hookledger prune`: retention now, which workers also do by themselves. */
import type { CommandDef } from 'citty'
import { runUpkeep, type UpkeepReport } from '../compose/upkeep.ts'
import { command } from './command.ts'
import { withDatabase } from './project.ts'

/** What pruning did; the keys are what `--json` prints. */
interface PruneReport {
  readonly partitions_made: number
  readonly partitions_dropped: number
  /** Bodies of unfinished events that were moved aside before their day was dropped. */
  readonly bodies_held: number
  readonly identities_dropped: number
  readonly rejections_dropped: number
  /** Requests of finished operations, past the time in which their key is known. */
  readonly requests_dropped: number
  /** Answers of providers, past the time that bodies are kept. */
  readonly evidence_dropped: number
}

/** The command. */
export const pruneCommand: CommandDef = command(
  { name: 'prune', description: 'Drops what is past its retention; never what is unfinished' },
  {},
  async ({ args, out, world }) =>
    withDatabase(world, args.config, async (db, { parts }) => {
      out.result(reportOf(await runUpkeep(db, parts.config.limits)), pruneText)
      return 0
    }),
)

function reportOf(report: UpkeepReport): PruneReport {
  return {
    partitions_made: report.partitionsMade,
    partitions_dropped: report.partitionsDropped,
    bodies_held: report.bodiesHeld,
    identities_dropped: report.identitiesDropped,
    rejections_dropped: report.rejectionsDropped,
    requests_dropped: report.requestsDropped,
    evidence_dropped: report.evidenceDropped,
  }
}

function pruneText(report: PruneReport): string {
  return [
    `${report.partitions_made} day partitions made, ${report.partitions_dropped} dropped with their bodies`,
    `${report.bodies_held} bodies of unfinished events were moved aside first`,
    `${report.identities_dropped} identities and ${report.rejections_dropped} counts of refusals dropped`,
    `${report.requests_dropped} requests of finished operations and ${report.evidence_dropped} answers of providers dropped; their hashes stay`,
  ].join('\n')
}
