/**
 * The server's log file, bounded. The server writes to the file itself and not to a pipe, so that a
 * stopped or busy parent never blocks a backend; the parent only cuts the file when it has grown.
 */
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readSync,
  statSync,
  truncateSync,
} from 'node:fs'

const largestBytes = 4 * 1024 * 1024
const checkMs = 10_000

/** An open log of one run of the server. */
export interface ServerLog {
  /** File descriptor in append mode, for the server's output. */
  readonly fd: number
  /** The first fatal message of this run, or null. */
  firstFatal(): string | null
  /** Ends the watching; the server may go on writing. */
  close(): void
}

/** Opens the log for a run; what an earlier run wrote stays, within the bound, in `<file>.1` at most. */
export function openServerLog(file: string): ServerLog {
  if (existsSync(file)) cutIfLarge(file)
  const fd = openSync(file, 'a', 0o600)
  const start = statSync(file).size
  const watch = setInterval(() => cutIfLarge(file), checkMs)
  watch.unref()
  return {
    fd,
    firstFatal: () => firstFatal(file, start),
    close() {
      clearInterval(watch)
      closeSync(fd)
    },
  }
}

function cutIfLarge(file: string): void {
  try {
    if (statSync(file).size <= largestBytes) return
    // Copied and cut, not renamed: the server keeps its descriptor and appends at the new end.
    copyFileSync(file, `${file}.1`)
    truncateSync(file)
  } catch {
    // A full disk or a removed file: the server goes on, and so do we.
  }
}

function firstFatal(file: string, start: number): string | null {
  const fd = openSync(file, 'r')
  try {
    const buffer = Buffer.alloc(64 * 1024)
    const length = readSync(fd, buffer, 0, buffer.length, start)
    const lines = buffer.toString('utf8', 0, length).split('\n')
    // While it recovers a server answers everyone with a FATAL of its own: those are no reason to fail.
    const line = lines.find(
      (text) => /(FATAL|PANIC):/.test(text) && !/the database system is/.test(text),
    )
    return line?.replace(/^.*?(FATAL|PANIC):\s*/, '') ?? null
  } finally {
    closeSync(fd)
  }
}
