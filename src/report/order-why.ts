/**
 * Why an order is in its state, what was refused and why, and what is still open about it. Pure: the same record
 * gives the same answers.
 */
import type { FindingView } from './findings.ts'
import { openLook } from './look-story.ts'
import { openStates } from './operations.ts'
import { nextStep, operationName } from './operation-story.ts'
import type { OrderRecord } from './order-record.ts'
import type { DecisionView, EventView } from './record-views.ts'
import { eventReference, type Reference } from './reference.ts'
import type { IsoTime } from './row-values.ts'

/** What moved an order into the state in which it is. */
export interface StateReason {
  readonly state: string
  /** Null where the decision is older than those that are shown. */
  readonly since: IsoTime | null
  readonly text: string
  readonly decision_id: string | null
  readonly event: Reference | null
}

/** A change that was not made: it was a contradiction, or it waits. */
export interface RefusedChange {
  readonly at: IsoTime
  readonly decision_id: string
  readonly event: Reference | null
  readonly event_type: string | null
  /** `waits`: it is tried again when what it waits for comes. */
  readonly verdict: 'refused' | 'waits'
  readonly from_state: string | null
  /** The state that was asked for, where that was the reason. */
  readonly to_state: string | null
  readonly reason: string
  /** The findings that were opened with it. */
  readonly finding_ids: readonly string[]
}

/** Something unfinished, and what happens next. */
export interface OpenThing {
  readonly about: Reference | null
  readonly text: string
  /** When something happens by itself, or it is due; null where nothing does. */
  readonly at: IsoTime | null
  /** Whether nothing goes on until a person decides. */
  readonly asks: boolean
}

/** Why the order is in its state; null for what is no order yet. */
export function stateReason(record: OrderRecord): StateReason | null {
  const { order, decisions, omitted_decisions: omitted } = record
  if (order === null) return null
  const led = decisions.findLast(
    ({ kind, to_state: to }) => to !== null && kind !== 'deferred' && kind !== 'contradicted',
  )
  if (led !== undefined && led.to_state !== order.state) {
    const text = `its row says ${order.state}, its decisions lead to ${led.to_state}: somebody changed the row behind the ledger’s back`
    return { state: order.state, since: null, text, decision_id: led.decision_id, event: null }
  }
  const moved = decisions.findLast(
    (each) => each.to_state === order.state && each.from_state !== each.to_state,
  )
  if (moved === undefined) {
    const older = omitted > 0 ? `, by a decision older than the ${decisions.length} shown` : ''
    const text = `it is ${order.state}${older === '' ? ' since it was opened, and nothing has moved it' : older}`
    const since = older === '' ? order.opened_at : null
    return { state: order.state, since, text, decision_id: null, event: null }
  }
  const event = eventOf(record, moved)
  const by = event === null ? moved.actor : `${event.event_type} ${event.event_id}`
  const from = moved.from_state === null ? '' : `${moved.from_state} → `
  return {
    state: order.state,
    since: moved.decided_at,
    text: `${from}${order.state} by ${by}: ${moved.reason}`,
    decision_id: moved.decision_id,
    event: event === null ? null : eventReference(event),
  }
}

/** What was not done, the newest last. */
export function refusedChanges(record: OrderRecord): RefusedChange[] {
  const waiting = new Map(
    record.events.filter(({ state }) => state === 'deferred').map((each) => [each.event_key, each]),
  )
  return record.decisions.flatMap((decision, at) => {
    const isRefused = decision.kind === 'contradicted'
    const waits =
      decision.kind === 'deferred' &&
      decision.event_key !== null &&
      waiting.has(decision.event_key) &&
      // only the last word about an event that has none yet
      !record.decisions.slice(at + 1).some((each) => each.event_key === decision.event_key)
    if (!isRefused && !waits) return []
    return [refused(record, decision, isRefused ? 'refused' : 'waits')]
  })
}

function refused(
  record: OrderRecord,
  decision: DecisionView,
  verdict: RefusedChange['verdict'],
): RefusedChange {
  const event = eventOf(record, decision)
  const to = textIn(decision.evidence, 'to')
  return {
    at: decision.decided_at,
    decision_id: decision.decision_id,
    event: event === null ? null : eventReference(event),
    event_type: event?.event_type ?? null,
    verdict,
    from_state: decision.from_state,
    to_state: to === decision.from_state ? null : to,
    reason: decision.reason,
    finding_ids: record.findings
      .filter((each) => isOf(each, decision))
      .map((each) => each.finding_id),
  }
}

function isOf(finding: FindingView, { event_key: key }: DecisionView): boolean {
  return key !== null && finding.event_key === key
}

/** What is unfinished about a record, what asks for a person first. */
export function openThings(record: OrderRecord): OpenThing[] {
  const things = [
    ...record.findings.flatMap(openFinding),
    ...record.events.flatMap(openEvent),
    ...record.operations
      .filter((each) => openStates.includes(each.state))
      .map((operation): OpenThing => {
        const { at, text, asks } = nextStep(operation)
        const why = operation.last_error === null ? '' : ` after ${operation.last_error}`
        return {
          about: { kind: 'operation', id: operation.operation_id },
          text: `${operationName(operation)} is ${operation.state}${why}: ${text}`,
          at,
          asks,
        }
      }),
    ...record.looks.flatMap((look): OpenThing[] => {
      const text = openLook(look)
      return text === null ? [] : [{ about: null, text, at: look.next_request_at, asks: false }]
    }),
  ]
  return [...things.filter(({ asks }) => asks), ...things.filter(({ asks }) => !asks)]
}

function openFinding(finding: FindingView): OpenThing[] {
  if (finding.state !== 'open' && finding.state !== 'repairing') return []
  const { kind, severity, owner, overdue } = finding
  return [
    {
      about: { kind: 'finding', id: finding.finding_id },
      text: `finding ${kind} (${severity}) of ${owner}${overdue ? ' is overdue' : ''}${finding.state === 'repairing' ? ', repaired and not verified yet' : ''}`,
      at: finding.due_at,
      asks: finding.class === 'contradiction' && finding.state === 'open',
    },
  ]
}

function openEvent(event: EventView): OpenThing[] {
  const { event_type: type, event_id: id, state, last_error: error, waits_for: waits } = event
  const about = eventReference(event)
  const name = `${type} ${id}`
  switch (state) {
    case 'deferred':
      return [{ about, text: `${name} waits for ${waits}`, at: event.deadline_at, asks: false }]
    case 'dead':
      return [{ about, text: `${name} is dead: ${error}`, at: null, asks: true }]
    case 'pending': {
      const after = error === null ? '' : ` after ${error}`
      const what = waits === null ? '' : `: waits for ${waits}`
      const text = `${name} is not decided yet${what}${after}`
      return [{ about, text, at: event.next_attempt_at, asks: false }]
    }
    default:
      return []
  }
}

function eventOf(record: OrderRecord, { event_key: key }: DecisionView): EventView | null {
  return key === null ? null : (record.events.find((each) => each.event_key === key) ?? null)
}

function textIn(value: unknown, key: string): string | null {
  if (typeof value !== 'object' || value === null || !(key in value)) return null
  const found = (value as Record<string, unknown>)[key]
  return typeof found === 'string' ? found : null
}
