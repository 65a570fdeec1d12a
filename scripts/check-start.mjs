/** Runs `npm start` in an empty data directory until the simulation has finished, asks it, and stops it. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const dataDir = mkdtempSync(join(tmpdir(), 'hookledger-start-'))
const env = { ...process.env, HOOKLEDGER_DATA_DIR: dataDir, PORT: '' }
const started = Date.now()
const child = spawn('npm', ['start'], { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] })
const closed = new Promise((resolve) =>
  child.on('close', (code, signal) => resolve({ code, signal })),
)
let printed = ''
const finished = new Promise((resolve) => {
  child.stdout.on('data', (chunk) => {
    printed += chunk
    if (/^simulation finished$/m.test(printed)) resolve(true)
  })
})
const late = new Promise((resolve) => setTimeout(() => resolve(false), 120_000).unref())
try {
  const inTime = await Promise.race([finished, late, closed.then(() => false)])
  console.log(printed)
  if (!inTime) throw new Error('the simulation did not finish')
  console.log(`simulation finished after ${Math.round((Date.now() - started) / 1000)} s`)
  for (const line of [
    /^ {2}simulated +\d+ orders and \d+ subscriptions of the shop, [1-9]\d* organizations in /m,
    /^ {2}subscriptions +[1-9]\d* of [1-9]\d* organizations: .*\d+ active.*; [1-9]\d* seats, [1-9]\d* credits$/m,
    /^ {2}looked at +[1-9]\d* events said "look again": [1-9]\d* requests to the provider$/m,
    /^ {2}emails +\d+ operations, \d+ calls, \d+ arrived, each exactly once$/m,
    /^ {2}mail faults +.*\d+ times 429.*; after it \d+ times 500, \d+ lost answers, \d+ timeouts$/m,
    /^ {2}called again +[1-9]\d* duplicates absorbed by the key$/m,
    /^ {2}reconciled +\d+ pass(?:es)? over the provider's own records: [1-9]\d* records in \d+ calls?$/m,
    /^ {2}lag +([1-9]\d*) events dropped for good: \1 repaired by themselves, from the provider's own records$/m,
    /^ {2}tampered with +6 orders changed by SQL: every one found$/m,
    /^ {2}compared +every other order and every subscription is .*, every email is in the mail service's own log once$/m,
    /^ {2}audit +every promise holds; \d+ rows that open findings name already$/m,
  ]) {
    if (!line.test(printed)) throw new Error(`the summary does not say ${line}`)
  }
  const ask = (...args) =>
    execFileSync('npm', ['run', '--silent', 'hookledger', '--', ...args], {
      cwd: root,
      env,
      encoding: 'utf8',
    })
  const counted = () => {
    const { events, orders, findings } = JSON.parse(ask('status', '--json'))
    return JSON.stringify({ events, orders, findings })
  }
  const [, followed] = /explain (sub_\w+) /.exec(printed) ?? []
  const story = ask('explain', followed)
  console.log(story)
  for (const line of [
    /^order sub_\w+ of workflow saas is \w+/m,
    /looked at subscription sub_\w+: answer \d+/,
    /fulfilled, stays .*$/m,
  ]) {
    if (!line.test(story)) throw new Error(`the story of ${followed} does not say ${line}`)
  }
  console.log(ask('audit'))
  const before = counted()
  console.log(ask('reconcile'))
  if (counted() !== before) throw new Error(`reconcile changed something: ${before} ${counted()}`)
  const list = (...filter) =>
    ask('findings', 'list', '--json', ...filter)
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  const kinds = ['tampered', 'entitlement_without_state']
  const seeded = kinds.flatMap((kind) => list('--kind', kind))
  const orders = new Set(seeded.map((finding) => finding.order_id))
  if (orders.size !== 6) throw new Error(`tampering was found of ${orders.size} orders`)
  // an order with both is set right by one of them
  for (const order of orders) {
    const { finding_id: id } = seeded.find((finding) => finding.order_id === order)
    console.log(ask('repair', 'apply', id, '--reason', 'it was changed by hand'))
  }
  ask('reconcile')
  const left = kinds.flatMap((kind) => list('--kind', kind))
  if (left.length > 0) throw new Error(`not repaired: ${JSON.stringify(left)}`)
  console.log(ask('audit'))
  console.log(ask('status'))
  const { url } = JSON.parse(readFileSync(join(dataDir, 'dev.json'), 'utf8'))
  const scraped = join(dataDir, 'metrics.txt')
  writeFileSync(scraped, await (await fetch(`${url}/metrics`)).text())
  execFileSync(process.execPath, [join(root, 'scripts', 'check-alerts.mjs'), scraped], {
    stdio: 'inherit',
  })
} finally {
  child.kill('SIGTERM')
  const { code, signal } = await closed
  rmSync(dataDir, { recursive: true, force: true })
  if (code !== 0) throw new Error(`npm start ended with ${code ?? signal}`)
}
