/**
 * `dev.json`: where a running `dev` can be found. Written whole before it says that it is ready, and
 * removed when it ends; one that a killed process left behind is told by its process id.
 */
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { writeFileDurably } from '../postgres/embedded/durable-file.ts'
import { isRunning, readProcess } from '../postgres/embedded/process-table.ts'

/** What the file says. `databaseUrl` is the owner's and holds a password. */
export interface DevFile {
  /** Where webhooks are received. */
  readonly url: string
  readonly databaseUrl: string
  /** The process to signal. */
  readonly pid: number
  /** The API of the simulated provider. */
  readonly providerUrl: string
  /** Where the demo shop's emails go. */
  readonly emailUrl: string
}

/** The signing secret where STRIPE_WEBHOOK_SECRET is absent: known to everybody, for development only. */
export const developmentSecret = 'whsec_development_only_0123456789'

/** Where the file is. */
export function devFilePath(dataDir: string): string {
  return join(dataDir, 'dev.json')
}

/** Writes the file in one step, readable by its owner only. */
export function writeDevFile(dataDir: string, content: DevFile): void {
  const startedAt = readProcess(content.pid)?.startedAt
  writeFileDurably(devFilePath(dataDir), `${JSON.stringify({ ...content, startedAt }, null, 2)}\n`)
}

/** Removes the file, if it is still this process's. */
export function removeDevFile(dataDir: string): void {
  if (readFile(dataDir)?.pid === process.pid) rmSync(devFilePath(dataDir), { force: true })
}

/** The running `dev` of a data directory; null when there is none. */
export function findRunningDev(dataDir: string): DevFile | null {
  const found = readFile(dataDir)
  if (found === null || !isRunning(found.pid)) return null
  // the id may have been given to another program since
  const entry = readProcess(found.pid)
  const same =
    entry === null || found.startedAt === undefined || entry.startedAt === found.startedAt
  return same && entry?.zombie !== true ? found : null
}

/** With when the process started, in the system's own form: an id alone is given out again. */
interface WrittenFile extends DevFile {
  readonly startedAt?: string
}

function readFile(dataDir: string): WrittenFile | null {
  try {
    const content = JSON.parse(readFileSync(devFilePath(dataDir), 'utf8')) as Partial<WrittenFile>
    const texts = [content.url, content.databaseUrl, content.providerUrl, content.emailUrl]
    return texts.every((text) => typeof text === 'string') && Number.isInteger(content.pid)
      ? (content as WrittenFile)
      : null
  } catch {
    return null // not there, or not ours
  }
}
