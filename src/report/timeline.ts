/**
 * A record as one story in order of time and cause: what arrived, what was decided and why, what it made, what
 * was found, what a person did. Pure: the same record gives the same story.
 */
import { formatMoney } from '../core/money.ts'
import { afterItsCauses } from './decision-times.ts'
import { isSeenByPasses, type FindingView } from './findings.ts'
import { answerEntry, lookedFrom, namedEvidence } from './look-story.ts'
import type { OrderRecord } from './order-record.ts'
import { operationEntries, operationName } from './operation-story.ts'
import type { RunView } from './reconciliation.ts'
import type { ActView, DecisionView, EventView } from './record-views.ts'
import { eventReference } from './reference.ts'
import { repairEntries } from './repair-story.ts'
import type { TimelineEntry, TimelineFigure } from './timeline-entry.ts'
import { decisionLinks, targetOf } from './timeline-links.ts'

/** Entries of the same moment stand in this order: causes first. */
const order: readonly TimelineEntry['what'][] = [
  'arrived',
  'acted',
  'repaired',
  'looked',
  'decided',
  'recorded',
  'called',
  'found',
  'verified',
  'closed',
  'redelivered',
]

/** Tells a record as a story. */
export function timelineOf(record: OrderRecord): TimelineEntry[] {
  const events = new Map(record.events.map((event) => [event.event_key, event]))
  const named = new Set(record.decisions.flatMap(({ evidence }) => namedEvidence(evidence)))
  const inOrder = afterItsCauses(record)
  const entries = [
    ...record.events.flatMap(arrivals),
    ...record.decisions.map((decision) =>
      decided(record, decision, events.get(decision.event_key ?? '')),
    ),
    ...record.answers.map((answer) => answerEntry(answer, named)),
    ...record.operations.flatMap(operationEntries),
    ...record.findings.flatMap((finding) => found(finding, record.runs)),
    ...record.repairs.flatMap(repairEntries),
    ...record.acts.filter((act) => !isToldAsRepair(record, act)).map((act) => acted(record, act)),
  ]
  return entries
    .map((entry, index) => ({ entry: inOrder(entry), index }))
    .sort(
      (a, b) =>
        Date.parse(a.entry.at) - Date.parse(b.entry.at) ||
        order.indexOf(a.entry.what) - order.indexOf(b.entry.what) ||
        a.index - b.index,
    )
    .map(({ entry }) => entry)
}

function arrivals(event: EventView): TimelineEntry[] {
  const base = {
    event_id: event.event_id,
    decision_id: null,
    links: [eventReference(event)],
    figures: [],
  }
  const by = event.via === 'webhook' ? '' : ` by way of ${event.via}`
  const entries: TimelineEntry[] = [
    {
      ...base,
      at: event.received_at,
      what: 'arrived',
      text: `${event.event_type} ${event.event_id} arrived${by}`,
      details: [],
    },
  ]
  if (event.deliveries > 1 && event.last_delivered_at !== null) {
    const bodies =
      event.bodies > 1
        ? [`${event.bodies} different bodies came under this id; the first one counts`]
        : []
    entries.push({
      ...base,
      at: event.last_delivered_at,
      what: 'redelivered',
      text: `${event.event_id} was delivered again, the last of ${event.deliveries} times`,
      details: bodies,
    })
  }
  return entries
}

function decided(
  record: OrderRecord,
  decision: DecisionView,
  event: EventView | undefined,
): TimelineEntry {
  const what = event === undefined ? '' : `${event.event_type} ${event.event_id}: `
  return {
    at: decision.decided_at,
    what: 'decided',
    text: `${what}${decision.kind}${movement(decision)}`,
    details: decisionDetails(record, decision),
    event_id: event?.event_id ?? null,
    decision_id: decision.decision_id,
    links: decisionLinks(record, decision, event),
    figures: decisionFigures(record, decision),
  }
}

function movement({ from_state: from, to_state: to }: DecisionView): string {
  if (to === null) return ''
  if (from === null) return `, ${to}`
  return from === to ? `, stays ${to}` : `, ${from} → ${to}`
}

function decisionDetails(record: OrderRecord, decision: DecisionView): string[] {
  const id = decision.decision_id
  const evidence = isRecord(decision.evidence) ? decision.evidence : {}
  return [
    `because ${decision.reason}`,
    ...lookedFrom(evidence['fetch']),
    ...record.payments
      .filter((payment) => payment.decision_id === id)
      .map(
        (payment) =>
          `payment ${payment.payment_id} ${money(payment.amount, payment.currency)}${payment.applied ? '' : ', kept but not applied'}`,
      ),
    ...record.effects
      .filter((effect) => effect.decision_id === id)
      .map(
        (effect) =>
          `effect ${effectName(effect.effect_type, effect.effect_reference)}${effect.amount === null ? '' : ` ${money(effect.amount, effect.currency)}`}`,
      ),
    ...record.operations
      .filter((operation) => operation.decision_id === id)
      .map((operation) => `operation ${operationName(operation)} (${operation.operation_id})`),
    ...ownOperation(record, decision.kind, evidence['operation']),
    ...decidedAnew(evidence['redecided']),
    ...pairs(evidence['absorbed']).map((name) => `${name} had happened already: absorbed`),
    ...texts(evidence['granted']).map((name) => `granted ${name}`),
    ...texts(evidence['revoked']).map((name) => `revoked ${name}`),
    ...texts(evidence['would_grant']).map((name) => `in shadow: would grant ${name}`),
    ...texts(evidence['would_send']).map((name) => `in shadow: would send ${name}`),
    `decision ${id} by ${decision.actor}${decision.workflow_version === null ? '' : `, version ${decision.workflow_version}`}${decision.attempts > 1 ? `, attempt ${decision.attempts}` : ''}`,
  ]
}

/** A new decision tells which one it stands in the place of, and what it says of that event. */
function decidedAnew(told: unknown): string[] {
  if (!isRecord(told)) return []
  const { event, decision, as, because } = told
  return [
    `of ${String(event)}, in the place of decision ${String(decision)}: ${String(as)}, ${String(because)}`,
  ]
}

/** An event that our own call caused, and a decision that ended an operation, name it. */
function ownOperation(record: OrderRecord, kind: string, named: unknown): string[] {
  if (typeof named !== 'string') return []
  const known = record.operations.find((operation) => operation.operation_id === named)
  const what = known === undefined ? named : `${operationName(known)} (${named})`
  return [kind === 'canceled' ? `${what} is not sent` : `caused by our own operation ${what}`]
}

function found(finding: FindingView, runs: readonly RunView[]): TimelineEntry[] {
  const base = {
    event_id: finding.event_id,
    decision_id: null,
    links: [{ kind: 'finding', id: finding.finding_id }] as const,
    figures: [],
  }
  const times = finding.times_seen > 1 ? `, seen ${finding.times_seen} times` : ''
  const entries: TimelineEntry[] = [
    {
      ...base,
      at: finding.first_seen_at,
      what: 'found',
      text: `finding ${finding.kind} (${finding.class}, ${finding.severity})${times}`,
      details: [
        `${finding.finding_id}, of ${finding.owner}, due ${finding.due_at}`,
        ...figures(finding.evidence),
        ...seenBy(finding, finding.first_seen_at, runs),
      ],
    },
  ]
  if (finding.closed_at !== null) {
    entries.push({
      ...base,
      at: finding.closed_at,
      what: 'closed',
      text: `finding ${finding.kind} ${finding.state}`,
      details: [
        ...(finding.closed_because === null ? [] : [`because ${finding.closed_because}`]),
        finding.finding_id,
        ...seenBy(finding, finding.closed_at, runs),
      ],
    })
  }
  return entries
}

/** The pass that was under way: two that overlapped are both named. */
function seenBy(finding: FindingView, at: string, runs: readonly RunView[]): string[] {
  if (!isSeenByPasses(finding)) return []
  const moment = Date.parse(at)
  return runs
    .filter(
      (run) =>
        Date.parse(run.started_at) <= moment &&
        moment <= Date.parse(run.finished_at ?? run.seen_at),
    )
    .map((run) => `during the ${run.how} pass over ${run.source} by ${run.actor} (${run.run_id})`)
}

/** A repair is told once, with more than its act says. */
function isToldAsRepair({ repairs }: OrderRecord, { target, acted_at: at }: ActView): boolean {
  return repairs.some((each) => target === `finding:${each.finding_id}` && at === each.applied_at)
}

function acted(record: OrderRecord, act: ActView): TimelineEntry {
  return {
    at: act.acted_at,
    what: 'acted',
    text: `${act.actor} did ${act.act} ${act.target}`,
    details: [`because ${act.reason}`],
    event_id: null,
    decision_id: null,
    links: targetOf(record, act),
    figures: [],
  }
}

/** The money that it moved, of payments and effects. */
function decisionFigures(record: OrderRecord, { decision_id: id }: DecisionView): TimelineFigure[] {
  const moved = [
    ...record.payments.map((each) => ({ ...each, name: `payment ${each.payment_id}` })),
    ...record.effects.map((each) => ({
      ...each,
      name: `effect ${effectName(each.effect_type, each.effect_reference)}`,
    })),
  ]
  return moved.flatMap(({ decision_id: by, name, amount, currency }) =>
    by !== id || amount === null || currency === null
      ? []
      : [{ name, amount: amount.toString(), currency }],
  )
}

/** The figures of a finding's evidence, as `name value` pairs of one line. */
export function figures(evidence: unknown): string[] {
  if (!isRecord(evidence)) return []
  const shown = Object.entries(evidence).filter(
    ([, value]) => value !== null && typeof value !== 'object',
  )
  return shown.length === 0
    ? []
    : [shown.map(([key, value]) => `${key} ${String(value)}`).join(', ')]
}

/** `license`, or `refund re_1`. */
export function effectName(type: string, reference: string): string {
  return reference === '' ? type : `${type} ${reference}`
}

/** An amount with its currency, or nothing. */
export function money(amount: bigint | null, currency: string | null): string {
  return amount === null || currency === null ? '' : formatMoney({ amount, currency })
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
}

/** `[[type, reference], …]` as the engine writes them. */
function pairs(value: unknown): string[] {
  if (!Array.isArray(value)) return []
  return value.flatMap((each) =>
    Array.isArray(each) && typeof each[0] === 'string'
      ? [effectName(each[0], typeof each[1] === 'string' ? each[1] : '')]
      : [],
  )
}
