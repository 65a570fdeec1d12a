/** Tells what became of requests, after the commit that made it so. Never an answer or a secret. */
import type { Signals } from '../../core/signals.ts'
import type { SettleReport } from './settle.ts'

/** Emits the signals of what was settled. */
export function tellSettled(
  signals: Signals,
  { readied, answered, failed, breakers }: SettleReport,
): void {
  if (answered > 0) signals.emit('gather.answers.stored', { answers: answered, events: readied })
  for (const { fetch, kind, text, nextInMs } of failed) {
    signals.emit('gather.request.failed', {
      source: fetch.source.name,
      account: fetch.source.account,
      about: `${fetch.kind} ${fetch.objectId}`,
      orderId: fetch.orderId,
      kind,
      attempts: fetch.attempts + 1,
      error: text,
      nextInMs,
    })
  }
  for (const { source, account, failures, forMs } of breakers) {
    if (forMs === null) signals.emit('gather.source.resumed', { source, account })
    else signals.emit('gather.source.paused', { source, account, failures, forMs })
  }
}
