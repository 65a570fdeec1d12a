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
 * How long to wait until the next reading, in ms, or false for none: none while paused. While readings fail, half as
 * long as they have failed by now, up to a minute: a short outage is over on the screen soon after it is over.
 */
export function refreshWait(seconds: RefreshSeconds, failedForMs: number): number | false {
  if (seconds === 0) return false
  return Math.max(seconds * 1000, Math.min(failedForMs / 2, 60_000))
}
