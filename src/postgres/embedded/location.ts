/**
 * Where a cluster lives. Normally in the data directory; under root, when the server's account cannot
 * get there (a parent is mode 0700), in a place of its own that `location.json` in the data directory
 * names, so that the next start finds the data again. A cluster is moved if it has to be, never deleted.
 */
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { HookledgerError } from '../../core/errors.ts'
import { writeFileDurably } from './durable-file.ts'
import { canUse } from './server-account.ts'
import type { ServerAccount } from './server-account.ts'

/** Places outside the data directory, tried in this order. */
const outsidePlaces = ['/var/lib/hookledger', '/var/tmp', tmpdir()]

interface Pointer {
  readonly home: string
  /** Where the cluster was before; it is still there if a move was interrupted. */
  readonly from: string
}

/**
 * The cluster of a data directory, where it is at the moment or would be made.
 *
 * @throws HookledgerError HKL_EMBEDDED_START_FAILED when it is recorded elsewhere and that place is gone.
 */
export function findCluster(base: string): string {
  const { home, from } = readPointer(base)
  const recorded = clusterIn(home)
  return existsSync(recorded) || !existsSync(clusterIn(from)) ? recorded : clusterIn(from)
}

/**
 * Settles on a home that the account can use, and moves an existing cluster there. No server of the
 * cluster may run. Returns the home's real path.
 */
export function settleHome(
  base: string,
  account: ServerAccount | null,
  log: (message: string) => void,
): string {
  let { home, from } = readPointer(base)
  if (!canUse(account, home)) {
    from = dirname(findCluster(base))
    home = createOutside(account)
    // Recorded before the cluster moves, with where it was: a crash in between loses sight of nothing.
    writeFileDurably(pointerFile(base), JSON.stringify({ home, from } satisfies Pointer), 0o644)
    log(`The server's account (uid ${account?.uid}) cannot use ${from}; its files go to ${home}.`)
  }
  if (home !== from && existsSync(clusterIn(from)) && !existsSync(clusterIn(home))) {
    moveCluster(clusterIn(from), clusterIn(home))
  }
  return realpathSync(home)
}

/** Path of the cluster in a home. */
export function clusterIn(home: string): string {
  return join(home, 'cluster')
}

function createOutside(account: ServerAccount | null): string {
  for (const place of outsidePlaces) {
    let home: string | null = null
    try {
      mkdirSync(place, { recursive: true, mode: 0o755 })
      home = mkdtempSync(join(place, 'hookledger-'))
      // Others may pass through and see names, as in the data directory; the cluster itself is 0700.
      chmodSync(home, 0o711)
      if (canUse(account, home)) return home
    } catch {
      // Read-only, or not ours to write: the next place.
    }
    if (home) rmSync(home, { recursive: true, force: true })
  }
  throw new HookledgerError(
    'HKL_EMBEDDED_UNAVAILABLE',
    `The embedded PostgreSQL cannot run as root and its account can enter neither the data directory nor ${outsidePlaces.join(' nor ')}: run as an ordinary user, or set DATABASE_URL.`,
  )
}

function moveCluster(from: string, to: string): void {
  try {
    renameSync(from, to)
    return
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
  }
  // Another filesystem: copy whole, then put it in place, and keep the original under another name.
  const copying = `${to}.copying-${randomBytes(4).toString('hex')}`
  const { status } = spawnSync('cp', ['-Rp', from, copying], { stdio: 'ignore' })
  if (status !== 0) {
    throw new HookledgerError(
      'HKL_EMBEDDED_START_FAILED',
      `The database could not be copied from ${from} to ${to}: check the free space there.`,
    )
  }
  renameSync(copying, to)
  renameSync(from, `${from}.moved-${Date.now()}`)
}

function readPointer(base: string): Pointer {
  const file = pointerFile(base)
  if (!existsSync(file)) return { home: base, from: base }
  try {
    const { home, from } = JSON.parse(readFileSync(file, 'utf8')) as Partial<Pointer>
    if (typeof home === 'string' && typeof from === 'string' && existsSync(home)) {
      return { home, from }
    }
  } catch {
    // Unreadable is told like gone: a new, empty database must never be made in silence.
  }
  throw new HookledgerError(
    'HKL_EMBEDDED_START_FAILED',
    `${file} says that the database is elsewhere, and it is not there: restore that directory, or remove the file to begin with an empty database.`,
  )
}

function pointerFile(base: string): string {
  return join(base, 'location.json')
}
