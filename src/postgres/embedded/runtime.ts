/**
 * A PostgreSQL installation that the server's account can really execute. The package's own files are
 * used where they work; otherwise (unreachable for that account, symlinks missing after an install
 * without scripts, a read-only or noexec place) a private copy is made. node_modules is never written.
 */
import { execFile, spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rename, rm, symlink } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { HookledgerError } from '../../core/errors.ts'
import type { PackageBinaries } from './package-binaries.ts'
import type { ServerAccount } from './server-account.ts'

/** An installation that was seen to run as the server's account. */
export interface Runtime {
  readonly initdb: string
  readonly postgres: string
  /** Major version of PostgreSQL, such as 18. */
  readonly major: number
}

const copyPrefix = 'runtime-'

/**
 * Prepares an installation for the account, copying into `home` only if there is no other way.
 *
 * @throws HookledgerError HKL_EMBEDDED_UNAVAILABLE when the binaries do not run on this machine.
 */
export async function prepareRuntime(
  binaries: PackageBinaries,
  home: string,
  account: ServerAccount | null,
): Promise<Runtime> {
  const copy = join(home, `${copyPrefix}${binaries.version}`)
  const found = probe(binaries.root, account) ?? (existsSync(copy) ? probe(copy, account) : null)
  if (found) return found
  const fresh = await mkdtemp(join(home, `${copyPrefix}new-`))
  await copyTree(binaries.root, fresh)
  await hydrateSymlinks(fresh)
  // An existing copy that does not run is damaged (a power failure, say).
  await rm(copy, { recursive: true, force: true })
  await rename(fresh, copy)
  const copied = probe(copy, account)
  if (copied) return copied
  throw new HookledgerError(
    'HKL_EMBEDDED_UNAVAILABLE',
    `The embedded PostgreSQL does not run on this machine (${whyNot(copy, account)}): set DATABASE_URL to a PostgreSQL of your own.`,
  )
}

/** Removes copies of other versions, and half-made ones. Only while no server of this home runs. */
export async function sweepRuntimes(home: string, runtime: Runtime): Promise<void> {
  const inUse = basename(dirname(dirname(runtime.postgres)))
  for (const name of readdirSync(home)) {
    if (name.startsWith(copyPrefix) && name !== inUse) {
      await rm(join(home, name), { recursive: true, force: true })
    }
  }
}

function probe(root: string, account: ServerAccount | null): Runtime | null {
  const runtime = { initdb: join(root, 'bin', 'initdb'), postgres: join(root, 'bin', 'postgres') }
  const server = run(runtime.postgres, account)
  // Both, since they load different libraries.
  if (server.status !== 0 || run(runtime.initdb, account).status !== 0) return null
  const major = /(\d+)/.exec(server.stdout)?.[1]
  return major === undefined ? null : { ...runtime, major: Number(major) }
}

function whyNot(root: string, account: ServerAccount | null): string {
  const { error, stderr, signal } = run(join(root, 'bin', 'postgres'), account)
  const reason = error?.message ?? stderr.split('\n').find((line) => line !== '')
  return reason ?? (signal ? `ended by ${signal}` : 'it does not say why')
}

function run(file: string, account: ServerAccount | null) {
  const env = { LC_ALL: 'C', PATH: '/usr/bin:/bin' }
  const { status, stdout, stderr, signal, error } = spawnSync(file, ['--version'], {
    ...account,
    cwd: '/',
    env,
    encoding: 'utf8',
    timeout: 30_000,
  })
  return { status, signal, error, stdout: stdout ?? '', stderr: stderr ?? '' }
}

/** Copies the installation; by two programs, since a thousand small files take Node a while. */
async function copyTree(from: string, to: string): Promise<void> {
  const run = promisify(execFile)
  await run('cp', ['-RP', `${from}/.`, to])
  // The source, and this process's umask, may leave everything to the owner alone.
  await run('chmod', ['-R', 'u+w,a+rX', to])
}

/** Makes the links that npm cannot pack and that the package's install script would have made. */
async function hydrateSymlinks(root: string): Promise<void> {
  const list = join(root, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const links = JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]
  for (const link of links) {
    // Paths are written from the package's folder; the link's name is called target there.
    const path = join(root, relative('native', link.target))
    const pointsTo = relative(dirname(link.target), link.source)
    if (existsSync(dirname(path)) && !existsSync(path)) {
      await rm(path, { force: true })
      await symlink(pointsTo, path)
    }
  }
}
