/** `hookledger findings list|show`: what differs, since when, who answers for it, until when. */
import type { CommandDef } from 'citty'
import { HookledgerError } from '../core/errors.ts'
import { findFindings, listFindings, operationOf, type FindingView } from '../report/findings.ts'
import { figures } from '../report/timeline.ts'
import { command, commandGroup } from './command.ts'
import { rowLimit } from './limit.ts'
import type { Style } from './output.ts'
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
    // fewer are too likely to be those of another finding
    if (args.id.length < 6) {
      throw new HookledgerError('HKL_CLI_USAGE', 'ID must be at least its first six characters')
    }
    return withDatabase(world, args.config, async (db) => {
      const found = await findFindings(db, args.id)
      const [finding] = found
      if (finding === undefined) {
        throw new HookledgerError(
          'HKL_NOT_FOUND',
          `no finding has an id that begins with ${JSON.stringify(args.id)}: see "hookledger findings list --state all"`,
        )
      }
      if (found.length > 1) {
        throw new HookledgerError(
          'HKL_NOT_FOUND',
          `${found.length} findings begin with ${args.id}: give more of the id`,
        )
      }
      out.result(finding, findingText)
      return 0
    })
  },
)

/** The commands about findings. */
export const findingsCommand: CommandDef = commandGroup(
  { name: 'findings', description: 'Discrepancies: list, show' },
  { list: listCommand, show: showCommand },
  'list',
)

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

function aboutOf(row: FindingView): string {
  if (row.order_id !== null) return `order ${row.order_id}`
  if (row.event_id !== null) return `event ${row.event_id}`
  const operation = operationOf(row)
  return operation === null ? '' : `operation ${operation.slice(0, 8)}`
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
    ...(row.closed_at === null ? [] : [`ended ${moment(row.closed_at)}`]),
    `the story: hookledger explain ${row.order_id ?? row.event_id ?? operationOf(row) ?? row.finding_id}`,
    style.faint(row.finding_id),
  ].join('\n')
}
