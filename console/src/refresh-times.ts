/** How often what is on the screen is read again. */

/** Seconds between two readings, or never. */
export type RefreshSeconds = 2 | 5 | 15 | 30 | 0

/** The choices, 0 last: paused. */
export const refreshChoices: readonly RefreshSeconds[] = [2, 5, 15, 30, 0]

/** A remembered choice, or the default of 5 seconds. */
export function refreshOf(remembered: string | null): RefreshSeconds {
  if (remembered === null || remembered === '') return 5
  return refreshChoices.find((each) => each === Number(remembered)) ?? 5
}

/** The word for a choice. */
export function refreshText(seconds: RefreshSeconds): string {
  return seconds === 0 ? 'Paused' : `Every ${seconds} s`
}

/**
 * How long to wait until the next reading, in ms, or false for none: none while paused, and after failures
 * longer each time, up to a minute.
 */
export function refreshWait(seconds: RefreshSeconds, failures: number): number | false {
  if (seconds === 0) return false
  return Math.min(seconds * 1000 * 2 ** Math.min(failures, 5), Math.max(60_000, seconds * 1000))
}
