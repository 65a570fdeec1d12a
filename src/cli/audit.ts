/** `hookledger audit`: every promise as a query. Exit 3 when one of them is broken. */
import type { CommandDef } from 'citty'
import { promiseNames } from '../report/audit-check.ts'
import { audit, defaultAuditLimits, type AuditReport, type AuditResult } from '../report/audit.ts'
import { command, usageError } from './command.ts'
import type { Style } from './output.ts'
import { withDatabase } from './project.ts'
import { duration, plural } from './table.ts'

/** The command. */
export const auditCommand: CommandDef = command(
  { name: 'audit', description: 'Checks every promise by a query; exit 3 when one is broken' },
  {
    bodies: {
      type: 'string',
      description: 'How many stored bodies and requests are compared with their hash (1000)',
      valueHint: 'N',
    },
  },
  async ({ args, out, world }) =>
    withDatabase(world, args.config, async (db, { parts }) => {
      const limits = {
        ...defaultAuditLimits,
        pendingMs: parts.config.limits.deferralMs,
        ...(args.bodies === undefined ? {} : { bodies: wholeNumber(args.bodies) }),
      }
      const report = await audit(db, limits, (result) =>
        out.progress(`audit: ${result.promise} ${result.check}`),
      )
      out.result(report, auditText)
      return report.holds ? 0 : 3
    }),
)

function wholeNumber(text: string): number {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 0)
    throw usageError(`--bodies must be a whole number, not "${text}"`)
  return value
}

/** The report for a person: a line a promise, and every violation. */
export function auditText(report: AuditReport, style: Style): string {
  const lines = Object.entries(promiseNames).flatMap(([promise, title]) => {
    const checks = report.checks.filter((each) => each.promise === promise)
    const broken = checks.filter((each) => !each.holds)
    const time = duration(checks.reduce((sum, each) => sum + each.duration_ms, 0))
    const verdict = broken.length === 0 ? style.good('holds ') : style.bad('BROKEN')
    return [
      `${promise} ${verdict} ${title} ${style.faint(`(${plural(checks.length, 'check')}, ${time})`)}`,
      ...broken.flatMap((each) => brokenLines(each, style)),
      ...checks.flatMap((each) => (each.known === 0 ? [] : [knownLine(each, style)])),
      ...checks.flatMap((each) =>
        each.skipped === null
          ? []
          : [`   ${style.warning('not checked')} ${each.check}: ${each.skipped}`],
      ),
    ]
  })
  const broken = report.checks.filter((each) => !each.holds).length
  return [
    ...lines,
    report.holds
      ? style.good('every promise holds')
      : style.bad(`${plural(broken, 'check')} failed`),
  ].join('\n')
}

/** What reconciliation found first is no news, and the finding calls a person when its time is over. */
function knownLine({ check, known }: AuditResult, style: Style): string {
  return `   ${style.warning('known')} ${check}: ${plural(known, 'row')} that findings answer for, open or dismissed until a day: hookledger findings list --state all`
}

function brokenLines(result: AuditResult, style: Style): string[] {
  const more = result.violations - result.examples.length
  return [
    `   ${style.bad(result.check)}: ${plural(result.violations, 'violation')} of "${result.says}"`,
    ...result.examples.map(({ key, detail }) => `      ${key}: ${detail}`),
    ...(more > 0 ? [`      and ${more} more`] : []),
  ]
}
