/**
 * `hookledger grant`: gives something away, and ends what was given. Who and why are recorded in the commit
 * of what it changes.
 */
import type { CommandDef } from 'citty'
import { endGiven, giveAway } from '../compose/doors.ts'
import { command, usageError } from './command.ts'
import type { ExitCode } from './exit-codes.ts'
import type { Output } from './output.ts'
import { withDatabase } from './project.ts'
import { actorOf } from './replay.ts'
import { moment } from './table.ts'
import { optionalTime } from './time-option.ts'

type GrantedEntitlement = Parameters<typeof giveAway>[2]['entitlements'][number]

/** The command. */
export const grantCommand: CommandDef = command(
  { name: 'grant', description: 'Gives an entitlement away, or ends what was given away' },
  {
    subject: { type: 'positional', description: 'Who gets it: user:42', required: false },
    entitlement: {
      type: 'string',
      description: 'What (repeat it, or commas); NAME=N for a quantity',
      valueHint: 'NAME',
    },
    until: {
      type: 'string',
      description: 'Until when; without it until it is ended',
      valueHint: 'TIME',
    },
    id: {
      type: 'string',
      description:
        "The id of the grant's order: given once under it, however often it is asked for",
      valueHint: 'ID',
    },
    end: { type: 'string', description: 'Ends this grant instead', valueHint: 'ID' },
    reason: { type: 'string', description: 'Why; required, and recorded with it' },
    actor: { type: 'string', description: 'Who; the user of the operating system without it' },
  },
  async ({ args, list, out, world }) => {
    const { subject, reason, end } = args
    if (reason === undefined || reason.trim() === '')
      throw usageError('--reason is missing: it is recorded with the grant')
    const by = { reason, actor: args.actor ?? actorOf(world) }
    const terms = [subject, args.entitlement, args.until, args.id]
    if (end !== undefined) {
      if (terms.some((each) => each !== undefined))
        throw usageError('--end takes the id of a grant, and nothing about another one')
      return withDatabase(world, args.config, async (db) => {
        const outcome = await db.transaction((tx) => endGiven(db, tx, { id: end, ...by }))
        return ended(out, end, outcome)
      })
    }
    const entitlements = list('entitlement').map(entitlementOf)
    if (subject === undefined)
      throw usageError('SUBJECT is missing, or --end with the id of a grant')
    if (entitlements.length === 0) throw usageError('--entitlement is missing: what is given away')
    const until = optionalTime('until', args.until) ?? null
    return withDatabase(world, args.config, async (db) => {
      const request = { subject, entitlements, until, id: args.id, ...by }
      const id = await db.transaction((tx) => giveAway(db, tx, request))
      out.result(
        { order_id: id, subject, entitlements: list('entitlement'), until },
        (safe) =>
          `${safe.subject} has ${safe.entitlements.join(', ')}${until === null ? '' : ` until ${moment(until.toISOString())}`}: grant ${safe.order_id}, ended by: hookledger grant --end ${safe.order_id} --reason '…'`,
      )
      return 0
    })
  },
)

function ended(out: Output, id: string, outcome: 'ended' | 'already_ended'): ExitCode {
  out.result({ order_id: id, outcome }, (safe) =>
    safe.outcome === 'ended'
      ? `grant ${safe.order_id} is ended: it entitles to nothing any more`
      : `grant ${safe.order_id} was ended before; nothing changed`,
  )
  return 0
}

/**
 * What is before "=" is the name and what is behind it the quantity. A name that has a "=" itself can be given in
 * code; here it would be a mistyped quantity taken for a name.
 *
 * @throws HookledgerError HKL_CLI_USAGE
 */
function entitlementOf(text: string): GrantedEntitlement {
  const at = text.indexOf('=')
  if (at === -1) return text
  const [entitlement, quantity] = [text.slice(0, at), Number(text.slice(at + 1))]
  const isQuantity = /^=[1-9]\d{0,15}$/.test(text.slice(at)) && Number.isSafeInteger(quantity)
  if (entitlement !== '' && isQuantity) return { entitlement, quantity }
  throw usageError(
    `--entitlement must be NAME, or NAME=N with N a positive whole number, not "${text.slice(0, 80)}"`,
  )
}
