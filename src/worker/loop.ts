/**
 * One start/stop protocol for every background loop: it runs while there is work, idles with backoff
 * and jitter when there is none, wakes at once when told, and survives its own failures.
 */
import type { Signals } from '../core/signals.ts'

/** How a loop behaves. */
export interface LoopOptions {
  readonly name: string
  /** One turn. Resolves to true when there may be more to do at once. */
  readonly turn: () => Promise<boolean>
  /** The first idle wait, in milliseconds; doubles up to `maxIdleMs`. */
  readonly minIdleMs: number
  readonly maxIdleMs: number
  readonly signals: Signals
}

/** A background loop. */
export interface Loop {
  start(): void
  /** Runs a turn now, or right after the one that is running. */
  wake(): void
  /** Whether it waits for work: waking it starts a turn at once. */
  isIdle(): boolean
  /** Stops after the turn that is running; resolves when it ended. */
  stop(): Promise<void>
}

/** Creates a loop. It holds the process only while a turn runs. */
export function createLoop(options: LoopOptions): Loop {
  let running: Promise<void> | null = null
  let stopped = false
  let woken = false
  let interrupt: (() => void) | null = null

  const idle = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      const timer = setTimeout(done, ms)
      function done(): void {
        clearTimeout(timer)
        interrupt = null
        resolve()
      }
      interrupt = done
    })

  const run = async (): Promise<void> => {
    let waitMs = options.minIdleMs
    while (!stopped) {
      woken = false
      let more = false
      try {
        more = await options.turn()
        if (more) waitMs = options.minIdleMs
      } catch (error) {
        waitMs = Math.max(waitMs, Math.min(1000, options.maxIdleMs))
        options.signals.emit('worker.loop.failed', {
          loop: options.name,
          message: messageOf(error),
        })
      }
      if (more || woken || stopped) continue
      await idle(waitMs * (0.75 + Math.random() * 0.5))
      if (woken) waitMs = options.minIdleMs
      else waitMs = Math.min(options.maxIdleMs, waitMs * 2)
    }
  }

  return {
    start() {
      stopped = false
      running ??= run()
    },
    wake() {
      woken = true
      interrupt?.()
    },
    isIdle: () => interrupt !== null && !woken,
    async stop() {
      stopped = true
      interrupt?.()
      await running
      running = null
    },
  }
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown failure'
  const code = 'code' in error && typeof error.code === 'string' ? `${error.code}: ` : ''
  return `${code}${error.message}`.slice(0, 300)
}
