/** What the gatherer tells, as lines of the log. */
import type { FailedRequest, Signals } from '../core/signals.ts'
import type { LogTarget } from './log-target.ts'

/** Logs what the gatherer tells. Returns what stops it. */
export function logGathering(signals: Signals, log: LogTarget): (() => void)[] {
  return [
    signals.on('gather.answers.stored', (stored) => log.debug(stored, 'answers stored')),
    signals.on('gather.request.failed', (failed) =>
      log[failed.kind === 'later' ? 'warn' : 'error'](failedFields(failed), failedText(failed)),
    ),
    signals.on('gather.source.paused', ({ source, account, failures, forMs }) =>
      log.warn(
        { source, account: account ?? undefined, failures, for_ms: Math.round(forMs) },
        `${who(source, account)} failed ${failures} times in a row: nothing is asked for ${Math.round(forMs)} ms, then once`,
      ),
    ),
    signals.on('gather.source.resumed', ({ source, account }) =>
      log.info({ source, account: account ?? undefined }, `${who(source, account)} answers again`),
    ),
  ]
}

function who(source: string, account: string | null): string {
  return account === null ? `source ${source}` : `account ${account} of source ${source}`
}

function failedFields(failed: FailedRequest): Record<string, unknown> {
  return {
    source: failed.source,
    account: failed.account,
    about: failed.about,
    order_id: failed.orderId,
    attempts: failed.attempts,
    next_in_ms: Math.round(failed.nextInMs),
  }
}

function failedText(failed: FailedRequest): string {
  return [
    `${failed.source} was asked about ${failed.about} for order ${failed.orderId}: ${failed.error}`,
    ...(failed.kind === 'refused' ? ['a person must act'] : []),
    `again in ${Math.round(failed.nextInMs)} ms`,
  ].join(' · ')
}
