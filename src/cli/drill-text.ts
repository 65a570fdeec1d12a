/** The report of a drill for people. */
import type { DrillReport, FaultReport } from '../drill/drill-report.ts'
import type { Style } from './output.ts'
import { duration, plural } from './table.ts'

/** How many of what was left out are named. */
const mostNamed = 30

/** The report as text. */
export function drillText(report: DrillReport, style: Style): string {
  const { promises, faults, cases, recovery, left_out: left, not_a_release_decision: no } = report
  const plays = Object.values(report.in_memory).reduce((sum, count) => sum + count, 0)
  return [
    ...promises.map(({ id, title, holds, cases: count, not_applicable: none }) => {
      const word = !holds
        ? style.bad('BROKEN')
        : count > 0
          ? style.good('holds ')
          : none === null
            ? style.warning('no case')
            : style.faint('none   ')
      const why = count > 0 || none === null ? plural(count, 'case') : none
      return `${id.padEnd(3)} ${word} ${title} ${style.faint(`(${why})`)}`
    }),
    ...faults.flatMap((fault) => faultLines(fault, style)),
    ...(recovery.length === 0
      ? []
      : ['', 'recovery, from the end of the fault until nothing was left to do:']),
    ...recovery.map(
      ({ kind, cases: count, median_ms: median, longest_ms: longest }) =>
        `  ${kind}: ${duration(median)} in the middle, ${duration(longest)} at most (${plural(count, 'case')})`,
    ),
    '',
    `${plural(cases.length, 'case')} with processes and a database, ${plural(plays, 'play')} in memory, in ${duration(report.took_ms)}, seed ${report.seed}`,
    report.go ? style.good('GO: everything that ran held') : style.bad(`NO GO: ${verdict(report)}`),
    ...(no === null ? [] : [`${style.warning('not a release decision')}: ${no}`]),
    ...(left.length === 0
      ? []
      : [
          `left out: ${left.slice(0, mostNamed).join(', ')}${left.length > mostNamed ? `, and ${left.length - mostNamed} more` : ''}`,
        ]),
  ].join('\n')
}

function verdict({ faults, promises }: DrillReport): string {
  if (faults.length > 0) return `${plural(faults.length, 'fault')}`
  const without = promises.filter(({ cases, not_applicable: none }) => cases === 0 && none === null)
  return `no case put ${without.map(({ id }) => id).join(', ')} to the test`
}

function faultLines(fault: FaultReport, style: Style): string[] {
  const { cases, schedule, replay } = fault
  return [
    '',
    `${style.bad(fault.fault)} (${fault.promise}, ${plural(cases, 'case')}): ${fault.detail}`,
    `  first seen in ${fault.case}`,
    ...(schedule.length === 0 ? [] : ['  smallest schedule that shows it:']),
    ...schedule.map((line, at) => `    ${at + 1}. ${line}`),
    ...(replay === null ? [] : [`  again: ${replay}`]),
  ]
}
