/** Runs `npm start` in an empty data directory until the simulation has finished, asks it, and stops it. */
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
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
    /^ {2}emails +\d+ operations, \d+ calls, \d+ arrived, each exactly once$/m,
    /^ {2}mail faults +.*\d+ times 429.*; after it \d+ times 500, \d+ lost answers, \d+ timeouts$/m,
    /^ {2}called again +[1-9]\d* duplicates absorbed by the key$/m,
    /^ {2}compared +every order is .*, every email is in the mail service's own log once$/m,
    /^ {2}audit +every promise holds$/m,
  ]) {
    if (!line.test(printed)) throw new Error(`the summary does not say ${line}`)
  }
  const ask = (...args) =>
    execFileSync('npm', ['run', '--silent', 'hookledger', '--', ...args], {
      cwd: root,
      env,
      encoding: 'utf8',
    })
  console.log(ask('audit'))
  console.log(ask('status'))
} finally {
  child.kill('SIGTERM')
  const { code, signal } = await closed
  rmSync(dataDir, { recursive: true, force: true })
  if (code !== 0) throw new Error(`npm start ended with ${code ?? signal}`)
}
