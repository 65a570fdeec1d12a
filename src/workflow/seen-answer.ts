/**
 * A record of the provider's in the place of an answer about it: for comparing what is, never for deciding. It was
 * not asked for under a number, so that nothing tells what is newer.
 */
import { freezeJson } from './any-event.ts'
import type { MirrorAnswer } from './gathering.ts'
import type { Name } from './order.ts'
import type { ProviderRecord } from './records.ts'

/** The record as an answer that nothing was decided from yet. */
export function seenAnswer(object: Name, record: Pick<ProviderRecord, 'object'>): MirrorAnswer {
  return {
    object,
    current: freezeJson(record.object),
    evidenceId: 0n,
    number: 1n,
    applied: 0n,
    fetchedAt: new Date(0),
    sha256: '',
  }
}
