/**
 * Finds and loads `hookledger.config.ts` (or .js, .mjs), and gives out the object that it exports.
 * Whatever is wrong with it is one line that names the file.
 */
import { existsSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { HookledgerError, type ErrorCode } from '../core/errors.ts'
import { partsOf, type Hookledger, type TransactionLike } from '../hookledger.ts'
import type { ExtraRoutes } from '../server/router.ts'

const names = ['hookledger.config.ts', 'hookledger.config.js', 'hookledger.config.mjs']

/**
 * The configuration: the given file, else the first found from `cwd` upward.
 *
 * @throws HookledgerError HKL_CONFIG_NOT_FOUND
 */
export function findConfigFile(cwd: string, given: string | undefined): string {
  if (given !== undefined) {
    const file = resolve(cwd, given)
    if (existsSync(file) && statSync(file).isFile()) return file
    throw new HookledgerError('HKL_CONFIG_NOT_FOUND', `--config: there is no file ${given}`)
  }
  for (let directory = resolve(cwd); ; directory = dirname(directory)) {
    const found = names.map((name) => join(directory, name)).find((file) => existsSync(file))
    if (found !== undefined) return found
    if (directory === dirname(directory)) {
      throw new HookledgerError(
        'HKL_CONFIG_NOT_FOUND',
        'no hookledger.config.ts (or .js, .mjs) here or above: run "hookledger init" to write one, or name it with --config',
      )
    }
  }
}

/** What a configuration file exports. */
export interface LoadedConfig {
  readonly hookledger: Hookledger
  /** The app's own routes, for `dev` and `start` to serve beside Hookledger's. */
  readonly routes: ((context: AppRouteContext) => ExtraRoutes) | undefined
  /** What it says about drills, unchecked. */
  readonly drill: unknown
  /** Makes what the app needs in the database; run by `dev` after it migrated. */
  readonly setup: ((db: { query(text: string): Promise<unknown> }) => Promise<void>) | undefined
}

/** What the app's own routes are given. */
export interface AppRouteContext {
  readonly hookledger: Hookledger
  /** Runs work in one transaction of the database. */
  readonly transaction: <T>(work: (tx: TransactionLike) => Promise<T>) => Promise<T>
}

/**
 * Loads a configuration and checks its options.
 *
 * @throws HookledgerError with the file's name in front
 */
export async function loadConfig(file: string, cwd: string): Promise<LoadedConfig> {
  try {
    const module = await importModule(file)
    const exported = module['hookledger'] ?? module['default']
    if (typeof exported !== 'object' || exported === null) {
      throw new HookledgerError(
        'HKL_CONFIG_INVALID',
        'must export what createHookledger returns, as `hookledger` or as default',
      )
    }
    // options are checked when they are first asked for: here, so that the line names the file
    void partsOf(exported as Hookledger).config
    return {
      hookledger: exported as Hookledger,
      routes: functionOf(module, 'routes') as LoadedConfig['routes'],
      drill: module['drill'],
      setup: functionOf(module, 'setup') as LoadedConfig['setup'],
    }
  } catch (error) {
    throw named(error, relative(cwd, file) || file)
  }
}

/**
 * TypeScript is imported natively where whatever runs this file understands it already (it is
 * TypeScript itself, or Node strips types); elsewhere, and where native is not enough (an enum, an
 * import without its ending), jiti compiles it. Hookledger itself is never loaded a second time: the
 * object must be of the copy that runs.
 */
async function importModule(file: string): Promise<Record<string, unknown>> {
  const native = async (): Promise<Record<string, unknown>> =>
    (await import(pathToFileURL(file).href)) as Record<string, unknown>
  if (!file.endsWith('.ts') || import.meta.url.endsWith('.ts')) return native()
  if ((process.features as { typescript?: unknown }).typescript) {
    try {
      return await native()
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined
      if (code !== 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX' && code !== 'ERR_MODULE_NOT_FOUND')
        throw error
    }
  }
  const { createJiti } = await import('jiti')
  return createJiti(import.meta.url, {
    interopDefault: false,
    nativeModules: ['hookledger'],
  }).import(file)
}

function functionOf(module: Readonly<Record<string, unknown>>, name: string): unknown {
  return typeof module[name] === 'function' ? module[name] : undefined
}

/** The same failure, with the file's name in front, in one line. */
function named(error: unknown, file: string): HookledgerError {
  const message = error instanceof Error ? error.message : String(error)
  const line = message.replace(/\s+/g, ' ').trim().slice(0, 300)
  return new HookledgerError(codeOf(error), `${file}: ${line || 'it failed to load'}`, {
    cause: error,
  })
}

/** The code of an error of whichever copy of Hookledger. */
function codeOf(error: unknown): ErrorCode {
  const code =
    typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined
  return typeof code === 'string' && code.startsWith('HKL_')
    ? (code as ErrorCode)
    : 'HKL_CONFIG_INVALID'
}
