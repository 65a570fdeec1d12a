/** A file of a test's own, gone when its tests are. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

/** Writes a file with this text; it is removed when the test file ends. */
export function writeTemporary(text: string | Uint8Array, name = 'lines.jsonl'): string {
  const directory = mkdtempSync(join(tmpdir(), 'hookledger-'))
  directories.add(directory)
  const file = join(directory, name)
  writeFileSync(file, text)
  return file
}

const directories = new Set<string>()
afterAll(() => {
  for (const directory of directories) rmSync(directory, { recursive: true, force: true })
})
