/**
 * At most one process holds a directory, and a holder that dies, however it dies, gives it up by dying.
 * Generations instead of one file, because taking over a dead holder's file by deleting it cannot be
 * made safe: lock.<n> is created only once, the highest one counts, and none is deleted before a higher
 * one exists.
 */
import { randomBytes } from 'node:crypto'
import {
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { HookledgerError } from '../../core/errors.ts'
import { currentScope, isRunning, readProcess } from './process-table.ts'
import type { ProcessScope } from './process-table.ts'

/** A held directory. */
export interface DirectoryLock {
  /** Gives the directory up. Calling it again does nothing. */
  release(): void
}

/** Options of {@link acquireDirectoryLock}. */
export interface LockOptions {
  /** Told when taking the lock needs a while. */
  readonly log?: (message: string) => void
  /** Milliseconds between two signs of life. Default 1000; the same for all who want the directory. */
  readonly beatMs?: number
}

interface Holder extends ProcessScope {
  readonly pid: number
  readonly startedAt: string
}

const defaultBeatMs = 1_000
// So many beats must be missed: only asked of holders whose process id means nothing here.
const missedBeats = 6
const attempts = 200

/**
 * Takes the directory for this process.
 *
 * @throws HookledgerError HKL_EMBEDDED_IN_USE when a living process, this one included, holds it.
 */
export async function acquireDirectoryLock(
  directory: string,
  options: LockOptions = {},
): Promise<DirectoryLock> {
  const beatMs = options.beatMs ?? defaultBeatMs
  for (let attempt = 0; attempt < attempts; attempt += 1) {
    const current = latestGeneration(directory)
    const holder = current === 0 ? null : readHolder(generationFile(directory, current))
    if (holder === 'vanished') continue
    if (
      holder &&
      (await isAlive(holder, generationFile(directory, current), beatMs, options.log))
    ) {
      throw inUse(directory, holder)
    }
    const taken = tryGeneration(directory, current + 1)
    if (taken) return hold(directory, current + 1, beatMs)
  }
  throw new HookledgerError(
    'HKL_EMBEDDED_IN_USE',
    `Too many processes want ${directory} at once: start one of them, or give each its own HOOKLEDGER_DATA_DIR.`,
  )
}

function tryGeneration(directory: string, generation: number): boolean {
  const claim = join(directory, `claim.${process.pid}.${randomBytes(4).toString('hex')}`)
  const file = generationFile(directory, generation)
  const holder: Holder = {
    pid: process.pid,
    startedAt: readProcess(process.pid)?.startedAt ?? '',
    ...currentScope(),
  }
  writeFileSync(claim, JSON.stringify(holder))
  try {
    // A link makes the file appear with its content, and fails when the generation exists.
    linkSync(claim, file)
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code
    // ENOENT: a winner swept our claim away; the next round finds that winner.
    if (code === 'EEXIST' || code === 'ENOENT') return false
    throw error
  } finally {
    rmSync(claim, { force: true })
  }
  // The generation may have been used and swept before we linked it: then a higher one exists.
  if (latestGeneration(directory) === generation) return true
  rmSync(file, { force: true })
  return false
}

function hold(directory: string, generation: number, beatMs: number): DirectoryLock {
  sweep(directory, generation)
  const file = generationFile(directory, generation)
  const beat = setInterval(() => {
    const now = new Date()
    try {
      utimesSync(file, now, now)
    } catch {
      // The directory is gone or read-only now: nobody can take it over either.
    }
  }, beatMs)
  beat.unref()
  let released = false
  return {
    release() {
      if (released) return
      released = true
      clearInterval(beat)
      // Marked, not deleted: a deleted generation could be created a second time by a slow rival.
      const mark = `${file}.released`
      try {
        writeFileSync(mark, JSON.stringify({ released: true }))
        renameSync(mark, file)
      } catch {
        // Without its directory there is nothing left to give up.
      }
    },
  }
}

function sweep(directory: string, generation: number): void {
  for (const name of readdirSync(directory)) {
    const older = generationOf(name)
    if (name.startsWith('claim.') || (older !== null && older < generation)) {
      rmSync(join(directory, name), { force: true })
    }
  }
}

async function isAlive(
  holder: Holder,
  file: string,
  beatMs: number,
  log: (message: string) => void = () => {},
): Promise<boolean> {
  const here = currentScope()
  const rebooted = holder.host === here.host && holder.boot !== here.boot
  if (rebooted) return false
  const comparable = holder.boot === here.boot && holder.namespace === here.namespace
  if (comparable) {
    const entry = readProcess(holder.pid)
    if (!entry) return isRunning(holder.pid)
    return !entry.zombie && entry.startedAt === holder.startedAt
  }
  // Another container or machine: its ids say nothing here, but a living holder keeps touching the file.
  log(
    'The data directory was last used from another container or machine; watching whether it still is.',
  )
  const before = modifiedAt(file)
  for (let waited = 0; waited < missedBeats * beatMs; waited += beatMs / 2) {
    await sleep(beatMs / 2)
    if (modifiedAt(file) !== before) return true
  }
  return false
}

function readHolder(file: string): Holder | null | 'vanished' {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'vanished'
    throw error
  }
  try {
    const value = JSON.parse(text) as Partial<Holder> & { released?: boolean }
    return typeof value.pid === 'number' ? (value as Holder) : null
  } catch {
    // Links appear whole; only a power failure leaves an unreadable one, and no holder survives that.
    return null
  }
}

function latestGeneration(directory: string): number {
  return Math.max(0, ...readdirSync(directory).map((name) => generationOf(name) ?? 0))
}

function generationOf(name: string): number | null {
  const match = /^lock\.(\d+)$/.exec(name)
  return match ? Number(match[1]) : null
}

function generationFile(directory: string, generation: number): string {
  return join(directory, `lock.${generation}`)
}

function modifiedAt(file: string): number {
  try {
    return statSync(file).mtimeMs
  } catch {
    return -1
  }
}

function inUse(directory: string, holder: Holder): HookledgerError {
  const who = holder.pid === process.pid ? 'this process' : `process ${holder.pid}`
  return new HookledgerError(
    'HKL_EMBEDDED_IN_USE',
    `The embedded PostgreSQL in ${directory} is in use by ${who}: stop that one first, or choose another HOOKLEDGER_DATA_DIR.`,
  )
}
