/**
 * Signals that end a server. The first lets it finish; another one stops it at once, but npm and the
 * terminal both send the first, so that another one counts only from a second later.
 */

/** Signals that are answered. */
const endings = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** Milliseconds from the first signal during which further ones are the same. */
const sameSignalMs = 1000

/** A server's ear for signals. */
export interface Shutdown {
  /** Aborted with the first signal. */
  readonly signal: AbortSignal
  /** Resolves with the first signal. */
  readonly requested: Promise<NodeJS.Signals>
  /** Ends it as a signal would (the server cannot go on). */
  request(): void
}

/** Listens from now on. `stopAtOnce` is called for a signal that means it. */
export function listenForShutdown(stopAtOnce: (signal: NodeJS.Signals) => void): Shutdown {
  const controller = new AbortController()
  let firstAt: number | undefined
  let begin: (signal: NodeJS.Signals) => void = () => {}
  const requested = new Promise<NodeJS.Signals>((resolve) => {
    begin = resolve
  })
  const heard = (signal: NodeJS.Signals): void => {
    if (firstAt === undefined) {
      firstAt = performance.now()
      controller.abort()
      begin(signal)
    } else if (performance.now() - firstAt >= sameSignalMs) stopAtOnce(signal)
  }
  for (const signal of endings) process.on(signal, heard)
  return { signal: controller.signal, requested, request: () => heard('SIGTERM') }
}
