/**
 * Lets many run side by side, or one alone: a suspect runs only while nothing else of its process is
 * in work, so that what it ends is nobody else's.
 */

/** A gate of one process. */
export interface Gate {
  shared<T>(work: () => Promise<T>): Promise<T>
  alone<T>(work: () => Promise<T>): Promise<T>
}

/** A gate with nothing inside. */
export function createGate(): Gate {
  let inside = 0
  let lone: Promise<unknown> | null = null
  let emptied: (() => void) | null = null

  return {
    async shared(work) {
      while (lone !== null) await lone.catch(() => {})
      inside++
      try {
        return await work()
      } finally {
        inside--
        if (inside === 0) emptied?.()
      }
    },
    async alone(work) {
      while (lone !== null) await lone.catch(() => {})
      const run = (async () => {
        if (inside > 0) await new Promise<void>((resolve) => (emptied = resolve))
        emptied = null
        return work()
      })()
      lone = run
      try {
        return await run
      } finally {
        lone = null
      }
    },
  }
}
