/** How passes over a provider's records run: every option, its default and what it must be. */

/** The options of reconciliation with every default filled in. Times are in milliseconds. */
export interface ReconcileSettings {
  /** From the start of one scheduled pass to the start of the next. */
  readonly everyMs: number
  /** What a provider made more recently is not looked at: lists show records late. */
  readonly lagMs: number
  /** So much of what was looked at already is looked at again, for what was listed later still. */
  readonly overlapMs: number
  /** A window is gone through in slices of this length. */
  readonly sliceMs: number
  /** From one deep pass to the next. */
  readonly deepEveryMs: number
  /** How far a deep pass goes back. */
  readonly deepMs: number
  /** How long a pass waits until what it put into the inbox is decided. */
  readonly settleMs: number
  /** Calls to one provider a second. */
  readonly callsPerSecond: number
  /** Calls of one pass to one source; the next pass goes on from there. */
  readonly callsPerPass: number
  /** Records asked for at once, where the provider lets one choose. */
  readonly pageSize: number
  /** Whether events of types that no workflow handles are put into the inbox too. */
  readonly events: 'all' | 'handled'
  /** An order that has been in a state for so long without claiming anything is a finding. */
  readonly stuckAfterMs: number
  /** What a mirror follows and was not looked at for so long is looked at again. */
  readonly relookMs: number
}

/** The defaults. */
export const defaultReconcileSettings: ReconcileSettings = Object.freeze({
  everyMs: 300_000,
  lagMs: 120_000,
  overlapMs: 3_600_000,
  sliceMs: 3_600_000,
  deepEveryMs: 86_400_000,
  deepMs: 259_200_000,
  settleMs: 60_000,
  callsPerSecond: 20,
  callsPerPass: 10_000,
  pageSize: 100,
  events: 'all',
  stuckAfterMs: 86_400_000,
  relookMs: 86_400_000,
})

/** What is wrong with settings, in words that name the option; null: nothing. */
export function settingsProblem(settings: ReconcileSettings): string | null {
  for (const [name, value] of Object.entries(settings)) {
    if (name === 'events') {
      if (value !== 'all' && value !== 'handled')
        return `reconcile.events must be 'all' or 'handled'`
      continue
    }
    const least = name === 'lagMs' || name === 'overlapMs' || name === 'settleMs' ? 0 : 1
    if (!Number.isSafeInteger(value) || (value as number) < least)
      return `reconcile.${name} must be a ${least === 0 ? 'whole number, 0 or more' : 'positive integer'}`
  }
  if (settings.pageSize > 100) return 'reconcile.pageSize must be at most 100'
  return null
}
