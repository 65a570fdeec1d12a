/** The report of a drill as one page that needs nothing else: go or no go, and everything that it rests on. */
import type { DrillReport, FaultReport } from '../drill-report.ts'
import { escaped } from './drill-junit.ts'

const style = `
  :root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
  body { margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
  h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
  .go { background: #0a7d3322; border-left: .4rem solid #0a7d33; padding: .6rem 1rem }
  .no { background: #b4232322; border-left: .4rem solid #b42323; padding: .6rem 1rem }
  table { border-collapse: collapse; width: 100% }
  th, td { text-align: left; padding: .25rem .75rem .25rem 0; border-bottom: 1px solid #8884; vertical-align: top }
  .bad { color: #b42323; font-weight: 600 } .good { color: #0a7d33; font-weight: 600 }
  code, pre { font-family: ui-monospace, monospace; font-size: .9em }
  pre { overflow-x: auto; background: #8881; padding: .6rem } .wide { overflow-x: auto }`

/** The page. */
export function drillHtml(report: DrillReport): string {
  const { go, not_a_release_decision: no, faults } = report
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>hookledger drill: ${go ? 'go' : 'no go'}</title>
<style>${style}</style>
</head>
<body>
<h1>hookledger drill</h1>
<p class="${go ? 'go' : 'no'}"><strong>${go ? 'Go' : 'No go'}</strong>: ${escaped(verdict(report))}${no === null ? '' : `<br>Not a release decision: ${escaped(no)}`}</p>
<p>${report.cases.length} cases with processes and a database, seed ${report.seed}, ${(report.took_ms / 1000).toFixed(1)} s.</p>
<h2>Promises</h2>
${promisesTable(report)}
${faults.length === 0 ? '' : `<h2>Faults</h2>\n${faults.map(faultSection).join('\n')}`}
${recoveryTable(report)}
${leftOut(report)}
<h2>Cases</h2>
${casesTable(report)}
</body>
</html>
`
}

function verdict({ go, faults, promises }: DrillReport): string {
  if (go) return 'everything that ran held, and every promise had a case'
  if (faults.length > 0)
    return `${faults.length} faults: ${faults.map(({ fault }) => fault).join(', ')}`
  const without = promises.filter(({ cases, not_applicable: none }) => cases === 0 && none === null)
  return `no case put ${without.map(({ id }) => id).join(', ')} to the test`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (tag: 'th' | 'td', cells: readonly string[]): string =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`
  return `<div class="wide"><table>\n${[line('th', head), ...rows.map((row) => line('td', row))].join('\n')}\n</table></div>`
}

function promisesTable({ promises }: DrillReport): string {
  return table(
    ['', 'promise', 'holds', 'cases', ''],
    promises.map(({ id, title, holds, cases, faults, not_applicable: none }) => [
      id,
      escaped(title),
      holds
        ? cases > 0
          ? '<span class="good">yes</span>'
          : 'not asked'
        : '<span class="bad">no</span>',
      String(cases),
      escaped(cases === 0 && none !== null ? none : faults.join(', ')),
    ]),
  )
}

function faultSection({
  fault,
  promise,
  detail,
  cases,
  case: name,
  schedule,
  replay,
}: FaultReport): string {
  return `<section>
<h3 class="bad">${escaped(fault)} (${promise})</h3>
<p>${escaped(detail)}</p>
<p>Seen in ${cases} ${cases === 1 ? 'case' : 'cases'}, first in <code>${escaped(name)}</code>.</p>
${schedule.length === 0 ? '' : `<p>The smallest schedule that shows it:</p>\n<ol>${schedule.map((line) => `<li><code>${escaped(line)}</code></li>`).join('')}</ol>`}
${replay === null ? '' : `<p>Again:</p>\n<pre>${escaped(replay)}</pre>`}
</section>`
}

function recoveryTable({ recovery }: DrillReport): string {
  if (recovery.length === 0) return ''
  return `<h2>Recovery</h2>
<p>From the end of the fault until nothing was left to do.</p>
${table(
  ['after', 'cases', 'median', 'longest'],
  recovery.map(({ kind, cases, median_ms: median, longest_ms: longest }) => [
    escaped(kind),
    String(cases),
    `${median} ms`,
    `${longest} ms`,
  ]),
)}`
}

function leftOut({ left_out: left }: DrillReport): string {
  if (left.length === 0) return ''
  return `<h2>Left out</h2>\n<p><code>${left.map(escaped).join('</code>, <code>')}</code></p>`
}

function casesTable({ cases }: DrillReport): string {
  return table(
    ['case', 'holds', 'happened', 'took', 'recovered in'],
    cases.map(({ case: name, holds, exercised, took_ms: took, recovery_ms: recovered, faults }) => [
      `<code>${escaped(name)}</code>`,
      holds
        ? '<span class="good">yes</span>'
        : `<span class="bad">${escaped(faults.join(', '))}</span>`,
      exercised ? 'yes' : 'no',
      `${took} ms`,
      recovered === null ? '' : `${recovered} ms`,
    ]),
  )
}
