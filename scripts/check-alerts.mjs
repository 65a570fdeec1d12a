/**
 * Holds alerts and metrics to Prometheus' own tool: the rules are valid, each of them fires on what it is for and
 * is silent otherwise, and what a real run counts is well-formed. `node scripts/check-alerts.mjs [SCRAPE]`: a file
 * with the text of `/metrics`.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const folder = join(import.meta.dirname, '..', 'docs', 'observability')
const promtool = (args, input) =>
  execFileSync('promtool', args, { cwd: folder, input, stdio: ['pipe', 'inherit', 'inherit'] })

promtool(['check', 'rules', 'alerts.yml'])
promtool(['test', 'rules', 'alerts.test.yml'])
const [scrape] = process.argv.slice(2)
if (scrape !== undefined) {
  const text = readFileSync(scrape, 'utf8')
  promtool(['check', 'metrics'], text)
  const counted = new Set([...text.matchAll(/^(hookledger_\w+)/gm)].map(([, name]) => name))
  const asked = ['alerts.yml', 'grafana.json'].flatMap((file) =>
    [...readFileSync(join(folder, file), 'utf8').matchAll(/hookledger_\w+/g)].map(([name]) => name),
  )
  // a run in which nothing was rejected has no such series; families are always announced
  const announced = new Set([...text.matchAll(/^# TYPE (\w+)/gm)].map(([, name]) => name))
  const missing = [...new Set(asked)].filter(
    (name) => !counted.has(name) && !announced.has(name.replace(/_(?:bucket|sum|count)$/, '')),
  )
  if (missing.length > 0) throw new Error(`a real run does not tell ${missing.join(', ')}`)
  console.log(
    `${counted.size} series of a real run, ${new Set(asked).size} of them asked for: all there`,
  )
}
