/** The console's page, built where it is older than what it is made of; processes that ask at once build it once. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const builder = fileURLToPath(new URL('../../scripts/build-console.mjs', import.meta.url))

/** Resolves when it is there. */
export async function builtConsole(): Promise<void> {
  await promisify(execFile)(process.execPath, [builder, '--if-older'])
}
