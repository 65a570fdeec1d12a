/** `hookledger outbox list|show|retry|resolve|discard`: calls to the outside, and what to do about them. */
import type { CommandDef } from 'citty'
import { causedBy } from '../report/operation-consequences.ts'
import { listOperations, openStates, operationsAbout } from '../report/operations.ts'
import { actsAbout } from '../report/order-record.ts'
import { command, commandGroup, usageError } from './command.ts'
import { rowLimit } from './limit.ts'
import { requireOperation, unknownOperation } from './named-operation.ts'
import { discardCommand, resolveCommand, retryCommand } from './outbox-acts.ts'
import { listText, operationText } from './outbox-text.ts'
import { withDatabase } from './project.ts'
import { sequencedOf } from './sequenced.ts'

const states = [...openStates, 'sent', 'canceled', 'discarded', 'all']

const listCommand: CommandDef = command(
  { name: 'list', description: 'Operations, the newest first; unfinished ones without --state' },
  {
    state: { type: 'enum', description: 'Of this state', options: states },
    destination: { type: 'string', description: 'To this destination', valueHint: 'NAME' },
    order: { type: 'string', description: 'Of this order', valueHint: 'ID' },
    after: {
      type: 'string',
      description: 'Goes on after this sequence number, toward older ones',
      valueHint: 'N',
    },
    limit: { type: 'string', description: 'At most so many (100)', valueHint: 'N' },
  },
  async ({ args, out, world }) =>
    withDatabase(world, args.config, async (db, { parts }) => {
      const limit = rowLimit(args.limit)
      const filter = {
        states: args.state === undefined ? openStates : args.state === 'all' ? [] : [args.state],
        destination: args.destination,
        orderId: args.order,
        after: sequence(args.after),
        limit: limit + 1,
      }
      const rows = await listOperations(db, filter, sequencedOf(parts))
      const shown = rows.slice(0, limit)
      out.rows(shown, listText)
      if (rows.length > limit)
        out.note(`only the first ${limit}: go on with --after ${shown.at(-1)?.sequence}`)
      return 0
    }),
)

function sequence(text: string | undefined): string | undefined {
  if (text === undefined || /^\d{1,18}$/.test(text)) return text
  throw usageError(`--after must be the sequence number of an operation, not "${text}"`)
}

const showCommand: CommandDef = command(
  { name: 'show', description: 'One operation: what was tried, and what happens next' },
  {
    id: {
      type: 'positional',
      description: 'Its id or its first six characters, its key, or the key of outbox.add',
      required: true,
    },
  },
  async ({ args, out, world }) =>
    withDatabase(world, args.config, async (db, { parts }) => {
      const { operation_id: id } = await requireOperation(db, args.id)
      const about = { orderId: null, ids: [id] }
      const [operation] = await operationsAbout(db, about, sequencedOf(parts))
      if (operation === undefined) throw unknownOperation(args.id)
      const acts = await actsAbout(db, [`operation:${id}`])
      out.result({ ...operation, caused: await causedBy(db, operation), acts }, operationText)
      return 0
    }),
)

/** The commands about operations. */
export const outboxCommand: CommandDef = commandGroup(
  { name: 'outbox', description: 'Calls to the outside: list, show, retry, resolve, discard' },
  {
    list: listCommand,
    show: showCommand,
    retry: retryCommand,
    resolve: resolveCommand,
    discard: discardCommand,
  },
  'list',
)
