/** The report of a drill as JUnit, for continuous integration: a test case a case, and one for each promise. */
import type { DrillReport } from '../drill-report.ts'

/** The XML. */
export function drillJunit(report: DrillReport): string {
  const promises = report.promises.map(
    ({ id, title, holds, cases, faults, not_applicable: no }) => {
      const name = `${id} ${title}`
      if (!holds) return failed('promises', name, 0, `broken: ${faults.join(', ')}`)
      if (cases > 0) return passed('promises', name, 0)
      return no === null
        ? failed('promises', name, 0, 'no case put it to the test')
        : skipped('promises', name, no)
    },
  )
  const inMemory = report.faults
    .filter(({ replay }) => replay === null)
    .map(({ fault, case: name, detail }) => failed('faults', `${fault}: ${name}`, 0, detail))
  const cases = report.cases.map(({ case: name, faults, took_ms: took, exercised }) => {
    if (faults.length > 0) return failed('cases', name, took, faults.join(', '))
    return exercised
      ? passed('cases', name, took)
      : skipped('cases', name, 'what was planned did not happen')
  })
  const all = [...promises, ...inMemory, ...cases]
  const count = (word: string): number => all.filter((each) => each.includes(word)).length
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="hookledger drill" time="${seconds(report.took_ms)}">`,
    `  <testsuite name="hookledger drill" tests="${all.length}" failures="${count('<failure ')}" skipped="${count('<skipped ')}" time="${seconds(report.took_ms)}">`,
    ...all,
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}

function open(group: string, name: string, tookMs: number): string {
  return `    <testcase classname="drill.${group}" name="${escaped(name)}" time="${seconds(tookMs)}"`
}

function passed(group: string, name: string, tookMs: number): string {
  return `${open(group, name, tookMs)}/>`
}

function failed(group: string, name: string, tookMs: number, why: string): string {
  return `${open(group, name, tookMs)}><failure message="${escaped(why)}"/></testcase>`
}

function skipped(group: string, name: string, why: string): string {
  return `${open(group, name, 0)}><skipped message="${escaped(why)}"/></testcase>`
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(3)
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

/** Text for XML and HTML; what XML has no character for is shown as such. */
export function escaped(text: string): string {
  return text
    .replace(/[&<>"']/g, (character) => entities[character] ?? character)
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]/g, '\ufffd')
}
