/**
 * `hookledger findings list|show|assign|dismiss`: what differs, since when, who answers for it, until when.
 */
import type { CommandDef } from 'citty'
import { nearest } from '../core/nearest.ts'
import type { Database } from '../postgres/executor.ts'
import {
  knownFindingKinds,
  listFindings,
  operationOf,
  type FindingView,
} from '../report/findings.ts'
import { figures } from '../report/timeline.ts'
import { command, commandGroup, usageError } from './command.ts'
import { rowLimit } from './limit.ts'
import type { Style } from './output.ts'
import { assignCommand, dismissCommand } from './finding-acts.ts'
import { requireEnough, requireFinding } from './named-finding.ts'
import { withDatabase } from './project.ts'
import { columns, moment, plural, relative } from './table.ts'

const states = ['open', 'repairing', 'closed', 'dismissed', 'all'] as const

const listCommand: CommandDef = command(
  { name: 'list', description: 'Findings, those due first first; open ones without --state' },
  {
    state: { type: 'enum', description: 'Of this state', options: [...states] },
    kind: { type: 'string', description: 'Of this kind, such as paid_twice' },
    class: { type: 'enum', description: 'Of this class', options: ['lag', 'contradiction'] },
    owner: { type: 'string', description: 'Of this owner' },
    order: { type: 'string', description: 'About this order', valueHint: 'ID' },
    overdue: { type: 'boolean', description: 'Past their due date only' },
    limit: { type: 'string', description: 'At most so many (100)', valueHint: 'N' },
  },
  async ({ args, out, world }) =>
    withDatabase(world, args.config, async (db) => {
      const limit = rowLimit(args.limit)
      if (args.kind !== undefined) await requireKind(db, args.kind)
      const rows = await listFindings(db, {
        states:
          args.state === undefined
            ? ['open', 'repairing']
            : args.state === 'all'
              ? []
              : [args.state],
        kind: args.kind,
        class: args.class,
        owner: args.owner,
        orderId: args.order,
        overdue: args.overdue === true,
        limit: limit + 1,
      })
      out.rows(rows.slice(0, limit), listText)
      if (rows.length > limit) out.note(`only the first ${limit}: raise --limit to see more`)
      return 0
    }),
)

const showCommand: CommandDef = command(
  { name: 'show', description: 'One finding with its evidence' },
  {
    id: {
      type: 'positional',
      description: 'Its id, or the first six characters or more',
      required: true,
    },
  },
  async ({ args, out, world }) => {
    requireEnough(args.id)
    return withDatabase(world, args.config, async (db) => {
      out.result(await requireFinding(db, args.id), findingText)
      return 0
    })
  },
)

/** The commands about findings. */
export const findingsCommand: CommandDef = commandGroup(
  { name: 'findings', description: 'Discrepancies: list, show, assign, dismiss' },
  { list: listCommand, show: showCommand, assign: assignCommand, dismiss: dismissCommand },
  'list',
)

/**
 * A mistyped kind would be told as "no findings".
 *
 * @throws HookledgerError HKL_CLI_USAGE for a kind that neither the engine makes nor a finding here has
 */
async function requireKind(db: Database, kind: string): Promise<void> {
  const known = await knownFindingKinds(db)
  if (known.includes(kind)) return
  const near = nearest(kind.slice(0, 80), known)
  throw usageError(
    `no finding is of kind "${kind.slice(0, 80)}"${near === null ? '' : `, did you mean "${near}"?`}`,
  )
}

function listText(rows: readonly FindingView[], style: Style): string {
  if (rows.length === 0) return 'no findings'
  const table = columns([
    ['id', 'kind', 'severity', 'state', 'about', 'owner', 'due'],
    ...rows.map((row) => [
      row.finding_id.slice(0, 8),
      row.kind,
      row.severity,
      row.state,
      aboutOf(row),
      row.owner,
      row.overdue ? style.bad(`overdue, ${relative(row.due_at)}`) : relative(row.due_at),
    ]),
  ])
  return `${table}\n${plural(rows.length, 'finding')}`
}

function endOf(row: FindingView): string[] {
  if (row.dismissed_until !== null)
    return [`dismissed until ${moment(row.dismissed_until)}, unless it says something else before`]
  if (row.closed_at === null) return nextOf(row)
  return [
    `ended ${moment(row.closed_at)}${row.closed_because === null ? '' : `: ${row.closed_because}`}`,
  ]
}

/** A lag mostly ends by itself; what is contradictory waits for somebody. */
function nextOf(row: FindingView): string[] {
  const plan = `what would mend it: hookledger repair plan ${row.finding_id.slice(0, 8)}`
  return row.class === 'contradiction' ? [plan] : []
}

function aboutOf(row: FindingView): string {
  if (row.order_id !== null) return `order ${row.order_id}`
  if (row.event_id !== null) return `event ${row.event_id}`
  const operation = operationOf(row)
  if (operation !== null) return `operation ${operation.slice(0, 8)}`
  return row.record === null ? '' : `${row.record.kind} ${row.record.id}`
}

function findingText(row: FindingView, style: Style): string {
  const about = aboutOf(row)
  return [
    `${style.strong(row.kind)} (${row.class}, ${row.severity}) is ${row.state}`,
    ...(about === ''
      ? []
      : [
          `about ${about}${row.event_id === null || row.order_id === null ? '' : `, by ${row.event_type} ${row.event_id}`}`,
        ]),
    ...figures(row.evidence),
    `first seen ${moment(row.first_seen_at)}, last ${moment(row.last_seen_at)}, ${row.times_seen} times`,
    `of ${row.owner}, due ${moment(row.due_at)} (${row.overdue ? style.bad(`overdue, ${relative(row.due_at)}`) : relative(row.due_at)})`,
    ...(row.record === null ? [] : [`compared with ${row.record.kind} ${row.record.id}`]),
    ...endOf(row),
    `the story: hookledger explain ${row.order_id ?? row.event_id ?? operationOf(row) ?? row.finding_id}`,
    style.faint(row.finding_id),
  ].join('\n')
}
