import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { counterFamilies, histogramFamilies } from '../../src/observe/meters.ts'
import { page, root, section, tableRows } from './pages.ts'

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly {
      readonly alert: string
      readonly expr: string
      readonly labels: { readonly severity: string }
      readonly annotations: Readonly<Record<'summary' | 'description' | 'runbook', string>>
    }[]
  }[]
}

interface RuleTests {
  readonly tests: readonly {
    readonly alert_rule_test: readonly {
      readonly alertname: string
      readonly exp_alerts: readonly unknown[]
    }[]
  }[]
}

const { groups } = parse(page('docs/observability/alerts.yml').text) as Rules
const rules = groups.flatMap((group) => group.rules)
const dashboard = page('docs/observability/grafana.json').text
const { tests } = parse(page('docs/observability/alerts.test.yml').text) as RuleTests

/** The gauges as docs/reference/logs.md lists them, which a test of the database holds to the code. */
const gauges = tableRows(section(page('docs/reference/logs.md').text, 'Gauges')).map(
  ([name = '']) => name,
)
const known = new Set([
  'hookledger_gauges_up',
  ...gauges,
  ...Object.keys(counterFamilies).map((name) => `hookledger_${name}`),
  ...Object.keys(histogramFamilies).flatMap((name) =>
    ['bucket', 'sum', 'count'].map((part) => `hookledger_${name}_${part}`),
  ),
])
const seriesIn = (text: string): string[] => [
  ...new Set([...text.matchAll(/hookledger_[a-z_]+/g)].map(([name]) => name)),
]

describe('docs/observability/alerts.yml', () => {
  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s asks for what is counted',
    (_, rule) => {
      const series = seriesIn(rule.expr)
      expect(series).not.toEqual([])
      for (const name of series) expect(known).toContain(name)
    },
  )

  it.each(rules.map((rule) => [rule.alert, rule] as const))(
    '%s names its runbook',
    (alert, rule) => {
      const { text } = page(rule.annotations.runbook)
      expect(text).toMatch(new RegExp(`^# ${alert}\\n`))
      expect(text).toContain(rule.expr)
      expect(text).toContain(`Severity: ${rule.labels.severity}.`)
      expect(section(text, 'What to do')).toMatch(/^1\. /m)
    },
  )

  it('has a runbook for every alert, and for nothing else', () => {
    const written = readdirSync(join(root, 'docs/runbooks')).filter((name) => name !== 'README.md')
    expect(written.map((name) => `docs/runbooks/${name}`).sort()).toEqual(
      rules.map((rule) => rule.annotations.runbook).sort(),
    )
    const listed = page('docs/runbooks/README.md').text
    for (const { alert } of rules) expect(listed).toContain(`[${alert}]`)
  })

  it('is made to fire, and to keep silent, by a test of each', () => {
    const tried = tests.flatMap((test) => test.alert_rule_test)
    const of = (fires: boolean): string[] =>
      tried.flatMap((each) => (each.exp_alerts.length > 0 === fires ? [each.alertname] : []))
    const all = rules.map((rule) => rule.alert).sort()
    expect(of(true).sort()).toEqual(all)
    expect(of(false).sort()).toEqual(all)
  })
})

describe('docs/observability/grafana.json', () => {
  it('shows everything that is counted', () => {
    const shown = seriesIn(dashboard).map((name) => name.replace(/_(bucket|sum|count)$/, ''))
    const counted = [...known].map((name) => name.replace(/_(bucket|sum|count)$/, ''))
    expect([...new Set(counted)].filter((name) => !shown.includes(name))).toEqual([])
  })

  it('shows only what is counted, and each of its series in a panel with a title', () => {
    const { panels } = JSON.parse(dashboard) as {
      readonly panels: readonly { readonly title: string; readonly id: number }[]
    }
    expect(panels.every(({ title }) => title !== '')).toBe(true)
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
    for (const name of seriesIn(dashboard)) expect(known).toContain(name)
  })

  it('has a row for each part', () => {
    for (const title of ['Intake', 'Processing', 'Ledger', 'Outbox', 'Database'])
      expect(dashboard).toContain(`"title": "${title}"`)
  })
})
