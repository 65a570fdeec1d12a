/**
 * When decisions were made, for a story in order of cause. A decision carries the time at which its transaction
 * began; what it was made from was read later in it, and may have come in between. Pure.
 */
import { fetchedAt } from './look-story.ts'
import type { OrderRecord } from './order-record.ts'
import type { IsoTime } from './row-values.ts'
import type { TimelineEntry } from './timeline-entry.ts'

/** What a decision's transaction writes with the time of its beginning. */
const writtenWith: readonly TimelineEntry['what'][] = ['decided', 'recorded', 'found', 'closed']

/** Tells what was decided, and what came of it in the same commit, no earlier than what it was decided from. */
export function afterItsCauses(
  record: Pick<OrderRecord, 'decisions' | 'events'>,
): (entry: TimelineEntry) => TimelineEntry {
  const received = new Map(record.events.map((event) => [event.event_key, event.received_at]))
  const laterOf = new Map<IsoTime, IsoTime>()
  for (const { decided_at: began, event_key: key, evidence } of record.decisions) {
    for (const cause of [fetchedAt(evidence), received.get(key ?? '') ?? null]) {
      if (cause !== null && isLater(cause, laterOf.get(began) ?? began)) laterOf.set(began, cause)
    }
  }
  return (entry) => {
    const at = laterOf.get(entry.at)
    if (at === undefined || !writtenWith.includes(entry.what)) return entry
    if (entry.what !== 'decided') return { ...entry, at }
    const began = `in the transaction that began ${entry.at}`
    return { ...entry, at, details: [...entry.details, began] }
  }
}

function isLater(a: IsoTime, b: IsoTime): boolean {
  return Date.parse(a) > Date.parse(b)
}
