/** How a function says that its call did nothing: whatever else it throws means that nobody knows. */

/**
 * Thrown by a destination's function when the call was certainly not done. It is tried again, after
 * `retryAfterMs` where given; with `forGood` it is refused for good, and no earlier call of the same
 * operation was done either.
 * @example throw new NotDone('the mailbox is full', { retryAfterMs: 60_000 })
 */
export class NotDone extends Error {
  readonly notDone = true as const
  readonly retryAfterMs: number | undefined
  readonly forGood: boolean

  constructor(message: string, options: { retryAfterMs?: number; forGood?: boolean } = {}) {
    super(message)
    this.name = 'NotDone'
    this.retryAfterMs = options.retryAfterMs
    this.forGood = options.forGood ?? false
  }
}

/** Whether an error, from whichever copy of this module, says that the call was not done. */
export function isNotDone(
  error: unknown,
): error is { message?: unknown; retryAfterMs?: unknown; forGood?: unknown } {
  return typeof error === 'object' && error !== null && 'notDone' in error && error.notDone === true
}
