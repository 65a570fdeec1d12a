/** What a server and its worker process tell each other over the channel between them. */
import type { SignalMap } from '../core/signals.ts'
import type { LogLevel } from '../observe/log.ts'

/** What a worker process does. */
export type WorkRole = 'work' | 'gather' | 'dispatch' | 'reconcile'

/** To the worker. */
export type WorkOrder =
  /** There is something to do in these roles; answered with `awake`, so that at most one is under way. */
  | { readonly kind: 'wake'; readonly roles: readonly WorkRole[] }
  /** Finish what is in hand within so many milliseconds, and end. */
  | { readonly kind: 'stop'; readonly timeoutMs: number }
  | { readonly kind: 'log'; readonly level: LogLevel }

/** Signals that are passed on one by one; outcomes are passed on as counts. */
export type PassedSignal = (typeof passedSignals)[number]

/** Their names. */
export const passedSignals = [
  'inbox.batch.finished',
  'inbox.wait.rescued',
  'worker.loop.failed',
  'outbox.operation.ended',
  'outbox.attempt.failed',
  'outbox.destination.paused',
  'gather.answers.stored',
  'gather.request.failed',
  'gather.source.paused',
  'reconcile.run.ended',
] as const

/** From the worker. */
export type WorkReport =
  | { readonly kind: 'ready' }
  | { readonly kind: 'awake' }
  /** How many events had which outcome since the last report. */
  | { readonly kind: 'outcomes'; readonly counts: Readonly<Record<string, number>> }
  | {
      [N in PassedSignal]: {
        readonly kind: 'signal'
        readonly name: N
        readonly detail: SignalMap[N]
      }
    }[PassedSignal]
