import { describe, expect, it } from 'vitest'
import { afterItsCauses } from '../../src/report/decision-times.ts'
import type { DecisionView, EventView } from '../../src/report/record-views.ts'
import type { TimelineEntry } from '../../src/report/timeline-entry.ts'

const began = '2026-01-01T00:00:00.375Z'
const came = '2026-01-01T00:00:00.418Z'

function told(what: TimelineEntry['what'], at: string): TimelineEntry {
  const none = { details: [], event_id: null, decision_id: null, links: [], figures: [] }
  return { at, what, text: what, ...none }
}

/** One decision, made from an answer of this time, of an event that was received at that one. */
function orderOf(fetched: unknown, received: string): (entry: TimelineEntry) => TimelineEntry {
  const decision = {
    decided_at: began,
    event_key: '1',
    evidence: { fetch: { about: 'plan p1', number: '2', evidence: '9', fetched_at: fetched } },
  } as unknown as DecisionView
  const event = { event_key: '1', received_at: received } as unknown as EventView
  return afterItsCauses({ decisions: [decision], events: [event] })
}

describe('a decision in a story', () => {
  it('stands at the time of the answer that it was made from, and says when its transaction began', () => {
    const inOrder = orderOf(came, began)
    expect(inOrder(told('decided', began))).toMatchObject({
      at: came,
      details: [`in the transaction that began ${began}`],
    })
  })

  it('takes along what came of it in the same commit, and nothing else of that moment', () => {
    const inOrder = orderOf(came, began)
    const times = (['recorded', 'found', 'closed', 'arrived', 'looked', 'acted'] as const).map(
      (what) => inOrder(told(what, began)).at,
    )
    expect(times).toEqual([came, came, came, began, began, began])
    expect(inOrder(told('recorded', '2026-01-01T00:00:00.376Z')).at).toBe(
      '2026-01-01T00:00:00.376Z',
    )
  })

  it('stands no earlier than its event, which can arrive while the transaction is under way', () => {
    expect(orderOf(undefined, came)(told('decided', began)).at).toBe(came)
  })

  it('keeps its own time where all of its causes are older, or their times cannot be read', () => {
    const entry = told('decided', began)
    expect(orderOf('2026-01-01T00:00:00.100Z', began)(entry)).toBe(entry)
    expect(orderOf('long ago', began)(entry)).toBe(entry)
  })
})
