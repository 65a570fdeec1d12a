/** Looks at a provider in words: what an answer was to, when it was asked and what came of it. Pure. */
import type { AnswerView, LookView } from './looks.ts'
import { eventReference } from './reference.ts'
import type { TimelineEntry } from './timeline-entry.ts'

/** `plan p1`, or what was gathered for an event. */
export function lookedAtName({
  kind,
  object_id: id,
}: Pick<LookView, 'kind' | 'object_id'>): string {
  return kind === 'event' ? `what is gathered for event:${id}` : `${kind} ${id}`
}

/** The entry of an answer. */
export function answerEntry(answer: AnswerView, decided: ReadonlySet<string>): TimelineEntry {
  const found = answer.is_found ? '' : ', there is none (any more)'
  const fate = answer.is_late
    ? ['it came after the answer to a later request: it changed nothing']
    : decided.has(answer.evidence_id)
      ? []
      : ['nothing was decided from it']
  return {
    at: answer.fetched_at,
    what: 'looked',
    text: `looked at ${lookedAtName(answer)}: answer ${answer.number}, asked ${answer.requested_at}${found}`,
    details: [
      ...fate,
      `evidence ${answer.evidence_id}, ${answer.body_bytes} bytes, sha256 ${answer.body_sha256.slice(0, 12)}`,
    ],
    event_id: null,
    decision_id: null,
    links:
      answer.kind === 'event'
        ? [eventReference({ source: answer.source, event_id: answer.object_id })]
        : [],
    figures: [],
  }
}

/** What a decision was made from, by its evidence: `looked at plan p1: answer 7`. */
export function lookedFrom(fetch: unknown): string[] {
  const { about, number, evidence, fetched_at: at } = recordOf(fetch)
  if (typeof about !== 'string' || typeof number !== 'string') return []
  return [`looked at ${about}: answer ${number} of ${String(at)} (evidence ${String(evidence)})`]
}

/** The evidence that decisions name. */
export function namedEvidence(evidence: unknown): string[] {
  const { evidence: id } = recordOf(recordOf(evidence)['fetch'])
  return typeof id === 'string' ? [id] : []
}

/** When the answer came that a decision was made from; null without one. */
export function fetchedAt(evidence: unknown): string | null {
  const { fetched_at: at } = recordOf(recordOf(evidence)['fetch'])
  return typeof at === 'string' && !Number.isNaN(Date.parse(at)) ? at : null
}

/** What is still asked for. */
export function openLook(look: LookView): string | null {
  if (look.asked_at === null) return null
  const events = look.waiting === 1 ? '1 event waits' : `${look.waiting} events wait`
  const failing =
    look.attempts === 0
      ? ''
      : `, failed ${look.attempts} times${look.last_error === null ? '' : `: ${look.last_error}`}`
  return `${lookedAtName(look)} is to be looked at since ${look.asked_at}, ${events} for it${failing}`
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}
