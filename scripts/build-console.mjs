/**
 * Builds the operator's web page into console/dist. As a program: always, or with `--if-older` only where the
 * sources are newer; `--into FOLDER` copies it there besides (the package carries it in dist/console).
 * `buildConsoleIfOlder()` is for whoever needs the page to be there: the start from source, and tests.
 * Processes that need it at once build it once: the others wait.
 */
import { execFile } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const program = fileURLToPath(import.meta.url)
const folder = fileURLToPath(new URL('../console', import.meta.url))
const built = join(folder, 'dist', 'index.html')
const lock = join(folder, 'dist.lock')
const longestBuildMs = 120_000

/** Builds it unless it is there and newer than all that it is made of. Answers where it is. */
export async function buildConsoleIfOlder() {
  const started = Date.now()
  while (isOlder()) {
    if (takeLock()) {
      try {
        // a process of its own: what builds is large, and must not be told that this is a test
        if (isOlder()) await promisify(execFile)(process.execPath, [program])
      } finally {
        rmSync(lock, { recursive: true, force: true })
      }
    } else if (Date.now() - started > longestBuildMs) {
      throw new Error(
        `another process builds the console for too long: remove ${lock} and try again`,
      )
    } else {
      await sleep(100)
    }
  }
  return join(folder, 'dist')
}

async function buildConsole() {
  process.env.NODE_ENV = 'production'
  const { build } = await import('vite')
  await build({ configFile: join(folder, 'vite.config.ts'), logLevel: 'warn' })
}

function takeLock() {
  try {
    mkdirSync(lock)
    return true
  } catch (error) {
    if (error.code !== 'EEXIST') throw error
    // whoever held it was killed
    if (
      Date.now() - (statSync(lock, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) >
      longestBuildMs
    )
      rmSync(lock, { recursive: true, force: true })
    return false
  }
}

function isOlder() {
  if (!existsSync(built)) return true
  const since = statSync(built).mtimeMs
  const made = ['src', 'index.html', 'vite.config.ts'].flatMap((name) =>
    filesOf(join(folder, name)),
  )
  return [...made, fileURLToPath(new URL('../src/core/money.ts', import.meta.url))].some(
    (file) => statSync(file).mtimeMs > since,
  )
}

function filesOf(path) {
  if (!statSync(path).isDirectory()) return [path]
  return readdirSync(path, { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? filesOf(join(path, entry.name)) : [join(path, entry.name)],
  )
}

if (process.argv[1] === program) {
  if (process.argv.includes('--if-older')) await buildConsoleIfOlder()
  else await buildConsole()
  const into = process.argv.indexOf('--into')
  if (into > 0) cpSync(join(folder, 'dist'), process.argv[into + 1], { recursive: true })
}
