/** Temporary data directories of test servers: found and cleared by the next run if this one is killed. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isRunning } from '../../src/postgres/embedded/process-table.ts'
import { stopOrphanedPostgres } from '../../src/postgres/embedded/start.ts'

const prefix = 'hookledger-test-'

/** A new directory that the server's account can enter, named after this process. */
export function makeTestDir(): string {
  // The real path, as the server reports it: macOS reaches its temporary directory through a link.
  const directory = mkdtempSync(join(realpathSync(tmpdir()), `${prefix}${process.pid}-`))
  chmodSync(directory, 0o755)
  return directory
}

/**
 * Copies a data directory whose server is stopped; owners and modes stay, its port is forgotten. A copy
 * of the binaries in it (when the checkout is closed to the server's account) is shared, not copied.
 */
export function copyDataDir(from: string, to: string): void {
  mkdirSync(join(to, 'postgres'), { recursive: true })
  for (const name of readdirSync(join(from, 'postgres'))) {
    const [source, target] = [join(from, 'postgres', name), join(to, 'postgres', name)]
    if (name === 'port' || name.startsWith('postgres.log')) continue
    if (name.startsWith('runtime-')) symlinkSync(source, target)
    else {
      const { status, stderr } = spawnSync('cp', ['-Rp', source, target], { encoding: 'utf8' })
      if (status !== 0) throw new Error(`copying ${source} failed: ${stderr}`)
    }
  }
}

/** Removes a data directory with what the server keeps elsewhere for it. */
export function removeDataDir(dataDir: string): void {
  const pointer = join(dataDir, 'postgres', 'location.json')
  if (existsSync(pointer)) {
    const { home } = JSON.parse(readFileSync(pointer, 'utf8')) as { home: string }
    rmSync(home, { recursive: true, force: true })
  }
  rmSync(dataDir, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
}

/** Stops servers and removes directories of test runs that were killed. */
export async function sweepKilledRuns(): Promise<void> {
  for (const name of readdirSync(tmpdir())) {
    const pid = new RegExp(`^${prefix}(\\d+)-`).exec(name)?.[1]
    if (pid === undefined || isRunning(Number(pid))) continue
    try {
      await sweep(join(tmpdir(), name))
    } catch {
      // Another run that starts at the same time sweeps it.
    }
  }
}

async function sweep(directory: string): Promise<void> {
  for (const entry of readdirSync(directory)) {
    const dataDir = join(directory, entry)
    if (!existsSync(join(dataDir, 'postgres'))) continue
    await stopOrphanedPostgres(dataDir)
    removeDataDir(dataDir)
  }
  rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 })
}
