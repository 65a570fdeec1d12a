/** An explanation as a person reads it: what it is now, then the story, then what is still open. */
import type { ExplainedRecord, Explanation } from '../report/explain.ts'
import { openLook } from '../report/look-story.ts'
import { openStates } from '../report/operations.ts'
import { nextStep, operationName } from '../report/operation-story.ts'
import type { SubjectActView } from '../report/acts-about-subjects.ts'
import type { EventView, OperationRecord } from '../report/record-views.ts'
import { effectName, figures, money } from '../report/timeline.ts'
import type { TimelineEntry } from '../report/timeline-entry.ts'
import type { Style } from './output.ts'
import { columns, moment, relative } from './table.ts'

/** The text of an explanation. */
export function explainText(found: Explanation, style: Style): string {
  const { asked, subject_acts: said, records } = found
  const others = records.length > 1 ? [`${asked.id} leads to ${records.length} orders`, ''] : []
  return [
    ...others,
    ...(said.length === 0 ? [] : [...said.map(saidLine), '']),
    ...records.flatMap((record, index) => [
      ...(index > 0 ? [''] : []),
      recordText(found, record, style),
    ]),
  ].join('\n')
}

function saidLine(act: SubjectActView): string {
  const [, name = ''] = /^\w+:(.*)$/s.exec(act.target) ?? []
  const what =
    act.source === null
      ? `${name} became ${act.subject}`
      : `customer ${name} of ${act.source} is ${act.subject}`
  return `${what}, said ${act.actor} ${moment(act.acted_at)}: ${act.reason}`
}

function recordText({ asked }: Explanation, record: ExplainedRecord, style: Style): string {
  return [
    ...headline(asked, record, style),
    '',
    ...(record.omitted_decisions === 0
      ? []
      : [style.faint(`… ${record.omitted_decisions} older decisions are left out`)]),
    ...story(record.timeline, asked.kind === 'event' ? asked.id : null, style),
    ...section('now', nowLines(record, style), style),
    ...section('open', openLines(record, style), style),
  ].join('\n')
}

function headline(asked: Explanation['asked'], record: ExplainedRecord, style: Style): string[] {
  const { order } = record
  const found =
    asked.kind === 'order'
      ? []
      : [
          `${asked.id} is ${article(asked.kind)}${order === null ? '' : ` of order ${order.order_id}`}`,
        ]
  if (order === null) {
    const operations = record.operations.map(
      (operation) => `operation ${operationName(operation)} is ${operation.state}`,
    )
    return [style.strong(found[0] ?? asked.id), ...record.events.map(eventLine), ...operations]
  }
  const state = order.entitles ? style.good(order.state) : style.warning(order.state)
  const facts = [
    order.subject === null ? '' : `for ${order.subject}`,
    order.expected_amount === null
      ? ''
      : `expected ${money(order.expected_amount, order.currency)}`,
    order.provider_account === null ? '' : `account ${order.provider_account}`,
    `opened ${moment(order.opened_at)}`,
  ]
  return [
    ...found,
    `${style.strong(`order ${order.order_id}`)} of workflow ${order.workflow} is ${state}${order.entitles ? ', which entitles' : ''}`,
    facts.filter((fact) => fact !== '').join(', '),
    ...(order.names.length === 0
      ? []
      : [`also ${order.names.map((name) => `${name.kind} ${name.name}`).join(', ')}`]),
  ]
}

function article(kind: Explanation['asked']['kind']): string {
  if (kind === 'event' || kind === 'operation') return `an ${kind}`
  if (kind === 'effect') return 'the reference of an effect'
  return `a ${kind}`
}

function eventLine(event: EventView): string {
  const { event_type: type, source, state } = event
  const details = [
    `from ${source}`,
    `${event.deliveries} ${event.deliveries === 1 ? 'delivery' : 'deliveries'}`,
    ...(event.attempts === 0 ? [] : [`attempt ${event.attempts}`]),
    ...(event.next_attempt_at === null ? [] : [`next attempt ${relative(event.next_attempt_at)}`]),
    ...(event.last_error === null ? [] : [`last error: ${event.last_error}`]),
  ]
  return `${type} ${event.event_id} is ${state}: ${details.join(', ')}`
}

const marks: Readonly<Record<TimelineEntry['what'], string>> = {
  arrived: '·',
  redelivered: '·',
  decided: '▸',
  recorded: '·',
  called: '→',
  looked: '◦',
  found: '!',
  repaired: '»',
  verified: '✓',
  closed: '✓',
  acted: '»',
}

function story(
  timeline: readonly TimelineEntry[],
  askedEvent: string | null,
  style: Style,
): string[] {
  const lines: string[] = []
  let day = ''
  for (const entry of timeline) {
    const [date = '', time = ''] = moment(entry.at).split(' ')
    if (date !== day) lines.push(style.faint(date))
    day = date
    const about =
      askedEvent !== null && entry.event_id === askedEvent ? style.strong(entry.text) : entry.text
    const text = entry.what === 'found' ? style.warning(about) : about
    lines.push(`  ${style.faint(time)} ${marks[entry.what]} ${text}`)
    for (const detail of entry.details) lines.push(`${' '.repeat(17)}${style.faint(detail)}`)
  }
  return lines
}

function section(title: string, lines: readonly string[], style: Style): string[] {
  return lines.length === 0 ? [] : ['', style.strong(title), ...lines.map((line) => `  ${line}`)]
}

function nowLines(record: ExplainedRecord, style: Style): string[] {
  const rows = [
    ...record.payments.map((payment) => [
      'payment',
      payment.payment_id,
      `${money(payment.amount, payment.currency)}${payment.applied ? '' : ', not applied'}`,
    ]),
    ...record.effects.map((effect) => [
      'effect',
      effectName(effect.effect_type, effect.effect_reference),
      `${money(effect.amount, effect.currency)}${effect.payment_id === null ? '' : ` of ${effect.payment_id}`} (decision ${effect.decision_id})`.trim(),
    ]),
    ...record.entitlements.map((row) => [
      'entitlement',
      `${row.subject} ${row.entitlement}${row.quantity === 1n ? '' : ` ×${row.quantity}`}`,
      entitlementState(row, style),
    ]),
    ...record.operations.map((operation) => [
      'operation',
      operationName(operation),
      operationState(operation, style),
    ]),
  ]
  return rows.length === 0 ? [] : columns(rows).split('\n')
}

function entitlementState(row: ExplainedRecord['entitlements'][number], style: Style): string {
  const until = row.valid_until === null ? '' : `, until ${moment(row.valid_until)}`
  if (row.active) return `${style.good('active')}${until}, granted by decision ${row.granted_by}`
  return `${row.stated ? 'dormant: the state of the order does not entitle' : 'no longer stated'}, changed by decision ${row.changed_by}`
}

/** Its state, with what the destination said of it. */
function operationState(operation: OperationRecord, style: Style): string {
  const { state, attempts, receipt } = operation
  const bad = state === 'dead' || state === 'uncertain'
  const shown = bad ? style.bad(state) : state === 'sent' ? style.good(state) : state
  const tries = attempts > 1 ? `, attempt ${attempts}` : ''
  const [said] = figures(receipt)
  return `${shown}${tries}${said === undefined ? '' : `: ${said}`} (${operation.operation_id})`
}

function openOperation(operation: OperationRecord, style: Style): string {
  const { at, text, asks } = nextStep(operation)
  const why = operation.last_error === null ? '' : ` after ${operation.last_error}`
  const line = `${operationName(operation)} is ${operation.state}${why}: ${at === null ? '' : `${relative(at)} `}${text}`
  return asks ? style.bad(line) : line
}

function openLines(record: ExplainedRecord, style: Style): string[] {
  return [
    ...record.events
      .filter((event) => event.state === 'deferred')
      .map((event) => {
        const until =
          event.deadline_at === null
            ? ''
            : ` until ${moment(event.deadline_at)} (${relative(event.deadline_at)})`
        return `${event.event_type} ${event.event_id} waits for ${event.waits_for}${until}`
      }),
    ...record.events
      .filter((event) => event.state === 'dead')
      .map((event) =>
        style.bad(
          `${event.event_type} ${event.event_id} is dead: ${event.last_error}; try: hookledger replay ${event.event_id}`,
        ),
      ),
    ...record.events
      .filter((event) => event.state === 'pending')
      .map((event) => {
        const next =
          event.next_attempt_at === null ? '' : `, next attempt ${relative(event.next_attempt_at)}`
        const waits = event.waits_for === null ? '' : `: waits for ${event.waits_for}`
        return `${event.event_type} ${event.event_id} is pending${waits}${event.last_error === null ? '' : ` after ${event.last_error}`}${next}`
      }),
    ...record.looks.map(openLook).filter((line) => line !== null),
    ...record.operations
      .filter((operation) => openStates.includes(operation.state))
      .map((operation) => openOperation(operation, style)),
    ...record.findings
      .filter((finding) => finding.state === 'open' || finding.state === 'repairing')
      .map((finding) => {
        const due = finding.overdue
          ? style.bad(`was due ${relative(finding.due_at)}`)
          : `due ${relative(finding.due_at)}`
        return `finding ${finding.kind} (${finding.severity}) of ${finding.owner}, ${due}: hookledger findings show ${finding.finding_id.slice(0, 8)}`
      }),
  ]
}
