/**
 * What can be said of a workflow before it meets an event. It only warns: each warning names what is
 * probably a mistake, and what to do about it.
 */
import { nearest } from '../core/nearest.ts'
import { factsOfBody } from './body-event.ts'
import { checkConfluence, lookText } from './confluence.ts'
import { isUnsaid } from './history-provider.ts'
import { HistoryRun } from './history-run.ts'
import type { OutboxPort } from './outbox-port.ts'
import type { PlayRun } from './play.ts'
import { entitles, isReachable, type History, type Workflow } from './workflow.ts'

/** What a warning is about. */
export type WarningKind =
  | 'no_handlers'
  | 'unreachable_state'
  | 'no_way_out'
  | 'never_sent'
  | 'opens_without_accepts'
  | 'not_checked'
  | 'not_confluent'
  | 'history_idle'
  | 'history_fails'
  | 'effect_never_made'
  | 'never_looked'
  | 'gathered_unsaid'

/** A probable mistake. */
export interface Warning {
  readonly workflow: string
  readonly kind: WarningKind
  readonly message: string
}

/** Event types that sources are known to send, by source name; undefined or absent: not known. */
export type SentTypes = ReadonlyMap<string, readonly string[] | undefined>

/**
 * Checks one workflow; its histories are played, in every order where they are short. With the outbox of
 * a configuration, what they send must have a destination there.
 */
export function checkWorkflow(
  workflow: Workflow,
  sends: SentTypes,
  outbox?: OutboxPort,
): Warning[] {
  return [
    ...checkStates(workflow),
    ...checkTypes(workflow, sends),
    ...checkOpening(workflow),
    ...checkHistories(workflow, outbox),
  ].map(([kind, text]) => ({
    workflow: workflow.name,
    kind,
    message: `workflow "${workflow.name}": ${text}`,
  }))
}

type Found = readonly [WarningKind, string]

function checkStates(workflow: Workflow): Found[] {
  const found: Found[] = []
  // a mirror leads from any state into any other: transitions only describe
  if ([...workflow.handlers.values()].some(({ mirror }) => mirror !== undefined)) return found
  for (const state of workflow.states.keys()) {
    if (state !== workflow.initial && !isReachable(workflow, workflow.initial, state)) {
      found.push([
        'unreachable_state',
        `no transitions lead from "${workflow.initial}" to state "${state}"`,
      ])
    }
    const leaves = (workflow.transitions.get(state) ?? []).some((to) => to !== state)
    if (entitles(workflow, state) && !leaves) {
      found.push([
        'no_way_out',
        `state "${state}" entitles and has no way out: what it grants could never be revoked`,
      ])
    }
  }
  return found
}

function checkTypes(workflow: Workflow, sends: SentTypes): Found[] {
  if (workflow.handlers.size === 0) return [['no_handlers', 'it handles no events: add .on(…)']]
  const known = new Set<string>()
  for (const source of workflow.sources) {
    const types = sends.get(source)
    // a source that may send anything leaves nothing to say
    if (types === undefined) return []
    for (const type of types) known.add(type)
  }
  const found: Found[] = []
  for (const type of workflow.handlers.keys()) {
    if (known.has(type)) continue
    const near = nearest(type, known)
    const hint = near === null ? '' : `, did you mean "${near}"?`
    found.push(['never_sent', `no source of it sends "${type}"${hint}`])
  }
  return found
}

function checkOpening(workflow: Workflow): Found[] {
  if (workflow.opens !== 'event' || workflow.accepts !== undefined) return []
  // a mirror records no payment
  if ([...workflow.handlers.values()].every(({ mirror }) => mirror !== undefined)) return []
  return [
    [
      'opens_without_accepts',
      'events open its orders and it has no accepts: a payment of any amount, for anything, is good enough',
    ],
  ]
}

function checkHistories(workflow: Workflow, outbox: OutboxPort | undefined): Found[] {
  const { histories = [] } = workflow
  if (histories.length === 0) {
    return [
      [
        'not_checked',
        'not checked: it has no histories, so that nothing shows whether the order of events matters',
      ],
    ]
  }
  const found: Found[] = []
  const made = new Set<string>()
  for (const history of histories) found.push(...playHistory(workflow, history, made, outbox))
  for (const effect of workflow.effects.keys()) {
    if (made.has(effect)) continue
    found.push(['effect_never_made', `no history of it makes the declared effect "${effect}"`])
  }
  for (const failure of checkConfluence(workflow, histories, { outbox }).failures) {
    found.push([
      'not_confluent',
      `not confluent: history "${failure.history}" ends differently when its events come as ` +
        `${failure.order.join(', then ')}${lookText(failure.looks)}: ${failure.differs.join('; ')}`,
    ])
  }
  found.push(...checkLooks(workflow, histories))
  return found
}

/** Mirrors of which no history has an event, and events for which something is gathered that is not said. */
function checkLooks(workflow: Workflow, histories: readonly History[]): Found[] {
  const found: Found[] = []
  const types = new Set<string>()
  for (const history of histories) {
    for (const { eventId, eventType } of history.events.map((body) => factsOfBody(body))) {
      types.add(eventType)
      if (!isUnsaid(workflow.handlers.get(eventType), history, eventId)) continue
      const text = `history "${history.name}" does not say what gather finds out for ${eventType} ${eventId}: add it to gathered`
      found.push(['gathered_unsaid', text])
    }
  }
  const mirrors = new Map<unknown, string[]>()
  for (const [type, { mirror }] of workflow.handlers)
    if (mirror !== undefined) mirrors.set(mirror, [...(mirrors.get(mirror) ?? []), type])
  for (const of of mirrors.values()) {
    if (of.some((type) => types.has(type))) continue
    found.push([
      'never_looked',
      `no history of it has an event that its mirror of ${of[0]} handles`,
    ])
  }
  return found
}

function playHistory(
  workflow: Workflow,
  history: History,
  made: Set<string>,
  outbox: OutboxPort | undefined,
): Found[] {
  const run = new HistoryRun([workflow], history, outbox)
  const events = Array.from({ length: run.events }, (_, step) => [step])
  const played = run.play(run.opening === null ? events : [[run.opening], ...events])
  for (const ledger of played.orders.values()) {
    for (const { type } of ledger.effects) made.add(type)
  }
  return [...failuresOf(played, history), ...idleness(played, history)]
}

function failuresOf(played: PlayRun, history: History): Found[] {
  return played.events.flatMap(({ event, state, outcome }): Found[] =>
    state === 'dead'
      ? [
          [
            'history_fails',
            `in history "${history.name}", ${event.eventType} ends dead: ${outcome?.reason}`,
          ],
        ]
      : [],
  )
}

/** A history of which nothing is handled proves nothing. */
function idleness(played: PlayRun, history: History): Found[] {
  if (played.events.some(({ state }) => state !== 'ignored')) return []
  const reason = played.events[0]?.outcome?.reason ?? 'it has no events'
  return [['history_idle', `nothing in history "${history.name}" concerns it: ${reason}`]]
}
