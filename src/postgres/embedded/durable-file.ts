/** Small files that are there whole or not at all, also after a power failure. */
import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

/** Replaces a file in one step; readable by its owner only unless `mode` says otherwise. */
export function writeFileDurably(file: string, content: string, mode = 0o600): void {
  const next = `${file}.new`
  const fd = openSync(next, 'w', mode)
  try {
    writeSync(fd, content)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  renameSync(next, file)
  syncDirectory(dirname(file))
}

/** Makes renames and new names in a directory survive a power failure. */
export function syncDirectory(directory: string): void {
  const fd = openSync(directory, 'r')
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
}
