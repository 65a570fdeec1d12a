/**
 * What a configuration may say about drills, and what is refused: nothing that is played may be missing, and
 * nothing may be half said.
 */
import { HookledgerError } from '../core/errors.ts'
import { nearest } from '../core/nearest.ts'
import type { Hookledger } from '../hookledger.ts'
import type { Destination } from '../outbox/destination.ts'

/** What a configuration exports as `drill`. All of it may be left out. */
export interface DrillConfig {
  /** Makes the app's own tables in the scratch database. */
  readonly setup?: ((db: { query(text: string): Promise<unknown> }) => Promise<void>) | undefined
  /** How the app takes a delivery; `hookledger.ingest(request)` where it is not said. */
  readonly ingest?:
    | ((
        hookledger: Hookledger,
        request: Parameters<Hookledger['ingest']>[0],
      ) => Promise<{ readonly status: number }>)
    | undefined
  /** The app's destinations, made for the drill's own urls; else each is one POST of the body to its url. */
  readonly destinations?:
    ((urls: Readonly<Record<string, string>>) => Readonly<Record<string, Destination>>) | undefined
}

const known = ['setup', 'ingest', 'destinations'] as const

/**
 * The checked `drill` of a configuration.
 *
 * @throws HookledgerError HKL_CONFIG_INVALID naming what is wrong
 */
export function drillConfigOf(exported: unknown): DrillConfig {
  if (exported === undefined) return {}
  if (typeof exported !== 'object' || exported === null)
    throw invalid('drill must be an object, such as { setup, ingest, destinations }')
  for (const [name, value] of Object.entries(exported)) {
    if (!known.some((each) => each === name)) {
      const near = nearest(name, known)
      throw invalid(`drill.${name} is unknown${near === null ? '' : `, did you mean ${near}?`}`)
    }
    if (value !== undefined && typeof value !== 'function')
      throw invalid(`drill.${name} must be a function`)
  }
  return exported as DrillConfig
}

function invalid(message: string): HookledgerError {
  return new HookledgerError('HKL_CONFIG_INVALID', message)
}
