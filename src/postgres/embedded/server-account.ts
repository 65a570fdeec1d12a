/**
 * As whom the server runs. PostgreSQL refuses to run as root, so under root it gets an account that can
 * do little; it must have a name, because initdb looks its own up. No account is ever created.
 */
import { spawnSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  lchownSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { HookledgerError } from '../../core/errors.ts'

/** An account of the operating system by its numbers. */
export interface ServerAccount {
  readonly uid: number
  readonly gid: number
}

const unprivilegedNames = ['postgres', '_postgres', 'nobody']

/**
 * Chooses the account for a cluster: the owner of one that exists, else an unprivileged one under root.
 * Null means that this process's own account is right.
 *
 * @throws HookledgerError HKL_EMBEDDED_UNAVAILABLE when root has no account to give it to;
 *   HKL_EMBEDDED_START_FAILED when the cluster belongs to somebody else.
 */
export function chooseServerAccount(cluster: string): ServerAccount | null {
  const uid = process.getuid?.()
  const owner = existsSync(cluster) ? statSync(cluster) : null
  if (uid !== 0) {
    if (owner && owner.uid !== uid) {
      throw new HookledgerError(
        'HKL_EMBEDDED_START_FAILED',
        `The database in ${cluster} belongs to another account (uid ${owner.uid}): start it as root or as that account, or choose another HOOKLEDGER_DATA_DIR.`,
      )
    }
    return null
  }
  if (owner && owner.uid !== 0) return { uid: owner.uid | 0, gid: owner.gid | 0 }
  const account = unprivilegedAccounts().find(canBecome)
  if (account) return account
  throw new HookledgerError(
    'HKL_EMBEDDED_UNAVAILABLE',
    'The embedded PostgreSQL cannot run as root and found no unprivileged account to run as (postgres, nobody): run as an ordinary user, or set DATABASE_URL.',
  )
}

/** Whether the account can enter the directory, write in it and own what it holds there: tried, not guessed. */
export function canUse(account: ServerAccount | null, directory: string): boolean {
  if (!account) return true
  const probe = mkdtempSync(join(directory, 'probe-'))
  try {
    chownSync(probe, account.uid >>> 0, account.gid >>> 0)
    // Some shared filesystems accept chown and ignore it; PostgreSQL would refuse the result.
    if (statSync(probe).uid !== account.uid >>> 0) return false
    const { status } = spawnSync('/bin/sh', ['-c', ': > "$1/written"', 'sh', probe], {
      ...account,
      cwd: '/',
      stdio: 'ignore',
    })
    return status === 0
  } finally {
    rmSync(probe, { recursive: true, force: true })
  }
}

/** Gives a directory and everything in it to the account. */
export function giveTo(account: ServerAccount, directory: string): void {
  lchownSync(directory, account.uid >>> 0, account.gid >>> 0)
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) giveTo(account, path)
    else lchownSync(path, account.uid >>> 0, account.gid >>> 0)
  }
}

function unprivilegedAccounts(): ServerAccount[] {
  let lines: string[]
  try {
    lines = readFileSync('/etc/passwd', 'utf8').split('\n')
  } catch {
    return []
  }
  const fields = lines.map((line) => line.split(':'))
  return unprivilegedNames.flatMap((name) => {
    const found = fields.find((entry) => entry[0] === name)
    // macOS writes nobody's numbers as -2.
    const account = found ? { uid: Number(found[2]) | 0, gid: Number(found[3]) | 0 } : null
    return account && account.uid !== 0 ? [account] : []
  })
}

function canBecome(account: ServerAccount): boolean {
  return spawnSync('/bin/sh', ['-c', ':'], { ...account, cwd: '/', stdio: 'ignore' }).status === 0
}
