/** Bounds work that may not heed its signal: the caller goes on at the signal, whatever the work does. */

/** What `ended` gives when the signal came first. */
export const early: unique symbol = Symbol('the signal came first')

/**
 * The result of the work, or `early` where the signal came first; what the work does after that
 * is nobody's. Rejects as the work does.
 */
export async function ended<T>(
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T | typeof early> {
  if (signal.aborted) return early
  let stop: () => void = () => undefined
  const cut = new Promise<typeof early>((resolve) => {
    // Work that heeds the signal knows more than that it came: it goes first.
    stop = () => setImmediate(() => resolve(early))
    signal.addEventListener('abort', stop, { once: true })
  })
  try {
    const working = work()
    // A rejection after the signal has nobody left to handle it.
    working.catch(() => undefined)
    return await Promise.race([working, cut])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/**
 * Runs work under a signal that ends with the given one, and after `ms` at the latest. Held by a timer
 * and a listener: combined signals of Node 20 can be collected before they fire.
 */
export async function withDeadline<T>(
  signal: AbortSignal,
  ms: number,
  work: (until: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController()
  const end = (): void => controller.abort()
  const timer = setTimeout(end, ms)
  signal.addEventListener('abort', end, { once: true })
  if (signal.aborted) end()
  try {
    return await work(controller.signal)
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', end)
  }
}
