/**
 * `hookledger replay --dry-run --since TIME`: decides history anew under the present code, writes nothing,
 * and tells what would differ. Exit 3 when anything does.
 */
import { runConfiguredDryRun } from '../compose/dry-run.ts'
import type { DryRunDifference } from '../inbox/dry-run-compare.ts'
import type { DryRunReport } from '../inbox/dry-run.ts'
import { printableData } from '../observe/printable.ts'
import { usageError, type CommandWorld } from './command.ts'
import type { ExitCode } from './exit-codes.ts'
import type { Output } from './output.ts'
import { withDatabase } from './project.ts'
import { plural } from './table.ts'

/** As many differences as a JSON object holds; all are counted. */
const mostInJson = 1000

/** Runs it. @throws HookledgerError HKL_CLI_USAGE without a time */
export async function runDryRun(request: {
  readonly world: CommandWorld
  readonly out: Output
  readonly config: string | undefined
  readonly since: Date | undefined
}): Promise<ExitCode> {
  const { world, out, config, since } = request
  if (since === undefined)
    throw usageError('--dry-run needs --since: the time from which history is decided anew')
  const interruption = new AbortController()
  const interrupt = (): void => interruption.abort()
  process.once('SIGINT', interrupt)
  try {
    return await withDatabase(world, config, async (db, { parts }) => {
      const differences: DryRunDifference[] = []
      const report = await runConfiguredDryRun(db, parts.config, since, {
        signal: interruption.signal,
        onProgress: ({ events, orders }) =>
          out.progress(`${plural(events, 'event')}, ${plural(orders, 'order')}`),
        onDifference: (difference) => {
          if (!out.json) out.text(differenceText(printableData(difference)))
          else if (differences.length < mostInJson) differences.push(difference)
        },
      })
      out.result(out.json ? { ...report, found: differences } : report, (safe) => reportText(safe))
      return report.differences === 0 ? 0 : 3
    })
  } catch (error) {
    if (interruption.signal.aborted) return 130
    throw error
  } finally {
    process.off('SIGINT', interrupt)
  }
}

function differenceText({
  order_id: order,
  event,
  decision_id: decision,
  recorded,
  now,
  details,
}: DryRunDifference): string {
  const about = order === null ? '' : `order ${order}`
  const what = event === null ? 'the end of its history' : `${event.type} ${event.id}`
  return [
    [about, what].filter((part) => part !== '').join(', '),
    `  is:       ${recorded}${decision === null ? '' : ` (decision ${decision})`}`,
    `  would be: ${now}`,
    ...details.map((each) => `    ${each}`),
  ].join('\n')
}

function reportText(report: DryRunReport): string {
  const { events, orders, differences, not_run: notRun, expired, unanswered } = report
  const more = expired.events > expired.examples.length ? ', …' : ''
  return [
    `${plural(events, 'event')} and ${plural(orders, 'order')} since ${report.since} decided again; nothing was written`,
    ...(expired.events === 0
      ? []
      : [
          `${plural(expired.events, 'event')} without a body (payload expired) count as they were decided: ${expired.examples.join(', ')}${more}`,
        ]),
    ...(unanswered.events === 0
      ? []
      : [
          `${plural(unanswered.events, 'event')} whose provider's answer is not kept count as they were decided: ${unanswered.examples.join(', ')}${unanswered.events > unanswered.examples.length ? ', …' : ''}`,
        ]),
    ...(notRun === 0 ? [] : [`${plural(notRun, 'event')} of plain handlers, which were not run`]),
    differences === 0
      ? 'the present code decides the same'
      : `${plural(differences, 'difference')} under the present code`,
  ].join('\n')
}
