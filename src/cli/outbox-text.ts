/** Operations as a person reads them. Never what was sent or answered. */
import type { CausedEvent } from '../report/operation-consequences.ts'
import { nextStep, operationName, outcomeOf, promiseOf } from '../report/operation-story.ts'
import type { ActView, OperationRecord, OperationView } from '../report/record-views.ts'
import { effectName, figures } from '../report/timeline.ts'
import type { Style } from './output.ts'
import { columns, moment, plural, relative } from './table.ts'

/** A list of operations. */
export function listText(rows: readonly OperationView[], style: Style): string {
  if (rows.length === 0) return 'no operations'
  const table = columns([
    ['id', 'operation', 'state', 'order', 'attempts', 'recorded', 'last error', 'next'],
    ...rows.map((row) => [
      row.operation_id.slice(0, 8),
      operationName(row),
      row.state,
      row.order_id ?? '',
      String(row.attempts),
      relative(row.created_at),
      shortened(row.last_error ?? ''),
      nextText(row, style),
    ]),
  ])
  return `${table}\n${plural(rows.length, 'operation')}; the story of one: hookledger outbox show ID`
}

/** As much of an error as a column has room for; `outbox show` has all of it. */
function shortened(error: string): string {
  const line = error.replaceAll(/\s+/g, ' ').trim()
  return line.length <= shownError ? line : `${line.slice(0, shownError - 1)}…`
}

const shownError = 40

function nextText(row: OperationView, style: Style): string {
  const { blocked_by: blocking } = row
  if (blocking !== null) {
    const waits = `blocked by ${blocking.operation_id.slice(0, 8)}, ${blocking.state}`
    return blocking.asks ? style.bad(waits) : waits
  }
  const { at, asks } = nextStep(row)
  if (asks) return style.bad('a person decides')
  return at === null ? '' : relative(at)
}

/** One operation: what it is, what was tried, what happens next. */
export function operationText(
  operation: OperationRecord & {
    readonly caused: readonly CausedEvent[]
    readonly acts: readonly ActView[]
  },
  style: Style,
): string {
  const { at, text, asks } = nextStep(operation)
  const next = `next: ${at === null ? '' : `${moment(at)} (${relative(at)}) `}${text}`
  return [
    `${style.strong(operationName(operation))} is ${stateText(operation, style)}`,
    ...originLines(operation),
    `promise: ${promiseOf(operation)}`,
    ...keyLines(operation),
    `request: ${operation.request_bytes} bytes, sha256 ${operation.request_sha256}${operation.has_request ? '' : ', no longer kept'}`,
    ...attemptLines(operation, style),
    ...operation.caused.map(
      (event) =>
        `it came back as ${event.event_type} ${event.event_id}: ${event.kind} (decision ${event.decision_id})`,
    ),
    ...operation.acts.map(
      (act) => `${moment(act.acted_at)} ${act.actor} did ${act.act}, because ${act.reason}`,
    ),
    ...figures(operation.receipt).map((said) => `receipt: ${said}`),
    asks ? style.bad(next) : next,
    ...(operation.order_id === null ? [] : [`the story: hookledger explain ${operation.order_id}`]),
    style.faint(operation.operation_id),
  ].join('\n')
}

function stateText(operation: OperationView, style: Style): string {
  const { state, uncertain_since: since, finished_at: finished, last_error: error } = operation
  const why = error === null || state === 'sent' ? '' : `, because ${error}`
  if (state === 'dead') return `${style.bad(state)}${why}`
  if (since !== null && finished === null) {
    return `${state === 'uncertain' ? style.bad(state) : `${state}, and uncertain`} since ${moment(since)}${why}`
  }
  return finished === null ? `${state}${why}` : `${state} since ${moment(finished)}${why}`
}

function originLines(operation: OperationView): string[] {
  const { effect_type: effect, order_id: order, while_states: states } = operation
  const origin =
    effect === null
      ? `asked for by the app${order === null ? '' : `, about order ${order}`}`
      : `of effect ${effectName(effect, operation.effect_reference ?? '')} of order ${order}, by decision ${operation.decision_id}`
  const only = states === null ? '' : `, only while the order is ${states.join(' or ')}`
  return [`${origin}, recorded ${moment(operation.created_at)}${only}`]
}

function keyLines(operation: OperationView): string[] {
  const until =
    operation.key_until === null || operation.finished_at !== null
      ? ''
      : `, counted on until ${moment(operation.key_until)} (${relative(operation.key_until)})`
  return operation.promise === 'once' ? [`key: ${operation.key}${until}`] : []
}

function attemptLines(operation: OperationRecord, style: Style): string[] {
  if (operation.tries.length === 0) return ['nothing was tried yet']
  const rows = operation.tries.map((attempt) => [
    `  ${attempt.kind} ${attempt.number}`,
    moment(attempt.started_at),
    outcomeOf(operation, attempt),
    attempt.status === null ? '' : String(attempt.status),
    attempt.answered_at === null
      ? ''
      : `${Date.parse(attempt.answered_at) - Date.parse(attempt.started_at)} ms`,
    attempt.key_generation > 1 ? `key ${attempt.key_generation}` : '',
    attempt.error ?? '',
  ])
  return [style.strong('tried'), ...columns(rows, [4]).split('\n')]
}
