/** The files that a document shows, written where they can be imported, beside the repository's packages. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { blocks, root, type Page } from './pages.ts'

/** The files of one document in a directory of their own. */
export interface ExampleProject {
  readonly directory: string
  /** Names of the files that say that they are run. */
  readonly runnable: readonly string[]
  /** Imports one of them. */
  load(file: string): Promise<Record<string, unknown>>
  remove(): void
}

/** The mounts are no aliases of the test runner: their specifiers become the source files they stand for. */
function fromSource(text: string): string {
  return text.replace(
    /'hookledger\/(node|express|fastify)'/g,
    (_, mount: string) => `'${join(root, 'src/http', mount)}.ts'`,
  )
}

/** Writes the files of a document. */
export function writeExamples(document: Page): ExampleProject {
  const directory = mkdtempSync(join(tmpdir(), 'hookledger-docs-'))
  symlinkSync(join(root, 'node_modules'), join(directory, 'node_modules'))
  const files = blocks(document).filter((block) => block.file !== null)
  for (const { file, text } of files) {
    const path = join(directory, file ?? '')
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, fromSource(text))
  }
  return {
    directory,
    runnable: files.flatMap(({ file, run }) => (run && file !== null ? [file] : [])),
    load: async (file) =>
      (await import(/* @vite-ignore */ join(directory, file))) as Record<string, unknown>,
    remove: () => rmSync(directory, { recursive: true, force: true }),
  }
}
