/**
 * `hookledger findings assign|dismiss`: whose a finding is, and that it is fine as it is. Who and why are
 * recorded in the commit of what it changes.
 */
import type { CommandDef } from 'citty'
import { assignFinding, dismissFinding, type FindingActBy } from '../compose/finding-acts.ts'
import { command, usageError, type CommandWorld } from './command.ts'
import { requireFinding } from './named-finding.ts'
import { withDatabase } from './project.ts'
import { actorOf } from './replay.ts'
import { moment } from './table.ts'
import { timeOption } from './time-option.ts'

const idArg = {
  type: 'positional',
  description: 'Its id, or the first six characters or more',
  required: true,
} as const

const byArgs = {
  reason: { type: 'string', description: 'Why; required, and recorded with the act' },
  actor: { type: 'string', description: 'Who; the user of the operating system without it' },
} as const

/** The command that gives a finding to somebody. */
export const assignCommand: CommandDef = command(
  { name: 'assign', description: 'Gives a finding to somebody else' },
  {
    id: idArg,
    owner: { type: 'string', description: 'Who answers for it from now on', valueHint: 'NAME' },
    ...byArgs,
  },
  async ({ args, out, world }) => {
    const { owner } = args
    if (owner === undefined || owner.trim() === '')
      throw usageError('--owner is missing: who answers for it from now on')
    const by = byOf(world, args)
    return withDatabase(world, args.config, async (db) => {
      const { finding_id: id, owner: from } = await requireFinding(db, args.id)
      const done = await assignFinding(db, id, owner, by)
      const said = { finding_id: id, kind: done.kind, state: done.state, from, owner: done.owner }
      out.result(
        said,
        (safe) => `${safe.kind} ${id.slice(0, 8)} was ${safe.from}'s and is ${safe.owner}'s`,
      )
      return 0
    })
  },
)

/** The command that says that a finding is fine as it is. */
export const dismissCommand: CommandDef = command(
  {
    name: 'dismiss',
    description: 'Says that a finding is fine as it is, until a day; other figures open it again',
  },
  {
    id: idArg,
    until: {
      type: 'string',
      description: 'Until when; required: past it, it is open again',
      valueHint: 'TIME',
    },
    ...byArgs,
  },
  async ({ args, out, world }) => {
    const until = untilOf(args.until)
    const by = byOf(world, args)
    return withDatabase(world, args.config, async (db) => {
      const { finding_id: id } = await requireFinding(db, args.id)
      const done = await dismissFinding(db, id, until, by)
      const day = until.toISOString()
      out.result(
        { finding_id: id, kind: done.kind, state: done.state, owner: done.owner, until: day },
        (safe) =>
          `${safe.kind} ${id.slice(0, 8)} is dismissed until ${moment(day)}, unless it says something else before`,
      )
      return 0
    })
  },
)

/** @throws HookledgerError HKL_CLI_USAGE without a reason: an act that nobody can explain later is none */
function byOf(
  world: CommandWorld,
  { reason, actor }: { readonly reason?: string | undefined; readonly actor?: string | undefined },
): FindingActBy {
  if (reason === undefined || reason.trim() === '')
    throw usageError('--reason is missing: it is recorded with the act')
  return { reason, actor: actor ?? actorOf(world) }
}

function untilOf(text: string | undefined): Date {
  if (text === undefined)
    throw usageError('--until is missing: a finding is dismissed until a day, and never for ever')
  const at = timeOption('until', text)
  if (at.getTime() <= Date.now()) throw usageError(`--until is past: ${text}`)
  return at
}
