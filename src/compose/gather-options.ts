/** How providers are asked: the option `gather`, checked and resolved once. */
import type { GatherSettings } from '../inbox/gather/gather-context.ts'
import { invalid, requireKnown } from './config-problem.ts'

/** The defaults: a few calls in a second, since the provider's limits are the app's too. */
export const defaultGatherSettings: GatherSettings = Object.freeze({
  callsPerSecond: 20,
  callsPerSecondPerAccount: 10,
  concurrency: 8,
  callMs: 10_000,
  leaseMs: 30_000,
  firstRetryMs: 1000,
  maxRetryMs: 300_000,
  breakerFailures: 5,
  breakerMs: 1000,
  maxBreakerMs: 60_000,
  overdueMs: 3_600_000,
})

/** Rates may be fractions: one call in ten seconds is 0.1. */
const rates: ReadonlySet<string> = new Set(['callsPerSecond', 'callsPerSecondPerAccount'])

/** @throws HookledgerError HKL_CONFIG_INVALID, one line that names the option */
export function resolveGatherOptions(given: Partial<GatherSettings> = {}): GatherSettings {
  if (typeof given !== 'object' || given === null)
    throw invalid('gather must be an object, such as { callsPerSecond: 20 }')
  for (const key of Object.keys(given))
    requireKnown('option of gather', key, Object.keys(defaultGatherSettings))
  const defined = Object.entries(given).filter(([, value]) => value !== undefined)
  const settings: GatherSettings = { ...defaultGatherSettings, ...Object.fromEntries(defined) }
  for (const [name, value] of Object.entries(settings)) {
    if (rates.has(name)) {
      if (!Number.isFinite(value) || value <= 0)
        throw invalid(`gather.${name} must be a positive number`)
    } else if (!Number.isSafeInteger(value) || value < 1)
      throw invalid(`gather.${name} must be a positive integer`)
  }
  if (settings.leaseMs < settings.callMs * 2)
    throw invalid(
      "gather.leaseMs must be at least twice gather.callMs: a request that is still under way is nobody else's",
    )
  return Object.freeze(settings)
}
