/** `hookledger status`: counts and ages, and what deserves a look first. */
import type { CommandDef } from 'citty'
import { status, type StatusReport } from '../report/status.ts'
import { command } from './command.ts'
import type { Style } from './output.ts'
import { withDatabase } from './project.ts'
import { shadowText } from './status-shadow.ts'
import { reconciliationAdvice, reconciliationText } from './status-reconciliation.ts'
import { columns, duration, moment, plural, relative } from './table.ts'

/** The command. */
export const statusCommand: CommandDef = command(
  { name: 'status', description: 'How much is in which state, how old it is, what is late' },
  {},
  async ({ args, out, world }) =>
    withDatabase(world, args.config, async (db) => {
      out.result(await status(db), statusText)
      return 0
    }),
)

/** The report for a person. */
export function statusText(report: StatusReport, style: Style): string {
  const { events, pending, waiting, deliveries, workers } = report
  const age = pending.oldest_age_ms === null ? '' : `oldest ${duration(pending.oldest_age_ms)}`
  const late = waiting.overdue === 0 ? '' : `${waiting.overdue} overdue`
  const due =
    waiting.next_deadline_at === null ? '' : `next deadline ${relative(waiting.next_deadline_at)}`
  const counts = [
    ['pending', String(events.pending), joined(age, split(pending))],
    ['waiting', String(events.deferred), joined(late, due)],
    ['processed', String(events.processed), ''],
    ['ignored', String(events.ignored), ''],
    ['dead', String(events.dead), ''],
  ]
  const last =
    deliveries.last_new_event_at === null
      ? ''
      : `, the last new event ${relative(deliveries.last_new_event_at)}`
  return [
    style.strong(`${report.schema} (${report.environment}), migration ${report.migration}`),
    '',
    columns(counts, [1]),
    '',
    `${plural(events.total, 'event')} in ${plural(deliveries.total, 'delivery')}, ${plural(deliveries.duplicates, 'duplicate')}${last}`,
    workers.batches === 0
      ? `no batch in work, ${workers.decided_last_minute} decisions in the last minute`
      : `${plural(workers.batches, 'batch')} in work (oldest ${duration(workers.oldest_batch_age_ms ?? 0)}), ${workers.decided_last_minute} decisions in the last minute`,
    workers.processes.length === 0
      ? 'no process at work was heard of in the last 30 seconds'
      : `at work: ${workers.processes.map(({ role, processes }) => `${role} ${processes}`).join(', ')}`,
    `${plural(report.entitlements.active, 'active entitlement')}`,
    ...ordersText(report),
    ...destinationsText(report),
    ...gatheringText(report.gathering),
    ...reconciliationText(report.reconciliation),
    ...shadowText(report.shadow),
    ...findingsText(report),
    ...rejectionsText(report),
    ...adviceOf(report).map((line) => style.bad(line)),
  ].join('\n')
}

function split(pending: StatusReport['pending']): string {
  const parts = [
    pending.delayed === 0 ? '' : `${pending.delayed} to be tried again`,
    pending.suspects === 0 ? '' : `${pending.suspects} suspects`,
    pending.gathering === 0 ? '' : `${pending.gathering} waiting for an answer`,
  ]
  return joined(...parts)
}

function joined(...parts: string[]): string {
  return parts.filter((part) => part !== '').join(', ')
}

function ordersText(report: StatusReport): string[] {
  if (report.orders.length === 0) return []
  const rows = report.orders.map((each) => [each.workflow, each.state, String(each.orders)])
  return ['', columns([['workflow', 'state', 'orders'], ...rows], [2])]
}

function destinationsText(report: StatusReport): string[] {
  if (report.destinations.length === 0) return []
  const rows = report.destinations.map((each) => [
    each.destination,
    ...[each.pending, each.sending, each.uncertain, each.dead].map(String),
    joined(
      each.oldest_due_age_ms === null
        ? ''
        : `${each.due} due, for ${duration(each.oldest_due_age_ms)}`,
      each.closed_until === null
        ? ''
        : `paused until ${moment(each.closed_until)} after ${plural(each.failures, 'failure')} in a row`,
      each.promise === 'at_least_once' ? 'at least once' : '',
    ),
  ])
  const head = ['destination', 'pending', 'sending', 'uncertain', 'dead', '']
  return ['', columns([head, ...rows], [1, 2, 3, 4])]
}

function gatheringText(gathering: StatusReport['gathering']): string[] {
  if (gathering === null) return []
  const { requests, failing, oldest_age_ms: age, last_error: error, paused } = gathering
  const failed = failing === 0 ? '' : `${failing} failing${error === null ? '' : ` (${error})`}`
  const oldest = age === null ? '' : `oldest ${duration(age)}`
  return [
    '',
    `providers: ${joined(`${plural(requests, 'request')} open`, oldest, failed)}`,
    ...paused.map(
      (each) =>
        `  ${each.budget} is left alone until ${moment(each.until)} after ${plural(each.failures, 'failure')} in a row`,
    ),
  ]
}

function findingsText(report: StatusReport): string[] {
  if (report.findings.length === 0) return ['', 'no open findings']
  const rows = report.findings.map((each) => [
    each.class,
    each.kind,
    String(each.open),
    each.overdue === 0 ? '' : `${each.overdue} overdue`,
  ])
  const total = (name: string): string => {
    const open = report.findings.filter((each) => each.class === name)
    return `${open.reduce((sum, each) => sum + each.open, 0)} ${name}`
  }
  const totals = `${total('lag')} (ends by itself), ${total('contradiction')} (a person decides)`
  return ['', columns([['class', 'finding', 'open', ''], ...rows], [2]), totals]
}

function rejectionsText(report: StatusReport): string[] {
  if (report.rejections.length === 0) return []
  const rows = report.rejections.map((each) => [each.source, each.reason, String(each.times)])
  return ['', columns([['source', 'refused in 24 h', 'times'], ...rows], [2])]
}

/** What to do about what is wrong, worst first. */
function adviceOf(report: StatusReport): string[] {
  const overdue = report.findings.reduce((sum, each) => sum + each.overdue, 0)
  const stuck =
    report.events.pending > report.pending.gathering &&
    (report.pending.oldest_age_ms ?? 0) > 60_000 &&
    report.workers.decided_last_minute === 0
  const asking = report.destinations.reduce((sum, each) => sum + each.asking, 0)
  const unasked =
    report.gathering !== null &&
    report.gathering.failing === 0 &&
    report.gathering.paused.length === 0 &&
    (report.gathering.oldest_age_ms ?? 0) > 60_000
  const late = report.destinations.filter(
    (each) => (each.oldest_due_age_ms ?? 0) > 60_000 && each.closed_until === null,
  )
  const advice = [
    ...(stuck
      ? ['nothing is being worked on: is a worker running? (hookledger start --roles work)']
      : []),
    ...(unasked
      ? [
          'nothing is being asked of providers: does a gatherer run? (hookledger start --roles gather)',
        ]
      : []),
    ...(report.events.dead > 0
      ? [`${plural(report.events.dead, 'dead event')}: hookledger dead list`]
      : []),
    ...(late.length > 0
      ? [
          `operations to ${late.map((each) => each.destination).join(', ')} are late: does a dispatcher run that knows them? (hookledger start --roles dispatch)`,
        ]
      : []),
    ...(asking > 0
      ? [`${plural(asking, 'operation')} that only a person can end: hookledger outbox list`]
      : []),
    ...(overdue > 0
      ? [`${plural(overdue, 'finding')} overdue: hookledger findings list --overdue`]
      : []),
    ...reconciliationAdvice(report.reconciliation),
  ]
  return advice.length === 0 ? [] : ['', ...advice]
}
