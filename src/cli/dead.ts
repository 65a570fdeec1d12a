/** `hookledger dead list|show|replay`: what can go no further by itself, and how to try again. */
import type { CommandDef } from 'citty'
import { HookledgerError } from '../core/errors.ts'
import { listDead, type DeadEvent } from '../report/dead.ts'
import { explain } from '../report/explain.ts'
import { command, commandGroup } from './command.ts'
import { explainText } from './explain-text.ts'
import { rowLimit } from './limit.ts'
import type { Style } from './output.ts'
import { withDatabase } from './project.ts'
import { sequencedOf } from './sequenced.ts'
import { reasonArgs, runReplay } from './replay.ts'
import { columns, plural, relative } from './table.ts'

const listCommand: CommandDef = command(
  { name: 'list', description: 'Dead events, the last to die first' },
  {
    type: {
      type: 'string',
      description: 'Of these event types (repeat it, or commas)',
      valueHint: 'TYPE',
    },
    limit: { type: 'string', description: 'At most so many (100)', valueHint: 'N' },
  },
  async ({ args, list, out, world }) =>
    withDatabase(world, args.config, async (db) => {
      const limit = rowLimit(args.limit)
      const rows = await listDead(db, { types: list('type'), limit: limit + 1 })
      out.rows(rows.slice(0, limit), listText)
      if (rows.length > limit) out.note(`only the first ${limit}: raise --limit to see more`)
      return 0
    }),
)

const showCommand: CommandDef = command(
  { name: 'show', description: 'One dead event and its story' },
  { event: { type: 'positional', description: "The provider's event id", required: true } },
  async ({ args, out, world }) =>
    withDatabase(world, args.config, async (db, { parts }) => {
      const [dead] = await listDead(db, { eventId: args.event, limit: 1 })
      const story =
        dead === undefined ? null : await explain(db, `event:${dead.event_key}`, sequencedOf(parts))
      if (dead === undefined || story === null) {
        throw new HookledgerError(
          'HKL_NOT_FOUND',
          `no dead event has the id ${JSON.stringify(args.event)}: see "hookledger dead list", or "hookledger explain ${args.event}"`,
        )
      }
      out.result({ ...dead, story }, (safe, style) =>
        [...deadLines(safe, style), '', explainText(safe.story, style)].join('\n'),
      )
      return 0
    }),
)

const replayCommand: CommandDef = command(
  { name: 'replay', description: 'Tries dead events again: one, some types, or all' },
  {
    event: {
      type: 'positional',
      description: "The provider's event id; all dead ones without it need --all",
      required: false,
    },
    type: {
      type: 'string',
      description: 'Those of these event types (repeat it, or commas)',
      valueHint: 'TYPE',
    },
    all: { type: 'boolean', description: 'All of them' },
    ...reasonArgs,
  },
  async ({ args, list, out, world }) =>
    runReplay({
      world,
      out,
      config: args.config,
      event: args.event,
      types: list('type'),
      states: ['dead'],
      all: args.all === true,
      args,
    }),
)

/** The commands about dead events. */
export const deadCommand: CommandDef = commandGroup(
  { name: 'dead', description: 'Events that can go no further by themselves: list, show, replay' },
  { list: listCommand, show: showCommand, replay: replayCommand },
  'list',
)

function listText(rows: readonly DeadEvent[], style: Style): string {
  if (rows.length === 0) return 'no dead events'
  const table = columns([
    ['event', 'type', 'died', 'attempts', 'reason'],
    ...rows.map((row) => [
      row.event_id,
      row.event_type,
      relative(row.died_at),
      String(row.attempts),
      `${row.reason}${row.has_body ? '' : style.faint(' (payload expired)')}`,
    ]),
  ])
  return `${table}\n${plural(rows.length, 'dead event')}; try again: hookledger dead replay EVENT`
}

function deadLines(dead: DeadEvent, style: Style): string[] {
  const arms =
    dead.rearmed_by === 'operator'
      ? 'only an operator can bring it back'
      : 'a redelivery by the provider brings it back, too'
  return [
    `${style.strong(`${dead.event_type} ${dead.event_id}`)} from ${dead.source} died ${relative(dead.died_at)} after ${plural(dead.attempts, 'attempt')}`,
    `because ${dead.reason}`,
    dead.has_body
      ? `${arms}: hookledger replay ${dead.event_id}`
      : 'its payload expired: ask the provider to send it again',
  ]
}
