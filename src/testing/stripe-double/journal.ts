/**
 * An append-only file of JSON lines. One line is written by one call, so a killed process leaves whole
 * lines and at most one torn last line, which the next start cuts off: a line counts entirely or not at all.
 * Lines are not flushed one by one: they outlive the process, not a loss of power.
 */
import {
  closeSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'

/** An open file of JSON lines. */
export interface Journal {
  /** Bytes in the file now. */
  readonly size: number
  /** Writes one value as one line; returns when the operating system has it. */
  append(value: unknown): void
  /** Replaces the whole file in one step (a new file, flushed, then renamed over the old one). */
  replace(values: Iterable<unknown>): void
  close(): void
}

/**
 * Opens (or creates) a file of JSON lines for one writer. `recover` gets every line that is there,
 * oldest first, before this returns.
 *
 * @throws Error when a line other than the last one is unreadable: that is damage, not a kill.
 */
export function openJournal(path: string, recover: (value: unknown) => void): Journal {
  mkdirSync(dirname(path), { recursive: true })
  let file = openSync(path, 'a+')
  let size = recoverLines(path, recover)
  if (fstatSync(file).size > size) ftruncateSync(file, size)

  return {
    get size() {
      return size
    },
    append(value) {
      if (fstatSync(file).size !== size) {
        throw new Error(`another process writes to ${path}: stop it, then start again`)
      }
      size += writeAll(file, `${JSON.stringify(value)}\n`)
    },
    replace(values) {
      const temporary = `${path}.new`
      const next = openSync(temporary, 'w')
      let written = 0
      for (const value of values) written += writeAll(next, `${JSON.stringify(value)}\n`)
      fsyncSync(next)
      closeSync(next)
      renameSync(temporary, path)
      closeSync(file)
      file = openSync(path, 'a+')
      size = written
    },
    close: () => closeSync(file),
  }
}

function writeAll(file: number, line: string): number {
  const bytes = Buffer.from(line)
  let written = 0
  while (written < bytes.length) written += writeSync(file, bytes, written)
  return bytes.length
}

/** Returns how many bytes of the file are whole lines. */
function recoverLines(path: string, recover: (value: unknown) => void): number {
  const bytes = readFileSync(path)
  let start = 0
  while (start < bytes.length) {
    const end = bytes.indexOf(10, start)
    if (end === -1) break // A torn last line: the kill came before its newline.
    recover(parseLine(path, bytes.toString('utf8', start, end), start))
    start = end + 1
  }
  return start
}

function parseLine(path: string, line: string, start: number): unknown {
  try {
    return JSON.parse(line)
  } catch (cause) {
    throw new Error(`${path} is damaged at byte ${start}: move the file away and start again`, {
      cause,
    })
  }
}
