/** What a server and its worker process tell each other over the channel between them. */
import type { LogLevel } from '../observe/log.ts'
import type { MeterReadings } from '../observe/meter-buffer.ts'

/** What a worker process does. */
export type WorkRole = 'work' | 'gather' | 'dispatch' | 'reconcile'

/** To the worker. */
export type WorkOrder =
  /** There is something to do in these roles; answered with `awake`, so that at most one is under way. */
  | { readonly kind: 'wake'; readonly roles: readonly WorkRole[] }
  /** Finish what is in hand within so many milliseconds, and end. */
  | { readonly kind: 'stop'; readonly timeoutMs: number }
  | { readonly kind: 'log'; readonly level: LogLevel }

/** From the worker. */
export type WorkReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'awake' }
  /** What was counted since the last report. */
  | { readonly kind: 'counted'; readonly readings: MeterReadings }
