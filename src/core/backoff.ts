/** Exponential backoff with full jitter: pure, the caller brings the randomness. */

/** Limits of a backoff, in milliseconds. */
export interface BackoffOptions {
  readonly firstMs: number
  readonly maxMs: number
}

/**
 * The delay before attempt `failures + 1`, in milliseconds: between half and all of
 * `first * 2^(failures - 1)`, at most `maxMs`.
 *
 * @param failures how many attempts failed so far, 1 or more
 * @param random a number in [0, 1)
 */
export function backoffMs(failures: number, random: number, options: BackoffOptions): number {
  const ceiling = Math.min(options.maxMs, options.firstMs * 2 ** Math.min(failures - 1, 40))
  return Math.round(ceiling / 2 + (ceiling / 2) * random)
}
